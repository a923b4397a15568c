"""Readers of custom objects, made of their declarations.

Objects come from files too, and from clusters with other definitions than ours, and whoever reads one says in plain words what is
wrong with it. So a reader checks no bounds and no known words. What is missing or null has its default, or is empty where it is
required; only a required text or number that is null is refused, as by the API server. Unknown fields are ignored. A wrong type is
an error that names the field.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import NODEFAULT
from msgspec.structs import FieldInfo

from phalanx.dialects.kinds.fields import INT32, MISSING, Fields
from phalanx.dialects.schema import Int32

AnyStruct = TypeVar("AnyStruct", bound=msgspec.Struct)
TypeForm = Any  # Any: an annotation, which has no type of its own
Factory = Callable[[], Any]  # Any: whatever a field holds
SCALARS = (str, int, float, bool)
EMPTY: Mapping[object, Factory] = {kind: kind for kind in (*SCALARS, list, dict)}


def reader_of(struct: type[AnyStruct]) -> type[AnyStruct]:
    """Return what reads the objects that a struct declares; Kubernetes' own kinds are read as they are."""
    return cast(type[AnyStruct], _reader(struct))  # cast: the cache forgets which one was asked for


def blank(struct: type[AnyStruct]) -> AnyStruct:
    """Return an object in which nothing is said."""
    return reader_of(struct)()


@cache
def _reader(declared: type[msgspec.Struct]) -> type[msgspec.Struct]:
    if not issubclass(declared, Fields):
        return declared
    infos = msgspec.structs.fields(declared)
    factories = {info.name: factory for info in infos if (factory := _factory(info)) is not None}
    fields = [_field(info, factories.get(info.name)) for info in infos]
    methods = {"__post_init__": _filling(factories)} if factories else {}
    return msgspec.defstruct(declared.__name__, fields, bases=(declared,), namespace=methods, module=__name__, kw_only=True)


def _field(info: FieldInfo, factory: Factory | None) -> tuple[str, TypeForm, Any]:
    kind = _read_type(info.type)
    if factory is None:
        return info.name, kind, msgspec.field(name=info.encode_name, default=info.default)
    is_refused = info.required and _bare(kind) in SCALARS
    return info.name, kind if is_refused else kind | None, msgspec.field(name=info.encode_name, default_factory=factory)


def _filling(factories: Mapping[str, Factory]) -> Callable[[Fields], None]:
    """Return what puts defaults in the place of nulls."""

    def fill(read: Fields) -> None:
        for name, factory in factories.items():
            if getattr(read, name) is None:
                setattr(read, name, factory())

    return fill


def _factory(info: FieldInfo) -> Factory | None:
    """Return what makes the default of a field; None for one that may be None, and for metadata, without which there is nothing."""
    extra = _extra(info.type)
    if MISSING in extra or not info.required:
        default = extra.get(MISSING, info.default)
        return None if default in (None, NODEFAULT) else lambda: default
    kind = _bare(_read_type(info.type))
    return kind if _is_declared(kind) else EMPTY.get(_origin(kind) or kind)


def _read_type(kind: TypeForm) -> TypeForm:
    """Return the type in which a value is read."""
    origin, parts = _origin(kind), get_args(kind)
    if origin is Annotated:
        return Int32 if _is_int32(kind) else _read_type(parts[0])
    if origin is Literal:
        return type(parts[0])
    if origin in (Union, UnionType):
        amount = (float,) if {int, str} == set(parts) else ()
        return Union[(*map(_read_type, parts), *amount)]  # there is no other way to join a tuple
    if origin in (list, dict):
        return origin[tuple(map(_read_type, parts))]
    return _reader(kind) if _is_declared(kind) else kind


def _is_declared(kind: TypeForm) -> bool:
    return isinstance(kind, type) and issubclass(kind, Fields)


def _is_int32(kind: TypeForm) -> bool:
    return any((meta.extra_json_schema or {}).get("format") == INT32 for meta in kind.__metadata__)


def _extra(kind: TypeForm) -> Mapping[str, Any]:
    """Return what is said beside a type."""
    return {key: value for meta in getattr(kind, "__metadata__", ()) for key, value in (meta.extra or {}).items()}


def _origin(kind: TypeForm) -> TypeForm:
    return get_origin(kind)


def _bare(kind: TypeForm) -> TypeForm:
    return get_args(kind)[0] if _origin(kind) is Annotated else kind
