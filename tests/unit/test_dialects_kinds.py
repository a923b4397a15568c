"""One declaration for each custom kind: checked strictly, read leniently."""

import ast
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, field

import phalanx
from phalanx.dialects import schema as kubernetes
from phalanx.dialects.kinds.fields import (
    NEEDED,
    Amounts,
    Anything,
    Count,
    CustomObject,
    Fields,
    Int64,
    Positive,
    Strings,
    checked_as,
    when_missing,
)
from phalanx.dialects.kinds.reader import blank, reader_of
from phalanx.manifests.definitions import DEFINITIONS, Definition
from phalanx.manifests.openapi import schema_of

SOURCES = Path(phalanx.__file__).parent


class Side(Fields):
    length: Positive
    angle: float
    tags: list[str]


class ShapeSpec(Fields):
    sides: Annotated[list[Side], Meta(min_length=3)]
    corner: Side
    tier: Annotated[int, Meta(extra=when_missing(1))]
    color: Literal["red", "blue"] = "red"
    count: Count | None = None
    big: Int64 | None = None
    amounts: Amounts | None = None
    gpu_id: str | None = field(default=None, name="gpuID")
    inner: Annotated[Anything, Meta(extra=checked_as(Side))] | None = None
    outer: Annotated[kubernetes.Selector, Meta(extra=checked_as(Strings))] | None = None

    @property
    def first(self) -> Side:
        return self.sides[0]


class Shape(CustomObject):
    spec: ShapeSpec
    name: Annotated[str, Meta(extra=NEEDED)]


def read(**spec: Any) -> ShapeSpec:
    return msgspec.convert({"metadata": {"name": "a"}, "name": "n", "spec": spec}, reader_of(Shape)).spec


def test_bounds_and_words_are_not_checked_and_what_is_unknown_is_ignored() -> None:
    found = read(sides=[{"length": -1, "other": 3}], color="green", count=-5, big=2**40, amounts={"cpu": 0.5}, gpuID="x", tier=7)
    assert (found.first.length, found.color, found.count, found.big) == (-1, "green", -5, 2**40)
    assert (found.amounts, found.gpu_id, found.tier) == ({"cpu": 0.5}, "x", 7)


def test_what_is_missing_has_its_default_or_is_empty() -> None:
    found = read()
    assert (found.sides, found.color, found.count, found.tier) == ([], "red", None, 1)
    assert (found.corner.length, found.corner.angle, found.corner.tags) == (0, 0.0, [])
    assert found == blank(ShapeSpec)


def test_null_is_as_if_it_were_missing() -> None:
    names = ("sides", "corner", "color", "count", "big", "amounts", "gpuID", "inner", "outer")
    assert read(**dict.fromkeys(names)) == blank(ShapeSpec)


def test_what_is_empty_is_never_shared() -> None:
    read().sides.append(blank(Side))
    assert read().sides == []


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"sides": 3}, "Expected `array | null`, got `int` - at `$.spec.sides`"),
        ({"sides": [{"length": "long"}]}, "Expected `int`, got `str` - at `$.spec.sides[0].length`"),
        ({"sides": [{"length": None}]}, "Expected `int`, got `null` - at `$.spec.sides[0].length`"),
        ({"count": 2**40}, "Expected `int` <= 2147483647 - at `$.spec.count`"),
        ({"color": 3}, "Expected `str | null`, got `int` - at `$.spec.color`"),
        ({"outer": {"matchLabels": 3}}, "Expected `object | null`, got `int` - at `$.spec.outer.matchLabels`"),
    ],
)
def test_a_wrong_type_is_an_error_that_names_the_field(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refusal:
        read(**spec)
    assert str(refusal.value) == problem


@pytest.mark.parametrize(("document", "name"), [({"metadata": {}}, "name"), ({"name": "n"}, "metadata")])
def test_without_metadata_or_what_is_needed_nothing_is_read(document: dict[str, Any], name: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"missing required field `{name}`"):
        msgspec.convert(document, reader_of(Shape))


def test_what_is_read_in_one_type_may_be_checked_as_another() -> None:
    found = schema_of(Shape)["properties"]["spec"]["properties"]
    assert found["inner"] == schema_of(Shape)["properties"]["spec"]["properties"]["corner"]
    assert found["outer"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert read(inner={"length": "long"}).inner == {"length": "long"}


def test_metadata_is_described_by_the_api_server() -> None:
    assert (schema_of(Shape)["properties"]["metadata"], schema_of(Shape)["required"]) == ({"type": "object"}, ["spec", "name"])


def test_kubernetes_own_kinds_are_their_own_readers() -> None:
    assert reader_of(kubernetes.Pod) is kubernetes.Pod


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind.resource)
def test_a_reader_knows_the_fields_of_its_kind(definition: Definition) -> None:
    declared, reader = (msgspec.structs.fields(each) for each in (definition.struct, reader_of(definition.struct)))
    assert [(each.name, each.encode_name) for each in reader] == [(each.name, each.encode_name) for each in declared]


def test_the_name_of_a_class_of_kinds_and_manifests_stands_for_one_thing() -> None:
    names, ours = Counter[str](), set[str]()
    for file in SOURCES.rglob("*.py"):
        found = {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)}
        names.update(found)
        if file.parent in (SOURCES / "dialects" / "kinds", SOURCES / "manifests"):
            ours |= found
    assert [name for name in sorted(ours) if names[name] > 1] == []
