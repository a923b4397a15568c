"""What a process holds: memory, open files, tasks, timers, and every container in its object graph by name.

A container that grows is found by its path: `live.cache._assumed` is one dict, `live.mirror._names[*]` all values of another one
together. Caches of modules are named after them. Whoever compares two measurements of equal states sees which container leaks.
"""

import asyncio
import gc
import os
import sys
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

OURS = "phalanx"
MEBIBYTE = float(1 << 20)
LEAVES = (str, bytes, int, float, complex, type(None), type, ModuleType, BuiltinFunctionType)
PLAIN = (dict, list, tuple, set, frozenset, deque)
MOST_GROWTH_SHARE, MOST_GROWTH_BYTES = 0.05, 2 * MEBIBYTE
"""Memory may grow by the larger of these: the allocator does not give back every page."""
MOST_NEW_ENTRIES, WITHIN_OTHERS = 200, 10
"""A container may grow by so many entries, and all that are entries of another one by ten times as many together: some forget
what is gone only when there is a hundred of it."""
BOUNDED = ("._gone", "._recorder._known", "phalanx.model.task:_ordinal", "phalanx.model.moment:", "phalanx.model.quantity:")
"""Memories with a bound of their own that take longer than days to fill: uids that have gone and events, 4,096 each; caches."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What there was at a moment."""

    resident_bytes: int
    files: int
    tasks: int
    timers: int
    containers: Mapping[str, int]
    """The length of each container by its path."""
    objects: Mapping[str, int]
    """How many objects of each type the collector knows."""

    def line(self) -> str:
        """Return the totals as a line."""
        total = sum(self.containers.values())
        return (
            f"{self.resident_bytes / MEBIBYTE:7.1f} MiB, {self.files} open files, {self.tasks} tasks, {self.timers} timers, "
            f"{total} entries in {len(self.containers)} containers, {sum(self.objects.values())} objects"
        )


def grown(before: Growth, after: Growth, most_new: int = MOST_NEW_ENTRIES) -> Iterator[str]:
    """Yield what grew between two equal states, as sentences; containers may grow by `most_new` entries."""
    allowed = max(before.resident_bytes * MOST_GROWTH_SHARE, MOST_GROWTH_BYTES)
    if after.resident_bytes > before.resident_bytes + allowed:
        yield f"memory from {before.resident_bytes / MEBIBYTE:.1f} to {after.resident_bytes / MEBIBYTE:.1f} MiB"
    for what, was, now in (("open files", before.files, after.files), ("tasks", before.tasks, after.tasks)):
        if now > was:
            yield f"{what} from {was} to {now}"
    for path, length in after.containers.items():
        is_inside, was = "[*]" in path or "<key>" in path, before.containers.get(path, 0)
        if length > was + most_new * (WITHIN_OTHERS if is_inside else 1) and not any(name in path for name in BOUNDED):
            yield f"{path} from {was} to {length} entries"


def measured(roots: Mapping[str, object], outside: tuple[object, ...] = ()) -> Growth:
    """Measure this process; the containers are those that can be reached from `roots`, but not through `outside`."""
    gc.unfreeze()
    gc.collect()
    loop = asyncio.get_running_loop()
    timers = [timer for timer in loop._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]  # nothing else tells
    found = Counter(type(item).__qualname__ for item in gc.get_objects())
    containers = {**_Walk(outside).containers(roots), **dict(module_containers())}
    gc.freeze()  # the collector has less to look at until the next measurement
    return Growth(_resident(), _files(), len(asyncio.all_tasks()), len(timers), containers, found)


def _resident() -> int:
    """Return how much memory is in use; 0 where nothing tells."""
    place = Path("/proc/self/statm")
    return int(place.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if place.exists() else 0


def _files() -> int:
    place = Path("/proc/self/fd")
    return len(list(place.iterdir())) if place.exists() else 0


class _Walk:
    """Goes through everything that can be reached from some objects."""

    def __init__(self, outside: tuple[object, ...]) -> None:
        self._seen = set(map(id, outside))
        self._found: Counter[str] = Counter()

    def containers(self, roots: Mapping[str, object]) -> dict[str, int]:
        """Return the lengths of containers by path; breadth first, so that each has its shortest name."""
        todo: deque[tuple[str, object]] = deque(roots.items())
        while todo:
            path, item = todo.popleft()
            if id(item) in self._seen or isinstance(item, LEAVES):
                continue
            self._seen.add(id(item))
            self._measure(path, item)
            todo.extend(_parts(path, item))
        return dict(self._found)

    def _measure(self, path: str, item: object) -> None:
        if isinstance(item, PLAIN):
            self._found[path] += len(item)
        elif isinstance(item, np.ndarray):
            self._found[path] += item.size


def _parts(path: str, item: Any) -> Iterator[tuple[str, object]]:  # Any: every kind of object
    """Yield what an object holds, with its name."""
    if isinstance(item, dict):
        yield from ((f"{path}[*]", value) for value in list(item.values()))
        yield from ((f"{path}<key>", key) for key in list(item) if not isinstance(key, LEAVES))
    elif isinstance(item, PLAIN):
        yield from ((f"{path}[*]", value) for value in list(item))
    elif isinstance(item, MethodType):
        yield path, item.__self__
    elif isinstance(item, partial):
        yield from ((f"{path}(partial)", value) for value in (item.func, *item.args, *item.keywords.values()))
    elif isinstance(item, FunctionType):
        yield from (
            (f"{path}({name})", cell) for name, cell in zip(item.__code__.co_freevars, item.__closure__ or (), strict=False)
        )
    elif isinstance(item, CellType):
        yield from _content(path, item)
    elif _is_walked(item):
        yield from _attributes(path, item)


def _content(path: str, cell: CellType) -> Iterator[tuple[str, object]]:
    try:
        yield path, cell.cell_contents
    except ValueError:  # not filled yet
        return


def _is_walked(item: object) -> bool:
    """Tell whether an object is one of ours, or of a library that keeps things for us."""
    module = type(item).__module__.partition(".")[0]
    return module in (OURS, "weakref", "prometheus_client")


def _attributes(path: str, item: object) -> Iterator[tuple[str, object]]:
    yield from ((f"{path}.{name}", value) for name, value in list(getattr(item, "__dict__", {}).items()))
    for kind in type(item).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__weakref__", "__dict__") and hasattr(item, name):
                yield f"{path}.{name}", getattr(item, name)


def module_containers() -> Iterator[tuple[str, int]]:
    """Yield the containers and caches of our modules, and of the classes in them."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != OURS:
            continue
        for attribute, value in list(vars(module).items()):
            yield from _of_module(f"{name}:{attribute}", value, name)
            if isinstance(value, type) and value.__module__ == name:
                for inner, held in list(vars(value).items()):
                    yield from _of_module(f"{name}:{attribute}.{inner}", held, name)


def _of_module(path: str, value: Any, module: str) -> Iterator[tuple[str, int]]:  # Any: whatever a module holds
    if hasattr(value, "cache_info") and getattr(value, "__module__", "") == module:
        yield path, value.cache_info().currsize
    elif isinstance(value, dict | list | set | deque):
        yield path, len(value)
