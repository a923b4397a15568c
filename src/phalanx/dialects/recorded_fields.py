"""What of an object is written down for later: the fields that sessions read, and nothing else.

Which fields those are is found in the structs by which objects are read, so that nothing that matters is missing and nothing else
comes along: no environment, no commands, no arguments, no mounts, no secrets. Of the annotations only those are kept that some
dialect or plugin may read, by their domains; labels are kept, since selectors may name any of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import groupby, islice
from operator import itemgetter
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

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
WRAPPING = (Union, UnionType, Annotated)
MOST_BY_HAND = 16
"""So many objects of a kind are gone through in Python: a type takes longer to make than it saves on these, and most have few."""
TOGETHER = 50
"""So many objects of a kind are gone through at once."""
VERSION_AND_KIND = itemgetter("apiVersion", "kind")
_KINDS = places_read()
_known: set[str] = set()
"""Annotations that were found to be kept: most objects have no others, and a look at all at once takes a third of the time."""
_TYPES: dict[int, tuple["Fields", Any]] = {}  # Any: as made below
"""The types of fields, by which object that is; whatever has the same fields shares them."""

Fields = Mapping[str, "Fields | list[Fields | None] | Callable[[Any], Any] | None"]  # Any: as JSON has it
"""The fields of an object that are kept, each with those inside it; None keeps everything."""
Take = Callable[[Any], Any]  # Any: as above
"""Returns what is kept of the value of a field."""
Takes = Mapping[str, Take | None]
TakesByPart = Mapping[str, Takes | None]
Part = Fields | list[Any] | Callable[[Any], Any] | None  # Any: as above, one level deeper


def recorded(document: Document) -> Any:  # Any: something to be encoded
    """Return what is kept of an object, to be encoded; None for a kind that sessions do not read."""
    keeper = _keeper(str(document.get("apiVersion", "")), str(document.get("kind", "")))
    return None if keeper is None else keeper.kept([document])[0]


def recorded_all(documents: Iterable[Document]) -> Iterator[list[Any]]:  # Any: as above
    """Yield what is kept of many objects, some at once, as far as sessions read their kinds.

    Each object has a version and a kind; those of one kind best follow each other.
    """
    for names, alike in groupby(documents, VERSION_AND_KIND):
        keeper = _keeper(*names)
        while keeper is not None and (some := [*islice(alike, TOGETHER)]):
            yield keeper.kept(some)


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


@cache
def part_taken(place: tuple[str, str], part: str) -> Take:
    """Return what takes out of one part of objects what is kept of it."""
    take = _take(_fields_of(place)[part])
    assert take is not None, f"{part} is no value by itself"
    return take


def _take(fields: Part) -> Take | None:
    if fields is None or callable(fields):
        return fields
    holder = cache(partial(_holder, fields))  # made when the field first differs: of most fields that never happens
    return lambda value: _taken(holder(), fields, value)


def _holder(fields: Part) -> type[msgspec.Struct]:
    """Return a struct around the type of fields: of other types msgspec finds out each time what they are, in 4 µs and more."""
    return msgspec.defstruct("Holder", [("value", _typed(fields))])


def _taken(holder: type[msgspec.Struct], fields: Part, value: Any) -> Any:  # Any: what JSON has
    try:
        return msgspec.convert({"value": value}, holder, dec_hook=_of_annotations).value  # type: ignore[attr-defined]  # made of data
    except msgspec.ValidationError:  # somewhere is a text or a list where fields should be
        return _kept(value, fields)


class _Keeper:
    """Takes what is kept out of the objects of one kind."""

    def __init__(self, place: tuple[str, str]) -> None:
        self._fields = _fields_of(place)
        self._left = MOST_BY_HAND
        self._shape: type[msgspec.Struct] | None = None
        """The fields as a type, by which msgspec takes them out; in Python that takes ten times as long."""

    def kept(self, documents: list[Document]) -> list[Any]:  # Any: as above
        self._left -= len(documents)
        if self._left > 0:
            return [_kept(document, self._fields) for document in documents]
        self._shape = self._shape or _holder([self._fields])
        found: list[Any] = _taken(self._shape, [self._fields], documents)
        return found


@cache
def _keeper(version: str, kind: str) -> _Keeper | None:
    place = group_and_kind({"apiVersion": version, "kind": kind})
    return _Keeper(place) if is_recorded(*place) else None


def _typed(fields: Part) -> Any:  # Any: a type that is made here
    if isinstance(fields, Mapping):
        if id(fields) not in _TYPES:
            _TYPES[id(fields)] = fields, _struct(fields) | None
        return _TYPES[id(fields)][1]
    if isinstance(fields, list):
        return list[_typed(fields[0])] | None  # type: ignore[misc]  # made of data
    return Any if fields is None else _Annotations | None


def _struct(fields: Fields) -> Any:  # Any: as above
    """Return a struct with these fields, each of which may be missing: made and encoded in half the time of dicts."""
    unset: Any = msgspec.UNSET  # Any: a default fits every type
    inner = [(f"{key}_", _typed(part) | msgspec.UnsetType, msgspec.field(default=unset, name=key)) for key, part in fields.items()]
    return msgspec.defstruct("Recorded", inner, gc=False)


class _Annotations(dict[str, Any]):  # Any: what JSON has
    """Annotations of which only known ones are kept."""

    __slots__ = ()


def _of_annotations(kind: type, value: Any) -> Any:  # Any: as above
    if type(value) is not dict:
        raise TypeError  # as msgspec does for other types
    return kind(value if _known.issuperset(value) else {key: text for key, text in value.items() if _is_known(key)})


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
    is_known = any(domain == known or domain.endswith(f".{known}") for known in DOMAINS) if slash else annotation in NAMES
    if is_known:
        _known.add(annotation)
    return is_known


@cache
def _fields_of(place: tuple[str, str]) -> Fields:
    """Return the fields of a kind. They are looked for when its first object comes: a cluster has few of all kinds there are."""
    return {**ALWAYS, **_all_fields(structs_read(place))}


def _all_fields(structs: tuple[type[msgspec.Struct], ...]) -> dict[str, Part]:
    found: dict[str, Part] = {}
    for struct in structs:
        found = _together(found, _fields(struct))
    return found


def _together(left: Any, right: Any) -> Any:  # Any: two parts of one type
    if isinstance(left, dict) and isinstance(right, dict):
        return {
            key: _together(left[key], right[key]) if key in left and key in right else (left | right)[key] for key in left | right
        }
    return left


def _fields(kind: Any, holder: type | None = None) -> Part:  # Any: a type as it is written
    """Return the fields of a type; a struct that holds itself is kept whole from there on."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return None if kind is holder else _fields_of_struct(kind)
    inner, origin = get_args(kind), get_origin(kind)
    if origin is list:
        found = _fields(inner[0], holder)
        return None if found is None else [found]
    if origin in WRAPPING:
        return next((found for part in inner if (found := _fields(part, holder)) is not None), None)
    return None


@cache
def _fields_of_struct(struct: type[msgspec.Struct]) -> Fields:
    """Return the fields of a struct, the same object each time: metadata, containers and selectors are parts of many others."""
    return {field.encode_name: _of_field(field.encode_name, field.type, struct) for field in msgspec.structs.fields(struct)}


def _of_field(name: str, kind: Any, holder: type) -> Part:  # Any: as above
    if name == ANNOTATED and any(get_origin(part) is dict for part in (kind, *get_args(kind))):
        return _known_annotations
    return _fields(kind, holder)
