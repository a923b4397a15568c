"""The types of Kubernetes' own kinds: which fields each has, their numbers on the wire, and how lists of them are joined.

One table serves all that asks: warnings about unknown fields, patches, server-side apply, OpenAPI documents and bodies in protobuf.
`kubernetes_types.json` is written by `scripts/kubernetes-types` from the modules of the control plane that tests run on. In it a
field is `number type marks`; a number such as `2.19` names a field of a part that JSON shows in the place of its holder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from phalanx.model.kinds import Kind

LIST, MAP = "[]", "{}"


@dataclass(frozen=True, slots=True)
class FieldType:
    """What a field holds."""

    name: str
    """A scalar, or a type of the table; of lists and maps that of their items."""
    shape: str
    """`[]` for a list, `{}` for a map, `{}[]` for a map of lists, nothing for a single value."""
    numbers: tuple[int, ...]
    """Its place on the wire; several where the field is that of a part."""
    keys: tuple[str, ...] = ()
    """The fields that tell the items of a list apart."""
    merge_key: str | None = None
    """The field by which a strategic merge joins the items of a list; empty for a list whose values are united."""
    is_set: bool = False
    is_atomic: bool = False
    is_required: bool = False
    is_pointer: bool = False
    """An empty value is another thing than none."""

    @property
    def is_list(self) -> bool:
        return self.shape == LIST

    @property
    def is_map(self) -> bool:
        return self.shape.startswith(MAP)


class _Table(msgspec.Struct):
    version: str
    kinds: dict[str, str]
    types: dict[str, dict[str, str]]


@cache
def _table() -> _Table:
    text = files("phalanx.store").joinpath("kubernetes_types.json").read_bytes()
    return msgspec.json.decode(text, type=_Table)


def type_of(api_version: str, kind: str) -> str | None:
    """Return the type of a kind; None for those of others."""
    return _table().kinds.get(f"{api_version}/{kind}")


def type_of_kind(kind: Kind) -> str | None:
    """Return the type of a kind that is served here; None for custom ones."""
    return type_of(kind.api_version, kind.kind)


@cache
def fields_of(name: str) -> Mapping[str, FieldType]:
    """Return the fields of a type of the table, by name; a scalar has none."""
    return {field: _field(words) for field, words in _table().types.get(name, {}).items()}


def _field(words: str) -> FieldType:
    number, whole, *marks = words.split()
    name = whole.lstrip("[]{}")
    given = dict(mark.partition("=")[::2] for mark in marks)
    keys = tuple(given["keys"].split(",")) if "keys" in given else ()
    return FieldType(
        name, whole.removesuffix(name), tuple(map(int, number.split("."))), keys,
        given.get("merge"), "set" in given, "atomic" in given, "required" in given, "pointer" in given,
    )  # fmt: skip


Tree = Mapping[str, Any] | None  # Any: a Tree again
"""Known fields and what is below them; None where everything goes. The items of a list have the tree of the list."""
ANY_KEY = "*"
"""The field that stands for every key of a map."""
OLDER: Mapping[str, tuple[str, ...]] = {"core.v1.PodSpec": ("workloadRef",), "core.v1.PodResourceClaim": ("source",)}
"""Fields that types had in earlier versions, and that are read too."""


@cache
def tree_of(name: str) -> Tree:
    """Return the fields of a type as a tree."""
    known = fields_of(name)
    return {**{field: _below(part) for field, part in known.items()}, **dict.fromkeys(OLDER.get(name, ()))} if known else None


def _below(part: FieldType) -> Tree:
    tree = tree_of(part.name)
    return {ANY_KEY: tree} if part.is_map and tree is not None else tree
