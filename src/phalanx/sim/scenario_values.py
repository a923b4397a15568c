"""The values of a scenario file, read one by one: a wrong one is refused with its file, line and field."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import yaml

from phalanx.errors import ConfigError
from phalanx.model.duration import RANGE, seconds_in
from phalanx.sim.settings import Span

MOST_TIMES = 10_000

Read = Callable[["FilePlace", yaml.Node], Any]


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where something stands in a file: "scenario.yaml, line 12: nodes[0].event"."""

    file: str
    path: str = ""

    def at(self, name: str) -> "FilePlace":
        """Return the place of a field or an item."""
        return FilePlace(self.file, f"{self.path}{name}" if name.startswith("[") or not self.path else f"{self.path}.{name}")

    def wrong(self, node: yaml.Node, problem: str) -> ConfigError:
        """Return an error about what stands here."""
        where = f"{self.path}: " if self.path else ""
        return ConfigError(f"{self.file}, line {node.start_mark.line + 1}: {where}{problem}")


def read_mapping(place: FilePlace, node: yaml.Node, fields: Mapping[str, Read], *, needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read the fields of a mapping; one that is unknown or missing is wrong."""
    if not isinstance(node, yaml.MappingNode):
        raise place.wrong(node, f"expected a mapping with some of {', '.join(fields)}")
    found: dict[str, Any] = {}
    for key, value in node.value:
        name = str(key.value)
        if name not in fields:
            raise place.at(name).wrong(key, f"unknown; {instead_of(name, tuple(fields))}")
        found[name] = fields[name](place.at(name), value)
    missing = [name for name in needed if name not in found]
    if missing:
        raise place.wrong(node, f"{missing[0]}: missing; an entry here needs {' and '.join(needed)}")
    return found


def read_list(read: Read, place: FilePlace, node: yaml.Node) -> tuple[Any, ...]:
    """Read every entry of a list."""
    if not isinstance(node, yaml.SequenceNode):
        raise place.wrong(node, "expected a list; begin each entry with '- '")
    return tuple(read(place.at(f"[{number}]"), item) for number, item in enumerate(node.value))


def instead_of(name: str, known: tuple[str, ...]) -> str:
    """Say what to write instead of a name that is unknown."""
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"write one of {', '.join(known)}"


def read_text(place: FilePlace, node: yaml.Node) -> str:
    """Read a text that is not empty."""
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        raise place.wrong(node, "expected text")
    return str(node.value)


def leave_out(place: FilePlace, node: yaml.Node) -> None:
    """Leave a part to others."""


def read_one_of(known: tuple[str, ...], place: FilePlace, node: yaml.Node) -> str:
    """Read one of some words."""
    value = read_text(place, node)
    if value not in known:
        raise place.wrong(node, f"{value!r} is unknown; write one of {', '.join(known)}")
    return value


def read_switch(place: FilePlace, node: yaml.Node) -> bool:
    """Read true or false."""
    return read_one_of(("true", "false"), place, node) == "true"


def read_whole(place: FilePlace, node: yaml.Node) -> int:
    """Read a whole number from 0 on."""
    value = read_text(place, node)
    if not value.isascii() or not value.isdigit():
        raise place.wrong(node, f"{value!r} is not a whole number; write 0, 1, 2 and so on")
    return int(value)


def read_count(place: FilePlace, node: yaml.Node) -> int:
    """Read how often, at least once."""
    value = read_whole(place, node)
    if not 1 <= value <= MOST_TIMES:
        raise place.wrong(node, f"{value} is not possible; write a number from 1 to {MOST_TIMES}")
    return value


def read_seconds(place: FilePlace, node: yaml.Node) -> float:
    """Read a duration."""
    return _duration(read_text(place, node), place, node)


def _duration(text: str, place: FilePlace, node: yaml.Node) -> float:
    found = seconds_in(text)
    if found is None:
        raise place.wrong(node, f"{text!r} is not a duration; write for example 90s, 2h30m or a number of seconds")
    return found


def read_some_seconds(place: FilePlace, node: yaml.Node) -> float:
    """Read a duration that is not zero."""
    found = read_seconds(place, node)
    if not found:
        raise place.wrong(node, f"{node.value!r} is no time at all; write for example 1s")
    return found


def read_span(place: FilePlace, node: yaml.Node) -> Span:
    """Read a duration, or a range of durations."""
    low, sign, high = read_text(place, node).partition(RANGE)
    first = _duration(low.strip(), place, node)
    last = _duration(high.strip(), place, node) if sign else first
    if last < first:
        raise place.wrong(node, f"{node.value!r} ends before it begins; write the shorter duration first")
    return Span(first, last)


def place_text(place: FilePlace, node: yaml.Node) -> str:
    """Write where something stands, for what turns out to be wrong later."""
    return f"{place.file}, line {node.start_mark.line + 1}: {place.path}"
