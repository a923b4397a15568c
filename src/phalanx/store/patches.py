"""The three ways to patch an object, as the API server reads them: merge, strategic merge, and JSON patch.

Documents are never changed in place: a patch returns a new one that shares what it did not touch.

A merge patch replaces every list as a whole. A strategic merge patch joins some lists by a key of their items, so that a kubelet
can write its own condition of a pod and leave those of others alone; which lists, and by which key, is a matter of their types
(`kubernetes_types.py`). Custom kinds have none, and no strategic merge (`web/writes.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from phalanx.errors import ClusterError, Invalid, TooLarge, WrongForm
from phalanx.model.bounds import BODY_BYTES, NESTING, is_too_deep
from phalanx.model.merging import merged
from phalanx.store.kubernetes_types import FieldType, fields_of, type_of

Document = Mapping[str, Any]

MERGE, STRATEGIC, JSON = "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json"
FORMS = (JSON, MERGE, STRATEGIC)
MOST_STEPS = 10_000
"""Operations of a JSON patch, as many as a real API server carries out."""


def patched(document: Document, patch: Any, content_type: str) -> dict[str, Any]:
    """Return the document with the patch applied."""
    if content_type == JSON:
        return _json_patched(document, patch)
    if content_type not in (MERGE, STRATEGIC):
        raise WrongForm(f"the body of the request was in an unknown format - accepted media types include: {', '.join(FORMS)}")
    if not isinstance(patch, Mapping):
        raise ClusterError("a patch of this type is an object")
    if content_type == MERGE:
        return merged(document, patch)
    return _strategic(document, patch, fields_of(type_of(str(document.get("apiVersion")), str(document.get("kind"))) or ""))


def _strategic(document: Document, patch: Document, fields: Mapping[str, FieldType]) -> dict[str, Any]:
    # "$patch" is an order about the map it stands in, not a field: "replace" drops what was there, "delete" the whole map.
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    found = dict(document)
    for name, value in patch.items():
        if name.startswith("$"):
            _carry_out(found, name, value)
        elif value is None or (isinstance(value, Mapping) and value.get("$patch") == "delete"):
            found.pop(name, None)
        else:
            found[name] = _strategic_value(fields.get(name), found.get(name), value)
    return found


def _carry_out(found: dict[str, Any], directive: str, value: Any) -> None:
    """Carry out a directive that names another field; $setElementOrder is ignored, since no reader depends on the order."""
    verb, _, name = directive.partition("/")
    if verb == "$deleteFromPrimitiveList":
        found[name] = [item for item in found.get(name) or () if item not in value]
    elif verb == "$retainKeys":
        for gone in [key for key in found if key not in value]:
            del found[gone]


def _strategic_value(part: FieldType | None, old: Any, value: Any) -> Any:
    inside = fields_of(part.name) if part is not None else {}
    if isinstance(value, Mapping):
        return _strategic(old if isinstance(old, Mapping) else {}, value, inside)
    if not isinstance(value, list) or part is None or part.merge_key is None:
        return value
    if not part.merge_key:
        return list(dict.fromkeys([*(old or []), *value]))
    return _joined(old or [], value, part.merge_key, inside)


def _joined(old: Sequence[Document], items: Sequence[Document], key: str, fields: Mapping[str, FieldType]) -> list[Document]:
    """Merge items into the ones with the same key; new keys are appended, in the order of the patch."""
    by_key = {} if {"$patch": "replace"} in items else {item.get(key): item for item in old}
    for item in items:
        name = item.get(key)
        if item.get("$patch") == "delete":
            by_key.pop(name, None)
        elif "$patch" not in item:
            by_key[name] = _strategic(by_key.get(name, {}), item, fields)
    return list(by_key.values())


def _json_patched(document: Document, steps: Any) -> dict[str, Any]:
    if not isinstance(steps, list):
        raise ClusterError("a JSON patch is a list of operations")
    if len(steps) > MOST_STEPS:
        raise TooLarge(f"The allowed maximum operations in a JSON patch is {MOST_STEPS}, got {len(steps)}")
    found: Any = document
    copied_bytes = 0
    for step in steps:
        copied_bytes += _copied_bytes(found, step)
        if copied_bytes > BODY_BYTES.most:
            raise TooLarge(f"a JSON patch copies too much: {BODY_BYTES.text}")
        found = _step(found, step)
    if is_too_deep(found):
        raise Invalid(f"a JSON patch makes an object that is nested too deeply: {NESTING.text}")
    return dict(found)


def _copied_bytes(document: Any, step: Any) -> int:
    """Return how much an operation adds that nobody has sent: a few lines of copies of copies make terabytes."""
    if not isinstance(step, Mapping) or step.get("op") != "copy":
        return 0
    value = _at(document, _path(step, "from"))
    if is_too_deep(value):
        raise Invalid(f"a JSON patch copies what is nested too deeply: {NESTING.text}")
    return len(msgspec.json.encode(value))


def _path(step: Document, key: str) -> list[str]:
    parts = str(step.get(key, "")).split("/")[1:]
    if len(parts) > NESTING.most:
        raise Invalid(f"a JSON patch names a path that is too deep: {NESTING.text}")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _step(document: Any, step: Document) -> Any:
    path = _path(step, "path")
    match step.get("op"):
        case "add" | "replace" | "remove" as operation:
            return _changed(document, path, operation, step.get("value"))
        case "test":
            if _at(document, path) != step.get("value"):
                raise Invalid("the server rejected our request due to an error in our request")
            return document
        case "move" | "copy" as operation:
            start = _path(step, "from")
            value = _at(document, start)
            rest = _changed(document, start, "remove", None) if operation == "move" else document
            return _changed(rest, path, "add", value)
    raise ClusterError(f"unknown operation {step.get('op')!r} in a JSON patch")


def _at(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        value = value[_index(value, part)] if isinstance(value, list) else value.get(part) if isinstance(value, Mapping) else None
    return value


def _index(items: list[Any], part: str) -> int:
    index = len(items) if part == "-" else int(part) if part.isdigit() else -1
    if not 0 <= index <= len(items):
        raise Invalid(f"a JSON patch names place {part!r} of a list of {len(items)}")
    return index


def _changed(value: Any, path: Sequence[str], operation: str, new: Any) -> Any:
    if not path:
        return new
    head, rest = path[0], path[1:]
    if isinstance(value, list):
        return _changed_list(value, _index(value, head), rest, operation, new)
    if not isinstance(value, Mapping):
        raise Invalid(f"{operation} operation does not apply: {head!r} is to be a part of something that has none")
    found = dict(value)
    if rest:
        if head not in found:
            raise Invalid(f"a JSON patch names {head!r}, which is not there")
        found[head] = _changed(found[head], rest, operation, new)
    elif operation == "remove":
        if head not in found:
            raise Invalid(f"a JSON patch removes {head!r}, which is not there")
        del found[head]
    else:
        found[head] = new
    return found


def _changed_list(items: list[Any], index: int, rest: Sequence[str], operation: str, new: Any) -> list[Any]:
    found = list(items)
    if operation == "add" and not rest:
        found.insert(index, new)
        return found
    if index >= len(found):
        raise Invalid(f"a JSON patch names place {index} of a list of {len(found)}")
    if rest:
        found[index] = _changed(found[index], rest, operation, new)
    elif operation == "remove":
        del found[index]
    else:
        found[index] = new
    return found
