"""What the API server does with an object that has a schema: it fills in defaults, drops what it does not know, and refuses.

Objects are never changed in place. Messages are those of the API server, so that a manifest that is refused here is refused there
in the same words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from phalanx.kubernetes.cel_rules import compile_rule
from phalanx.kubernetes.cel_values import CelError
from phalanx.manifests.openapi import INT_OR_STRING, KEEPS_UNKNOWN, VALIDATIONS, Schema

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (Mapping,), "array": (list, tuple), "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
}  # fmt: skip
_RANGES = {"int32": 2**31, "int64": 2**63}
_ALWAYS = ("apiVersion", "kind", "metadata")
Value = Any  # Any: whatever JSON holds


# --- defaults and unknown fields -----------------------------------------------------------------------------------------


def completed(schema: Schema, value: Value) -> Value:
    """Return a value with defaults in the place of what is missing or null, without fields that the schema does not know."""
    if isinstance(value, Mapping):
        return _completed_object(schema, value)
    if isinstance(value, list) and "items" in schema:
        return [completed(schema["items"], item) for item in value]
    return value


def _completed_object(schema: Schema, value: Mapping[str, Value]) -> Mapping[str, Value]:
    if "additionalProperties" in schema:
        return {key: completed(schema["additionalProperties"], item) for key, item in value.items() if item is not None}
    properties = schema.get("properties")
    if properties is None:
        return value
    keeps_unknown = schema.get(KEEPS_UNKNOWN, False)
    found = {key: completed(properties[key], item) if key in properties else item for key, item in value.items()
             if (item is not None if key in properties else keeps_unknown)}  # fmt: skip
    return found | {key: part["default"] for key, part in properties.items() if "default" in part and key not in found}


# --- refusals ------------------------------------------------------------------------------------------------------------


UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, with its place; where the form of an object is wrong its rules are not looked at."""

    text: str
    is_about_form: bool = True


def problems(schema: Schema, value: Value, old: Value = None) -> list[str]:
    """Return what is wrong with an object; `old` is what was there before, None if nothing was."""
    found = list(_faults(schema, value, ""))
    if any(problem.is_about_form for problem in found):
        return [*(problem.text for problem in found), f"<nil>: Invalid value: null: {UNCHECKED}"]
    return [*(problem.text for problem in found), *_broken(schema, value, old, "")]


def _faults(schema: Schema, value: Value, path: str) -> Iterator[Problem]:
    if _has_wrong_type(schema, value):
        name, wanted = _mismatch(schema, value)
        yield Problem(_invalid(path, name, f"{path} in body must be of type {wanted}: {name}"))
        yield from _outside_range(schema, value, path)
        yield from _unlisted(schema, value, path)
        return
    yield from _limits(schema, value, path)
    if isinstance(value, Mapping):
        yield from (Problem(f"{_child(path, key)}: Required value") for key in schema.get("required", ()) if key not in value)
    for part, item, where, _ in _inside(schema, value, None, path):
        yield from _faults(part, item, where)


def _broken(schema: Schema, value: Value, old: Value, path: str) -> Iterator[str]:
    yield from _broken_rules(schema, value, old, path)
    for part, item, where, before in _inside(schema, value, old, path):
        yield from _broken(part, item, before, where)


def _inside(schema: Schema, value: Value, old: Value, path: str) -> Iterator[tuple[Schema, Value, str, Value]]:
    """Yield the parts of a value that a schema describes: their schema, themselves, their place, and what was there before."""
    if isinstance(value, list) and "items" in schema:
        yield from ((schema["items"], item, f"{path}[{place}]", None) for place, item in enumerate(value))
    elif isinstance(value, Mapping):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        before = old if isinstance(old, Mapping) else {}
        for key, item in value.items():
            part = properties.get(key, others)
            if part is not None and (path or key not in _ALWAYS):
                yield part, item, _child(path, key), before.get(key)


def _type(schema: Schema) -> str:
    return "integer or string" if INT_OR_STRING in schema else str(schema["type"])


def _has_wrong_type(schema: Schema, value: Value) -> bool:
    wanted: tuple[type, ...] = (int, str) if INT_OR_STRING in schema else _TYPES[schema["type"]]
    return not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted)


