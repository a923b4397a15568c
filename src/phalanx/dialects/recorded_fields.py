"""What of an object is written down for later: the fields that sessions read, and nothing else.

Which fields those are is found in the structs by which objects are read, so that nothing that matters is missing and nothing else
comes along: no environment, no commands, no arguments, no mounts, no secrets. Of the annotations only those are kept that some
dialect or plugin may read, by their domains; labels are kept, since selectors may name any of them.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, TypedDict

import msgspec
from msgspec.inspect import DictType, Field, ListType, StructType, Type, UnionType, type_info

from phalanx.dialects.cluster import Document, group_and_kind, places_read, structs_read
from phalanx.dialects.group_references import KAI_GROUP
from phalanx.dialects.pods import GPU_DEVICES, GPU_FRACTION, GPU_MEMORY

DOMAINS = (
    "phalanx.dev", "volcano.sh", "kai.scheduler", "run.ai", "koordinator.sh", "yunikorn.apache.org", "x-k8s.io", "sigs.k8s.io",
    "scheduling.k8s.io", "volume.kubernetes.io", "volume.beta.kubernetes.io", "pv.kubernetes.io", "batch.kubernetes.io",
    "nvidia.com", "hami.io", "huawei.com",
)  # fmt: skip
"""Annotations of these domains, and of those below them, are kept."""
NAMES = frozenset(
    {GPU_FRACTION, GPU_MEMORY, GPU_DEVICES, KAI_GROUP, "gpu-fraction-container-name", "received-resource-type", "runai-gpu-group",
     "queue", "user", "project"}
)  # fmt: skip
"""Annotations without a domain that are kept."""
ALWAYS: "Fields" = {"apiVersion": None, "kind": None}
ANNOTATED = "annotations"
_KINDS = places_read()

Fields = Mapping[str, "Fields | list[Fields | None] | Callable[[Any], Any] | None"]  # Any: as JSON has it
"""The fields of an object that are kept, each with those inside it; None keeps everything."""
Take = Callable[[Any], Any]  # Any: as above
"""Returns what is kept of the value of a field."""
Takes = Mapping[str, Take | None]
TakesByPart = Mapping[str, Takes | None]
Part = Fields | list[Any] | Callable[[Any], Any] | None  # Any: as above, one level deeper


def recorded(document: Document) -> Document | None:
    """Return what is kept of an object; None for a kind that sessions do not read."""
    place = group_and_kind(document)
    if not is_recorded(*place):
        return None
    kept: dict[str, Any] = _taken(_shape(place), _fields_of(place), document)
    meta = kept.get("metadata")
    if isinstance(meta, dict) and meta.get(ANNOTATED):
        meta[ANNOTATED] = _known_annotations(meta[ANNOTATED])
    return kept


def is_recorded(group: str, kind: str) -> bool:
    """Tell whether objects of a kind are written down."""
    return (group, kind) in _KINDS


@cache
def takes_by_part(place: tuple[str, str]) -> TakesByPart:
    """Return what is kept of single fields, by the part of an object that they are in; a field without `Take` is kept whole.

    Nothing is kept of fields that are not among them. A part without fields is a value by itself.
    """
    return {
        part: {key: _take(inner) for key, inner in fields.items()} if isinstance(fields, Mapping) else None
        for part, fields in _fields_of(place).items()
    }


def _take(fields: Part) -> Take | None:
    if fields is None or callable(fields):
        return fields
    holder = cache(partial(_holder, fields))  # made when the field first differs: of most fields that never happens
    return lambda value: _taken(holder(), fields, value)


def _holder(fields: Part) -> type[msgspec.Struct]:
    """Return a struct around the type of fields: of other types msgspec finds out each time what they are, in 4 µs and more."""
    return msgspec.defstruct("Holder", [("value", _typed("Recorded", fields))])


def _taken(holder: type[msgspec.Struct], fields: Part, value: Any) -> Any:  # Any: what JSON has
    try:
        return msgspec.convert({"value": value}, holder).value  # type: ignore[attr-defined]  # made of data
    except msgspec.ValidationError:  # somewhere is a text or a list where fields should be
        return _kept(value, fields)


@cache
def _shape(place: tuple[str, str]) -> type[msgspec.Struct]:
    """Return the fields of a kind as a type, so that msgspec takes them out; in Python that takes ten times as long."""
    return _holder(_fields_of(place))


def _typed(name: str, fields: Part) -> Any:  # Any: a type that is made here
    if isinstance(fields, Mapping):
        inner = {key: _typed(f"{name}{number}", fields[key]) for number, key in enumerate(fields)}
        return TypedDict(name, inner, total=False) | None  # type: ignore[operator]  # made of data
    if isinstance(fields, list):
        return list[_typed(f"{name}_", fields[0])] | None  # type: ignore[misc]  # made of data
    return Any


def _kept(value: Any, fields: Part) -> Any:  # Any: as JSON has it
    if fields is None:
        return value
    if isinstance(fields, Mapping):
        # What has the wrong type is refused by whoever reads it, now and later: its type is kept, and not what it says.
        return (
            {key: _kept(value[key], fields[key]) for key in value if key in fields} if isinstance(value, Mapping) else _blank(value)
        )
    if isinstance(fields, list):
        return [_kept(item, fields[0]) for item in value] if isinstance(value, list) else _blank(value)
    return fields(value)


def _blank(value: Any) -> Any:  # Any: as JSON has it
    return None if value is None else type(value)()


def _known_annotations(value: Any) -> Any:  # Any: as JSON has it
    return {key: text for key, text in value.items() if _is_known(key)} if isinstance(value, Mapping) else _blank(value)


@cache
def _is_known(annotation: str) -> bool:
    domain, slash, _ = annotation.partition("/")
    if not slash:
        return annotation in NAMES
    return any(domain == known or domain.endswith(f".{known}") for known in DOMAINS)


@cache
def _fields_of(place: tuple[str, str]) -> Fields:
    """Return the fields of a kind. They are looked for when its first object comes: a cluster has few of all kinds there are."""
    return {**ALWAYS, **_all_fields(structs_read(place))}


def _all_fields(structs: tuple[type[msgspec.Struct], ...]) -> dict[str, Part]:
    found: dict[str, Part] = {}
    for struct in structs:
        found = _together(found, _fields(type_info(struct)))
    return found


def _together(left: Any, right: Any) -> Any:  # Any: two parts of one type
    if isinstance(left, dict) and isinstance(right, dict):
        return {
            key: _together(left[key], right[key]) if key in left and key in right else (left | right)[key] for key in left | right
        }
    return left


def _fields(kind: Type, within: tuple[type, ...] = ()) -> Part:
    """Return the fields of a type; a struct that holds itself is kept whole from there on."""
    if isinstance(kind, UnionType):
        return next((found for part in kind.types if (found := _fields(part, within)) is not None), None)
    if isinstance(kind, ListType):
        inner = _fields(kind.item_type, within)
        return None if inner is None else [inner]
    if isinstance(kind, StructType) and kind.cls not in within:
        return {field.encode_name: _of_field(field, (*within, kind.cls)) for field in kind.fields}
    return None


def _of_field(field: Field, within: tuple[type, ...]) -> Part:
    if field.encode_name == ANNOTATED and isinstance(_only(field.type), DictType):
        return _known_annotations
    return _fields(field.type, within)


def _only(kind: Type) -> Type:
    """Return what a field holds if it holds anything."""
    if not isinstance(kind, UnionType):
        return kind
    return next((part for part in kind.types if isinstance(part, DictType)), kind)
