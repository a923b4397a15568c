"""Scenario files: what happens to the objects of a folder, and when.

A scenario is a YAML document of the kind Scenario beside the manifests. Everything in it may be left out. A wrong one is refused
with its file, line and field, and with what may stand there; `FIELDS` and its neighbours are the one list of that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeVar

import yaml

from phalanx.config.policies import profile_names
from phalanx.controllers.builtin import ControllerSettings
from phalanx.dialects.documents import parse_text
from phalanx.dialects.yaml_reader import SafeLoader
from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.duration import RANGE
from phalanx.sim.expectations import Expectation
from phalanx.sim.settings import Checkpoints, Delays, Duration, Settings, Span, seconds_in

API_VERSION, KIND = "phalanx.dev/v1alpha1", "Scenario"
NODE_EVENTS = ("die", "return", "drain", "cordon", "uncordon", "leave", "join")
NEVER = "never"

Value = TypeVar("Value")
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


@dataclass(frozen=True, slots=True)
class Arrival:
    """Gangs of some names that arrive at a moment, and again every so often; or pods that come apart from the rest of theirs."""

    at: float
    gangs: tuple[str, ...] = ()
    every: float = 0.0
    times: int = 1
    where: str = ""
    pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A pod, or all pods of a gang, that fail at a moment."""

    at: float
    pod: str = ""
    gang: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A node or a pod to which binds are refused from a moment on, so many times; for ever if nobody says how often."""

    at: float
    name: str
    times: float
    where: str = ""


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """Something that happens to a node."""

    at: float
    node: str
    event: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a scenario file says."""

    settings: Settings = field(default_factory=Settings)
    controllers: ControllerSettings = field(default_factory=ControllerSettings)
    until: float | None = None
    seed: int | None = None
    arrivals: tuple[Arrival, ...] = ()
    failures: tuple[Failure | Refusal, ...] = ()
    nodes: tuple[NodeEvent, ...] = ()
    expect: tuple[Expectation, ...] = ()


def find_scenarios(text: bytes, name: str) -> list[Scenario]:
    """Return the scenarios in a text of YAML or JSON; `name` is the file that errors name."""
    if KIND.encode() not in text:
        return []
    try:
        documents = parse_text(text, name)
    except SnapshotError:
        return []  # whoever reads the objects of the file says what is wrong with it
    if not any(isinstance(item, dict) and item.get("kind") == KIND for item in documents):
        return []
    nodes = [node for node in yaml.compose_all(text, Loader=SafeLoader) if node is not None and _is_scenario(node)]
    return [_scenario(FilePlace(name), node) for node in nodes]


def _is_scenario(node: yaml.Node) -> bool:
    fields = {key.value: value.value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}
    return fields.get("kind") == KIND and str(fields.get("apiVersion", "")).startswith("phalanx.dev/")


def _scenario(place: FilePlace, node: yaml.Node) -> Scenario:
    found = _mapping(place, node, FIELDS)
    found.pop("apiVersion", None), found.pop("kind", None), found.pop("metadata", None)
    settings = {SETTING_BY_FIELD[name]: found.pop(name) for name in list(found) if name in SETTING_BY_FIELD}
    return Scenario(settings=Settings(**settings), **found)


# --- parts of a document -------------------------------------------------------------------------------------------------