def _mismatch(schema: Schema, value: Value) -> tuple[str, str]:
    """Return how the API server calls the type of a value, in quotes, and the type that it wants instead."""
    if schema.get("format") in _RANGES and isinstance(value, bool | float | Mapping):
        return ('"float64"' if isinstance(value, float) else '""'), str(schema["format"])
    return f'"{_name_of(value)}"', _type(schema)


def _name_of(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return next(name for name, types in _TYPES.items() if isinstance(value, types))


def _limits(schema: Schema, value: Value, path: str) -> Iterator[Problem]:
    yield from _unlisted(schema, value, path)
    if isinstance(value, str):
        yield from _text_limits(schema, value, path)
    elif isinstance(value, int | float):
        yield from _number_limits(schema, value, path)
    elif isinstance(value, Sequence | Mapping):
        yield from _size_limits(schema, value, path)


def _unlisted(schema: Schema, value: Value, path: str) -> Iterator[Problem]:
    if "enum" in schema and value not in schema["enum"]:
        known = ", ".join(map(_shown, schema["enum"]))
        yield Problem(f"{path}: Unsupported value: {_shown(value)}: supported values: {known}")


def _text_limits(schema: Schema, value: str, path: str) -> Iterator[Problem]:
    """Yield the first limit that a text breaks."""
    if len(value) > schema.get("maxLength", len(value)):
        yield Problem(f"{path}: Too long: may not be more than {schema['maxLength']} bytes")
    elif len(value) < schema.get("minLength", 0):
        yield _outside(path, _shown(value), f"{path} in body should be at least {schema['minLength']} chars long")
    elif "pattern" in schema and not _pattern(schema["pattern"]).search(value):
        yield _outside(path, _shown(value), f"{path} in body should match '{schema['pattern']}'")


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _number_limits(schema: Schema, value: float, path: str) -> Iterator[Problem]:
    yield from _outside_range(schema, value, path)
    if value < schema.get("minimum", value):
        yield _outside(path, _shown(value), f"{path} in body should be greater than or equal to {schema['minimum']}")
    if value > schema.get("maximum", value):
        yield _outside(path, _shown(value), f"{path} in body should be less than or equal to {schema['maximum']}")


def _outside_range(schema: Schema, value: Value, path: str) -> Iterator[Problem]:
    """Yield that a number is none of those that its format holds: too large, or broken."""
    size = _RANGES.get(schema.get("format", ""))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if size is not None and is_number and (value != int(value) or not -size <= value < size):
        text = f"Checked value must be of type integer with format {schema['format']} in {path}"
        yield _outside("", '""', text)


def _size_limits(schema: Schema, value: Sequence[Value] | Mapping[str, Value], path: str) -> Iterator[Problem]:
    least = schema.get("minItems", 0)
    if len(value) < least:
        yield _outside(path, str(len(value)), f"{path} in body should have at least {least} items")
    most: int = schema.get("maxItems") or schema.get("maxProperties") or len(value)
    if len(value) > most:
        yield Problem(f"{path}: Too many: {len(value)}: must have at most {most} items")


def _broken_rules(schema: Schema, value: Value, old: Value, path: str) -> Iterator[str]:
    """Yield the rules that do not hold; one about what was there before asks nothing of what is new."""
    for rule in schema.get(VALIDATIONS, ()):
        if old is None and "oldSelf" in rule["rule"]:
            continue
        try:
            holds = compile_rule(rule["rule"], "self", "oldSelf").holds({"self": value, "oldSelf": old})
        except CelError as problem:
            yield _invalid(path, f'"{_type(schema)}"', f"{problem} evaluating rule: {rule['message']}")
            continue
        if not holds:
            shown = "" if isinstance(value, Mapping | list) else f"{_shown(value)}: "
            where = f"{path}{rule.get('fieldPath', '')}".lstrip(".")
            yield f"{where or '<nil>'}: Invalid value: {shown}{rule['message']}"


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _invalid(path: str, value: str, message: str) -> str:
    return f"{path or '<nil>'}: Invalid value: {value}: {message}"


def _outside(path: str, value: str, message: str) -> Problem:
    """Return that a value is of the right form, but outside its bounds."""
    return Problem(_invalid(path, value, message), is_about_form=False)


def _shown(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
