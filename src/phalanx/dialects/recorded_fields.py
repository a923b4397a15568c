"""What of an object is written down for later: the fields that sessions read, and nothing else.

Which fields those are is found in the structs by which objects are read, so that nothing that matters is missing and nothing else
comes along: no environment, no commands, no arguments, no mounts, no secrets. Of the annotations only those are kept that some
dialect or plugin may read, by their domains; labels are kept, since selectors may name any of them.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypedDict

import msgspec
from msgspec.inspect import DictType, Field, ListType, StructType, Type, UnionType, type_info

from phalanx.dialects.cluster import Document, group_and_kind, structs_read
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

Fields = Mapping[str, "Fields | list[Fields | None] | Callable[[Any], Any] | None"]  # Any: as JSON has it
"""The fields of an object that are kept, each with those inside it; None keeps everything."""
Part = Fields | list[Any] | Callable[[Any], Any] | None  # Any: as above, one level deeper


def recorded(document: Document) -> Document | None:
    """Return what is kept of an object; None for a kind that sessions do not read."""
    place = group_and_kind(document)
    fields = _fields_by_kind().get(place)
    if fields is None:
        return None
    try:
        kept: dict[str, Any] = msgspec.convert(document, _shape(place))
    except msgspec.ValidationError:  # somewhere is a text or a list where fields should be
        kept = _kept(document, fields)
    meta = kept.get("metadata")
    if isinstance(meta, dict) and meta.get(ANNOTATED):
        meta[ANNOTATED] = _known_annotations(meta[ANNOTATED])
    return kept


def is_recorded(group: str, kind: str) -> bool:
    """Tell whether objects of a kind are written down."""
    return (group, kind) in _fields_by_kind()


@cache
def _shape(place: tuple[str, str]) -> Any:  # Any: a type that is made here
    """Return the fields of a kind as a type, so that msgspec takes them out; in Python that takes ten times as long."""
    return _typed("Recorded", _fields_by_kind()[place])


def _typed(name: str, fields: Part) -> Any:  # Any: as above
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
def _fields_by_kind() -> Mapping[tuple[str, str], Fields]:
    return {place: {**ALWAYS, **_all_fields(structs)} for place, structs in structs_read().items()}


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
