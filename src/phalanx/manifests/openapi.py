"""From structs to structural OpenAPI schemas, as CustomResourceDefinitions have them."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import NODEFAULT, inspect

from phalanx.dialects.kinds.fields import CHECKED_AS, RULES, CelRule, CustomObject, Fields

Schema = dict[str, Any]

KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
VALIDATIONS = "x-kubernetes-validations"
_LENGTHS = {inspect.StrType: ("minLength", "maxLength"), inspect.ListType: ("minItems", "maxItems"),
            inspect.DictType: ("minProperties", "maxProperties")}  # fmt: skip


@cache
def schema_of(struct: type[CustomObject]) -> Schema:
    """Return the schema of an object; what every object has is described besides."""
    found = _struct(_own_fields(struct))
    always = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return {**found, "properties": {**always, **found["properties"]}}


def rules_of(struct: type[CustomObject]) -> Iterator[tuple[str, CelRule]]:
    """Yield every rule of an object with the place it is about, such as spec.tasks[].minAvailable."""
    yield from _rules(_own_fields(struct), "")


def _own_fields(struct: type[CustomObject]) -> inspect.StructType:
    """Return the fields of a kind; metadata is described by the API server."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return inspect.StructType(info.cls, tuple(field for field in info.fields if field.name != "metadata"))


def _checked(info: inspect.Metadata) -> inspect.Type:
    """Return what is checked in the place of what is read."""
    extra = info.extra or {}
    return inspect.type_info(extra[CHECKED_AS]) if CHECKED_AS in extra else info.type


def _rules(info: inspect.Type, path: str) -> Iterator[tuple[str, CelRule]]:
    match info:
        case inspect.Metadata():
            yield from ((f"{path}{rule.field}", rule) for rule in (info.extra or {}).get(RULES, ()))
            yield from _rules(_checked(info), path)
        case inspect.StructType():
            yield from ((f"{path}{rule.field}".lstrip("."), rule) for rule in getattr(info.cls, "rules", ()))
            for field in info.fields:
                yield from _rules(field.type, f"{path}.{field.encode_name}".lstrip("."))
        case inspect.UnionType():
            for kind in info.types:
                yield from _rules(kind, path)
        case inspect.ListType():
            yield from _rules(info.item_type, f"{path}[]")
        case inspect.DictType():
            yield from _rules(info.value_type, f"{path}.*")


def defaults_of(schema: Schema, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the default of every field that has one, with its place."""
    if "default" in schema:
        yield path, schema["default"]
    for key, part in schema.get("properties", {}).items():
        yield from defaults_of(part, f"{path}.{key}".lstrip("."))
    if "items" in schema:
        yield from defaults_of(schema["items"], f"{path}[]")


def _schema(info: inspect.Type) -> Schema:
    match info:
        case inspect.Metadata():
            return {**_schema(_checked(info)), **(info.extra_json_schema or {}), **_ruled((info.extra or {}).get(RULES, ()))}
        case inspect.StructType():
            return _struct(info)
        case inspect.UnionType():
            return _union(info)
        case inspect.LiteralType():
            return {"type": "string" if isinstance(info.values[0], str) else "integer", "enum": list(info.values)}
        case inspect.ListType():
            return {"type": "array", **_lengths(info), "items": _schema(info.item_type)}
        case inspect.DictType():
            return _map(info)
    return _scalar(info)


def _struct(info: inspect.StructType) -> Schema:
    struct = info.cls
    assert issubclass(struct, Fields), f"{struct.__name__} is not described by Fields"
    required = [field.encode_name for field in info.fields if field.required]
    return {
        "type": "object",
        **({"description": struct.__doc__} if struct.__doc__ else {}),
        **({KEEPS_UNKNOWN: True} if struct.keeps_unknown else {}),
        **({"required": required} if required else {}),
        "properties": {field.encode_name: _field(field) for field in info.fields},
        **_ruled(struct.rules),
    }


def _field(field: inspect.Field) -> Schema:
    has_default = field.default is not NODEFAULT and field.default is not None
    return {**_schema(field.type), **({"default": field.default} if has_default else {})}


def _union(info: inspect.UnionType) -> Schema:
    """Return the schema of a field that may be missing, or of one that is a number or a text."""
    kinds = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
    if len(kinds) == 1:
        return _schema(kinds[0])
    assert {type(kind) for kind in kinds} == {inspect.IntType, inspect.StrType}, f"{info}: only int | str is a union of kinds"
    return {INT_OR_STRING: True}


def _map(info: inspect.DictType) -> Schema:
    if isinstance(info.value_type, inspect.AnyType):
        return {"type": "object", KEEPS_UNKNOWN: True}
    return {"type": "object", **_lengths(info), "additionalProperties": _schema(info.value_type)}


def _scalar(info: inspect.Type) -> Schema:
    match info:
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer", **_bounds(info)}
        case inspect.FloatType():
            return {"type": "number", **_bounds(info)}
        case inspect.StrType():
            return {"type": "string", **_lengths(info), **({"pattern": info.pattern} if info.pattern else {})}
    raise AssertionError(f"{info}: no schema for this type")


def _bounds(info: inspect.IntType | inspect.FloatType) -> Schema:
    return {key: value for key, value in (("minimum", info.ge), ("maximum", info.le)) if value is not None}


def _lengths(info: inspect.StrType | inspect.ListType | inspect.DictType) -> Schema:
    least, most = _LENGTHS[type(info)]
    return {key: value for key, value in ((least, info.min_length), (most, info.max_length)) if value is not None}


def _ruled(rules: tuple[CelRule, ...]) -> Schema:
    return {VALIDATIONS: [_rule(rule) for rule in rules]} if rules else {}


def _rule(rule: CelRule) -> Schema:
    return {"rule": rule.cel, "message": rule.message, **({"fieldPath": rule.field} if rule.field else {})}
