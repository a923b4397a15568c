"""The definitions are structural, complete, and accept what people have."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.kubernetes.cel_rules import compile_rule
from phalanx.manifests.admission_policies import MUTATING, NAMES, VALIDATING, policy_documents
from phalanx.manifests.definitions import DEFINITION_BY_KIND, DEFINITIONS, Definition, definition_documents
from phalanx.manifests.reference import document
from phalanx.manifests.validation import completed, problems
from phalanx.model.kinds import KINDS, PROVISIONING_REQUEST, WORKLOADS, kind_of

ROOT = Path(__file__).resolve().parents[2]
CONFORMANCE = ROOT.parent / "shared" / "conformance"
JSON_TYPES = {"object": Mapping, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
ALLOWED = {
    "type", "description", "properties", "required", "items", "additionalProperties", "default", "enum", "format", "pattern",
    "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties", "x-kubernetes-validations",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string",
}  # fmt: skip


def named(definition: Definition) -> str:
    return definition.kind.resource


def schemas(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a schema and all inside it, with their places."""
    yield path, schema
    for key, part in schema.get("properties", {}).items():
        yield from schemas(part, f"{path}.{key}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from schemas(schema[key], f"{path}.{key}")


def faults(path: str, schema: dict[str, Any]) -> Iterator[str]:
    """Yield what keeps a schema from being structural."""
    yield from (f"{path}: {key}" for key in schema if key not in ALLOWED)
    if ("type" in schema) == schema.get("x-kubernetes-int-or-string", False):
        yield f"{path}: type"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{path}: both named and other properties"
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{path}: items"
    if "default" in schema and not isinstance(schema["default"], JSON_TYPES[schema["type"]]):  # type: ignore[arg-type]  # of types
        yield f"{path}: default"
    yield from (f"{path}: requires {key}" for key in schema.get("required", ()) if key not in schema["properties"])


@pytest.mark.parametrize("definition", DEFINITIONS, ids=named)
def test_a_schema_is_structural(definition: Definition) -> None:
    found = list(schemas(definition.schema, definition.kind.kind))
    assert [fault for path, schema in found for fault in faults(path, schema)] == []
    assert set(definition.schema["properties"]) >= {"apiVersion", "kind", "metadata"}
    assert "x-kubernetes-validations" not in definition.schema["properties"]["metadata"]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=named)
def test_rules_compile_and_say_what_to_write(definition: Definition) -> None:
    for path, schema in schemas(definition.schema, ""):
        for rule in schema.get("x-kubernetes-validations", ()):
            assert compile_rule(rule["rule"], "self", "oldSelf").text == rule["rule"]
            assert rule["message"], path
            fields = rule.get("fieldPath", "").split(".")[1:]
            part = schema
            for name in fields:
                part = part["properties"][name]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=named)
def test_a_status_is_described_where_it_is_written_apart(definition: Definition) -> None:
    assert ("status" in definition.schema["properties"]) == definition.kind.has_status


def test_every_kind_that_needs_a_definition_has_one() -> None:
    of_others = {*WORKLOADS, PROVISIONING_REQUEST}
    assert {kind for kind in KINDS if not kind.is_built_in} - of_others == set(DEFINITION_BY_KIND)
    assert len(DEFINITIONS) == 17