def _mapping(place: FilePlace, node: yaml.Node, fields: Mapping[str, Read], *, needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read the fields of a mapping; one that is unknown or missing is wrong."""
    if not isinstance(node, yaml.MappingNode):
        raise place.wrong(node, f"expected a mapping with some of {', '.join(fields)}")
    found: dict[str, Any] = {}
    for key, value in node.value:
        name = str(key.value)
        if name not in fields:
            raise place.at(name).wrong(key, f"unknown; {_instead(name, tuple(fields))}")
        found[name] = fields[name](place.at(name), value)
    missing = [name for name in needed if name not in found]
    if missing:
        raise place.wrong(node, f"{missing[0]}: missing; an entry here needs {' and '.join(needed)}")
    return found


def _list(read: Read, place: FilePlace, node: yaml.Node) -> tuple[Any, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise place.wrong(node, "expected a list; begin each entry with '- '")
    return tuple(read(place.at(f"[{number}]"), item) for number, item in enumerate(node.value))


def _instead(name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"write one of {', '.join(known)}"


def _text(place: FilePlace, node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        raise place.wrong(node, "expected text")
    return str(node.value)


def _anything(place: FilePlace, node: yaml.Node) -> None:
    """Leave a part to others."""


def _one_of(known: tuple[str, ...], place: FilePlace, node: yaml.Node) -> str:
    value = _text(place, node)
    if value not in known:
        raise place.wrong(node, f"{value!r} is unknown; write one of {', '.join(known)}")
    return value


def _profile(place: FilePlace, node: yaml.Node) -> str:
    """Read the name of a profile, or the path of a configuration as it is given to --config."""
    name, known = _text(place, node), tuple(profile_names())
    if name not in known and not any(character in name for character in "./"):
        raise place.wrong(node, f"there is no profile {name!r}; {_instead(name, known)}")
    return name


def _switch(place: FilePlace, node: yaml.Node) -> bool:
    return _one_of(("true", "false"), place, node) == "true"


def _whole(place: FilePlace, node: yaml.Node) -> int:
    value = _text(place, node)
    if not value.isascii() or not value.isdigit():
        raise place.wrong(node, f"{value!r} is not a whole number; write 0, 1, 2 and so on")
    return int(value)


def _count(place: FilePlace, node: yaml.Node) -> int:
    value = _whole(place, node)
    if not 1 <= value <= MOST_TIMES:
        raise place.wrong(node, f"{value} is not possible; write a number from 1 to {MOST_TIMES}")
    return value


MOST_TIMES = 10_000


def _seconds(place: FilePlace, node: yaml.Node) -> float:
    return _duration(_text(place, node), place, node)


def _duration(text: str, place: FilePlace, node: yaml.Node) -> float:
    found = seconds_in(text)
    if found is None:
        raise place.wrong(node, f"{text!r} is not a duration; write for example 90s, 2h30m or a number of seconds")
    return found


def _more_than_nothing(place: FilePlace, node: yaml.Node) -> float:
    found = _seconds(place, node)
    if not found:
        raise place.wrong(node, f"{node.value!r} is no time at all; write for example 1s")
    return found


def _span(place: FilePlace, node: yaml.Node) -> Span:
    low, sign, high = _text(place, node).partition(RANGE)
    first = _duration(low.strip(), place, node)
    last = _duration(high.strip(), place, node) if sign else first
    if last < first:
        raise place.wrong(node, f"{node.value!r} ends before it begins; write the shorter duration first")
    return Span(first, last)


def _restart(place: FilePlace, node: yaml.Node) -> float | None:
    return None if _text(place, node) == NEVER else _seconds(place, node)


# --- entries -------------------------------------------------------------------------------------------------------------


def _delays(place: FilePlace, node: yaml.Node) -> Delays:
    return Delays(**_mapping(place, node, dict.fromkeys(("bind", "pull", "start", "stop"), _span)))


def _controllers(place: FilePlace, node: yaml.Node) -> ControllerSettings:
    fields: dict[str, Read] = {"schedulers": partial(_list, _text), "hyperNodeLevels": partial(_list, _text)}
    found = _mapping(place, node, fields)
    levels = found.get("hyperNodeLevels", ())
    if len(set(levels)) < len(levels):
        raise place.at("hyperNodeLevels").wrong(node, "a label is given twice; write each once, from narrow to wide")
    usual = ControllerSettings()
    return replace(usual, hypernode_levels=levels, schedulers=frozenset(found.get("schedulers", usual.schedulers)))


def _a_duration(place: FilePlace, node: yaml.Node) -> Duration:
    found = _mapping(place, node, {"match": _text, "duration": _span}, needed=("match", "duration"))
    return Duration(long_name(found["match"]), found["duration"])


def _checkpoints(place: FilePlace, node: yaml.Node) -> Checkpoints:
    found = _mapping(place, node, {"match": _text, "every": _more_than_nothing}, needed=("match", "every"))
    return Checkpoints(long_name(found["match"]), found["every"])


def _arrival(place: FilePlace, node: yaml.Node) -> Arrival:
    names: dict[str, Read] = dict.fromkeys(("gangs", "pods"), partial(_list, _text))
    found = _mapping(place, node, {"at": _seconds, **names, "every": _more_than_nothing, "times": _count}, needed=("at",))
    if ("gangs" in found) == ("pods" in found):
        raise place.wrong(node, "name either gangs or pods, such as gangs: [research/sweep]")
    if ("every" in found) != ("times" in found):
        raise place.wrong(node, "every and times go together; write both or none, such as every: 10m and times: 5")
    if "pods" in found and "times" in found:
        raise place.at("times").wrong(node, "stands only beside gangs; write an entry for each pod")
    what = "gangs" if "gangs" in found else "pods"
    return Arrival(where=_where(place.at(what), node), **{**found, what: tuple(map(long_name, found[what]))})


def _failure(place: FilePlace, node: yaml.Node) -> Failure | Refusal:
    fields: dict[str, Read] = {"at": _seconds, "pod": _text, "gang": _text, "bind": _text, "times": _count}
    found = _mapping(place, node, fields)
    if sum(name in found for name in ("pod", "gang", "bind")) != 1:
        raise place.wrong(node, "name one of pod, gang and bind, such as pod: research/train-0 or bind: gpu-1")
    if "bind" in found:
        return Refusal(found.get("at", 0.0), found["bind"], found.get("times", float("inf")), _where(place, node))
    if "times" in found:
        raise place.at("times").wrong(node, "stands only beside bind; write an entry for each failure")
    if "at" not in found:
        raise place.wrong(node, "at: missing; write when it fails, such as at: 12m")
    names = {key: long_name(value) for key, value in found.items() if key != "at"}
    return Failure(found["at"], **names, where=_where(place, node))


def _node_event(place: FilePlace, node: yaml.Node) -> NodeEvent:
    fields: dict[str, Read] = {"at": _seconds, "node": _text, "event": partial(_one_of, NODE_EVENTS)}
    return NodeEvent(where=_where(place.at("node"), node), **_mapping(place, node, fields, needed=tuple(fields)))


def _expected_gang(place: FilePlace, node: yaml.Node) -> dict[str, Any]:
    fields: dict[str, Read] = {
        "starts": _switch, "finishes": _switch, "evicted": _whole, "why": _text, "after": _text, "waits": _span,
    }  # fmt: skip
    found = _mapping(place, node, fields)
    return {**found, **({"after": long_name(found["after"])} if "after" in found else {})}


def _expected_gangs(place: FilePlace, node: yaml.Node) -> dict[str, dict[str, Any]]:
    if not isinstance(node, yaml.MappingNode):
        raise place.wrong(node, "expected a mapping from gangs to what becomes of them")
    return {long_name(str(key.value)): _expected_gang(place.at(str(key.value)), value) for key, value in node.value}


def _expectation(place: FilePlace, node: yaml.Node) -> Expectation:
    fields: dict[str, Read] = {
        "profiles": partial(_list, _profile), "gangs": _expected_gangs, **dict.fromkeys(("deadlocks", "evictions"), _whole),
    }  # fmt: skip
    return Expectation(where=_where(place, node), **_mapping(place, node, fields))


def _where(place: FilePlace, node: yaml.Node) -> str:
    return f"{place.file}, line {node.start_mark.line + 1}: {place.path}"


def long_name(name: str) -> str:
    """Return a name with its namespace; without one it is in default."""
    return name if "/" in name else f"default/{name}"


FIELDS: Mapping[str, Read] = {
    "apiVersion": partial(_one_of, (API_VERSION,)), "kind": _text, "metadata": _anything,
    "until": _more_than_nothing, "seed": _whole, **dict.fromkeys(("period", "heartbeat", "settling"), _more_than_nothing),
    "longestRest": _seconds, "delays": _delays, "restart": _restart,
    "keepsProgress": _switch, "binder": _switch, "durations": partial(_list, _a_duration),
    "checkpoints": partial(_list, _checkpoints), "arrivals": partial(_list, _arrival),
    "failures": partial(_list, _failure), "nodes": partial(_list, _node_event), "controllers": _controllers,
    "expect": partial(_list, _expectation),
}  # fmt: skip
"""What a scenario may hold."""
SETTING_BY_FIELD = {
    "period": "period", "delays": "delays", "restart": "restart_after", "keepsProgress": "keeps_progress", "durations": "durations",
    "checkpoints": "checkpoints", "binder": "has_binder", "heartbeat": "heartbeat", "settling": "settling",
    "longestRest": "parks_up_to",
}  # fmt: skip
