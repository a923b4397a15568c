"""Sets of fields of an object, as `managedFields` writes them, and what objects hold at them.

A path is a tuple of steps: `f:` and a field or key of a map, `k:` and the keys of an item of a list, `v:` and a value of a set. A
path to an item stands for the item itself, and is there beside those of its fields.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from phalanx.store.object_structure import Structure

Path = tuple[str, ...]
FIELD, ITEM, VALUE, SELF = "f:", "k:", "v:", "."
Json = Any  # whatever JSON holds
_MISSING = object()


def paths_of(value: Json, structure: Structure, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all that a value holds; the empty one for a value as a whole."""
    if isinstance(value, Mapping) and value and not structure.is_atomic:
        for name, inner in value.items():
            yield from paths_of(inner, structure.at(name), (*path, f"{FIELD}{name}"))
    elif isinstance(value, list) and value and (structure.keys or structure.is_set):
        for step, item in steps_of(value, structure):
            yield (*path, step)
            if structure.keys:
                yield from paths_of(item, structure.item, (*path, step))
    else:
        yield path


def steps_of(items: list[Json], structure: Structure) -> Iterator[tuple[str, Json]]:
    """Yield the items of a list that are told apart, with their steps."""
    for item in items:
        yield step_of(item, structure), item


def step_of(item: Json, structure: Structure) -> str:
    """Return the step to an item of a list whose items are told apart; keys that it does not have are left out."""
    if structure.is_set:
        return VALUE + msgspec.json.encode(item).decode()
    keys = {key: item[key] for key in structure.keys if isinstance(item, Mapping) and key in item}
    return ITEM + msgspec.json.encode(keys, order="sorted").decode()


def value_at(value: Json, structure: Structure, path: Path) -> Json:
    """Return what an object holds at a path; something that equals nothing else if there is nothing."""
    for step in path:
        if step.startswith(FIELD):
            name = step.removeprefix(FIELD)
            if not isinstance(value, Mapping) or name not in value:
                return _MISSING
            value, structure = value[name], structure.at(name)
        else:
            found = [item for own, item in steps_of(value, structure) if own == step] if isinstance(value, list) else []
            if not found:
                return _MISSING
            value, structure = found[0], structure.item
    return value


def is_there(value: Json, structure: Structure, path: Path) -> bool:
    """Tell whether an object has something at a path."""
    return value_at(value, structure, path) is not _MISSING


def without(value: Json, structure: Structure, path: Path) -> Json:
    """Return an object without what it has at a path; maps and lists that are empty then go too."""
    step, rest = path[0], path[1:]
    if step.startswith(FIELD):
        name = step.removeprefix(FIELD)
        if not isinstance(value, Mapping) or name not in value:
            return value
        inner = without(value[name], structure.at(name), rest) if rest else None
        others = {key: item for key, item in value.items() if key != name}
        return others if inner in (None, {}, []) else {**value, name: inner}
    if not isinstance(value, list):
        return value
    kept = []
    for own, item in steps_of(value, structure):
        if own != step:
            kept.append(item)
        elif rest:
            kept.append(without(item, structure.item, rest))
    return kept


# --- as managedFields writes them ----------------------------------------------------------------------------------------


def written(paths: Iterable[Path]) -> dict[str, Any]:
    """Return a set of paths as nested maps."""
    found: dict[str, Any] = {}
    ends = [(path, _end(found, path)) for path in sorted(paths)]
    for path, place in ends:
        if place or not path[-1].startswith(FIELD):
            place[SELF] = {}
    return found


def _end(tree: dict[str, Any], path: Path) -> dict[str, Any]:
    for step in path:
        tree = tree.setdefault(step, {})
    return tree


def read(tree: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """Yield the paths of nested maps."""
    if not tree or SELF in tree:
        yield path
    for step, inner in tree.items():
        if step != SELF and isinstance(inner, Mapping):
            yield from read(inner, (*path, step))


def shown(path: Path) -> str:
    """Return a path as people write it, such as `.spec.containers[name="a"].image`."""
    return "".join(map(_shown, path))


def _shown(step: str) -> str:
    if step.startswith(FIELD):
        return f".{step.removeprefix(FIELD)}"
    if step.startswith(VALUE):
        return f"[={step.removeprefix(VALUE)}]"
    keys = msgspec.json.decode(step.removeprefix(ITEM))
    return f"[{','.join(f'{key}={msgspec.json.encode(value).decode()}' for key, value in keys.items())}]"