def test_a_definition_says_how_a_kind_is_called_and_shown() -> None:
    groups = {found["metadata"]["name"]: found["spec"] for found in definition_documents()}
    queue = groups["queues.scheduling.volcano.sh"]
    assert queue["names"] == {
        "kind": "Queue", "listKind": "QueueList", "plural": "queues", "singular": "queue", "shortNames": ["q", "vcqueue"],
        "categories": ["phalanx"],
    }  # fmt: skip
    (version,) = queue["versions"]
    assert (queue["scope"], version["name"], version["subresources"]) == ("Cluster", "v1beta1", {"status": {}})
    assert version["additionalPrinterColumns"][-1] == {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    assert groups["jobs.batch.volcano.sh"]["scope"] == "Namespaced"


def test_columns_show_fields_that_exist() -> None:
    for definition in DEFINITIONS:
        for column in definition.columns[:-1]:
            schema = definition.schema
            for name in column.path.split(".")[1:]:
                schema = schema["properties"][name]


# --- objects that people have --------------------------------------------------------------------------------------------


def refusals(objects: Iterator[Any]) -> Iterator[str]:
    """Yield what is wrong with objects, and which of their fields would be dropped."""
    for found in objects:
        definition = DEFINITION_BY_KIND.get(kind_of(found)) if isinstance(found, dict) and is_known(found) else None
        if definition is not None:
            whole = completed(definition.schema, found)
            yield from (f"{found['kind']} {found['metadata']['name']}: {text}" for text in problems(definition.schema, whole))
            yield from (f"{found['kind']} {found['metadata']['name']}: drops {place}" for place in dropped(found, whole, ""))


def is_known(document: Mapping[str, Any]) -> bool:
    kinds = {(kind.api_version, kind.kind) for kind in DEFINITION_BY_KIND}
    return (document.get("apiVersion"), document.get("kind")) in kinds


def dropped(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, dict):
        yield from (f"{path}.{key}" for key in before if key not in after)
        for key in before.keys() & after.keys():
            yield from dropped(before[key], after[key], f"{path}.{key}")
    elif isinstance(before, list):
        for one, other in zip(before, after, strict=True):
            yield from dropped(one, other, f"{path}[]")


def test_the_objects_of_the_examples_are_accepted_whole() -> None:
    files = [file for file in (ROOT / "examples").rglob("*.yaml") if file.parent.name != "broken"]
    objects = [found for file in files for found in yaml.safe_load_all(file.read_text())]
    assert sum(isinstance(found, dict) and is_known(found) for found in objects) > 50
    assert list(refusals(iter(objects))) == []


def cases() -> Iterator[Any]:
    for file in sorted(CONFORMANCE.rglob("*.json*")):
        for line in file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]:
            yield from msgspec.json.decode(line)["objects"]


@pytest.mark.skipif(not CONFORMANCE.is_dir(), reason="the conformance cases are not here")
def test_the_objects_of_the_conformance_cases_are_accepted_whole() -> None:
    assert list(refusals(cases())) == []


def test_an_object_that_is_wrong_would_be_found() -> None:
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}}
    assert list(refusals(iter([{**group, "spec": {"minMember": -1, "minMembers": 2}}]))) == [
        "PodGroup g: spec.minMember: Invalid value: -1: spec.minMember in body should be greater than or equal to 0",
        "PodGroup g: drops .spec.minMembers",
    ]


# --- what is printed -----------------------------------------------------------------------------------------------------


def test_policies_compile_and_have_a_binding_each() -> None:
    for policy in (*MUTATING, *VALIDATING):
        texts = [*(rule.cel for rule in policy.rules), *(change.cel for change in policy.changes), policy.condition or "true"]
        assert [compile_rule(text, *NAMES).text for text in texts] == texts
    names = [found["metadata"]["name"] for found in policy_documents()]
    assert names[::2] == names[1::2]
    assert len(set(names)) == len(names) // 2


def test_no_condition_of_a_policy_reads_the_namespace_which_the_api_server_does_not_show_it() -> None:
    assert not [policy.name for policy in (*MUTATING, *VALIDATING) if "namespaceObject" in policy.condition]


@pytest.mark.parametrize("what", ["crds", "policies"])
def test_manifests_are_printed_the_same_each_time(what: str) -> None:
    first, second = (CliRunner().invoke(main, ["manifests", what]) for _ in range(2))
    assert first.exit_code == 0
    assert first.stdout_bytes == second.stdout_bytes
    listed = CliRunner().invoke(main, ["manifests", what, "-o", "json"])
    assert list(yaml.safe_load_all(first.stdout)) == msgspec.json.decode(listed.stdout)["items"]
    assert "&id" not in first.stdout


def test_the_page_on_rules_is_up_to_date() -> None:
    page = ROOT / "docs" / "reference" / "validation.md"
    assert page.read_text() == document(), "run: python -m phalanx.manifests.reference > docs/reference/validation.md"
