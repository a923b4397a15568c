"""Laws of definitions: whatever an object holds, it is accepted or refused with a reason, and accepted once is accepted always."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from phalanx.dialects.kinds.reader import reader_of
from phalanx.errors import Invalid
from phalanx.manifests.definitions import DEFINITIONS, Definition
from phalanx.manifests.openapi import INT_OR_STRING, Schema
from phalanx.manifests.validation import completed, problems
from phalanx.model.kinds import Document
from phalanx.store.memory import MemoryStore

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text("ab*-/.", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", min_size=1, max_size=2), inner, max_size=2),
    max_leaves=4,
)
SCALARS = {"string": st.text("abc.-1", max_size=5), "integer": st.integers(-1, 4), "boolean": st.booleans()}


def values(schema: Schema) -> st.SearchStrategy[Any]:
    """Return values that nearly fit a schema: mostly of its form, now and then something else."""
    if "enum" in schema:
        return st.sampled_from([*schema["enum"], "other"])
    if INT_OR_STRING in schema:
        return st.integers(0, 9) | st.sampled_from(["1", "500m", "2Gi", "x"])
    match schema["type"]:
        case "object" if "properties" in schema:
            fields = {key: values(part) for key, part in schema["properties"].items() if key != "status"}
            return st.fixed_dictionaries({key: fields.pop(key) for key in schema.get("required", ())}, optional=fields)
        case "object":
            return st.dictionaries(
                st.sampled_from(["a", "svc"]), values(schema.get("additionalProperties", {"type": "string"})), max_size=2
            )
        case "array":
            return st.lists(values(schema["items"]), max_size=2) | ANYTHING
        case "number":
            return st.floats(-2, 2)
        case other:
            return SCALARS[other]


def documents(definition: Definition) -> st.SearchStrategy[dict[str, Any]]:
    kind = definition.kind
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "it"}}
    parts = {key: values(part) for key, part in definition.schema["properties"].items() if key not in (*head, "status")}
    return st.fixed_dictionaries({}, optional=parts).map(lambda rest: {**head, **rest})


CASES = st.sampled_from(DEFINITIONS).flatmap(lambda definition: st.tuples(st.just(definition), documents(definition)))


def created(store: MemoryStore, document: dict[str, Any]) -> Document | str:
    """Return what is stored, or why nothing is."""
    try:
        return store.create(document)
    except Invalid as problem:
        return str(problem)


@given(CASES)
def test_an_object_is_accepted_or_refused_with_a_reason(case: tuple[Definition, dict[str, Any]]) -> None:
    made = created(MemoryStore(lambda: 0.0), case[1])
    assert not isinstance(made, str) or '"it" is ' in made


@given(CASES)
def test_what_is_stored_is_stored_again_without_a_change(case: tuple[Definition, dict[str, Any]]) -> None:
    store = MemoryStore(lambda: 0.0)
    made = created(store, case[1])
    if not isinstance(made, str):
        assert store.replace(made) is made
        assert {**store.create({**made, "metadata": {"name": "copy"}}), "metadata": None} == {**made, "metadata": None}


@given(CASES)
def test_defaults_are_filled_in_once_and_change_nothing_that_is_there(case: tuple[Definition, dict[str, Any]]) -> None:
    definition, document = case
    whole = completed(definition.schema, document)
    assert completed(definition.schema, whole) == whole
    assert all(isinstance(text, str) for text in problems(definition.schema, whole))


@given(CASES)
def test_what_is_stored_can_be_read(case: tuple[Definition, dict[str, Any]]) -> None:
    made = created(MemoryStore(lambda: 0.0), case[1])
    if not isinstance(made, str):
        msgspec.convert(made, reader_of(case[0].struct))


@given(CASES)
def test_a_default_means_to_who_reads_what_the_api_server_writes(case: tuple[Definition, dict[str, Any]]) -> None:
    definition, document = case
    whole, reader = completed(definition.schema, document), reader_of(definition.struct)
    # Without the definition, a task needs all of its partitions. The topology of a Job is handed on as it is, and gets its defaults
    # with the PodGroup.
    is_handed_on = definition.kind.group == "batch.volcano.sh" and "networkTopology" in str(document)
    if not problems(definition.schema, whole) and not is_handed_on and "partitionPolicy" not in str(document):
        assert msgspec.convert(document, reader) == msgspec.convert(whole, reader)
