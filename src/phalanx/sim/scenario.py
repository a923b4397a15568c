"""Scenario files: what happens to the objects of a folder, and when.

A scenario is a YAML document of the kind Scenario beside the manifests. Everything in it may be left out. A wrong one is refused
with its file, line and field, and with what may stand there; `FIELDS` and its neighbours are the one list of that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import yaml

from phalanx.config.policies import profile_names
from phalanx.controllers.builtin import ControllerSettings
from phalanx.dialects.documents import parse_text
from phalanx.dialects.yaml_reader import SafeLoader
from phalanx.errors import SnapshotError
from phalanx.sim.expectations import Expectation
from phalanx.sim.scenario_autoscaler import read_autoscaler
from phalanx.sim.scenario_values import (
    FilePlace,
    Read,
    instead_of,
    leave_out,
    place_text,
    read_count,
    read_list,
    read_mapping,
    read_one_of,
    read_seconds,
    read_some_seconds,
    read_span,
    read_switch,
    read_text,
    read_whole,
)  # fmt: skip
from phalanx.sim.settings import Checkpoints, Delays, Duration, Settings

API_VERSION, KIND = "phalanx.dev/v1alpha1", "Scenario"
NODE_EVENTS = ("die", "return", "drain", "cordon", "uncordon", "leave", "join")
NEVER = "never"


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
    found = read_mapping(place, node, FIELDS)
    found.pop("apiVersion", None), found.pop("kind", None), found.pop("metadata", None)
    settings = {SETTING_BY_FIELD[name]: found.pop(name) for name in list(found) if name in SETTING_BY_FIELD}
    return Scenario(settings=Settings(**settings), **found)


# --- entries -------------------------------------------------------------------------------------------------------------


def _profile(place: FilePlace, node: yaml.Node) -> str:
    """Read the name of a profile, or the path of a configuration as it is given to --config."""
    name, known = read_text(place, node), tuple(profile_names())
    if name not in known and not any(character in name for character in "./"):
        raise place.wrong(node, f"there is no profile {name!r}; {instead_of(name, known)}")
    return name


def _restart(place: FilePlace, node: yaml.Node) -> float | None:
    return None if read_text(place, node) == NEVER else read_seconds(place, node)


def _delays(place: FilePlace, node: yaml.Node) -> Delays:
    return Delays(**read_mapping(place, node, dict.fromkeys(("bind", "pull", "start", "stop"), read_span)))


def _controllers(place: FilePlace, node: yaml.Node) -> ControllerSettings:
    fields: dict[str, Read] = {"schedulers": partial(read_list, read_text), "hyperNodeLevels": partial(read_list, read_text)}
    found = read_mapping(place, node, fields)
    levels = found.get("hyperNodeLevels", ())
    if len(set(levels)) < len(levels):
        raise place.at("hyperNodeLevels").wrong(node, "a label is given twice; write each once, from narrow to wide")
    usual = ControllerSettings()
    return replace(usual, hypernode_levels=levels, schedulers=frozenset(found.get("schedulers", usual.schedulers)))


def _a_duration(place: FilePlace, node: yaml.Node) -> Duration:
    found = read_mapping(place, node, {"match": read_text, "duration": read_span}, needed=("match", "duration"))
    return Duration(long_name(found["match"]), found["duration"])


def _checkpoints(place: FilePlace, node: yaml.Node) -> Checkpoints:
    found = read_mapping(place, node, {"match": read_text, "every": read_some_seconds}, needed=("match", "every"))
    return Checkpoints(long_name(found["match"]), found["every"])


def _arrival(place: FilePlace, node: yaml.Node) -> Arrival:
    names: dict[str, Read] = dict.fromkeys(("gangs", "pods"), partial(read_list, read_text))
    found = read_mapping(
        place, node, {"at": read_seconds, **names, "every": read_some_seconds, "times": read_count}, needed=("at",)
    )
    if ("gangs" in found) == ("pods" in found):
        raise place.wrong(node, "name either gangs or pods, such as gangs: [research/sweep]")
    if ("every" in found) != ("times" in found):
        raise place.wrong(node, "every and times go together; write both or none, such as every: 10m and times: 5")
    if "pods" in found and "times" in found:
        raise place.at("times").wrong(node, "stands only beside gangs; write an entry for each pod")
    what = "gangs" if "gangs" in found else "pods"
    return Arrival(where=place_text(place.at(what), node), **{**found, what: tuple(map(long_name, found[what]))})


def _failure(place: FilePlace, node: yaml.Node) -> Failure | Refusal:
    fields: dict[str, Read] = {"at": read_seconds, "pod": read_text, "gang": read_text, "bind": read_text, "times": read_count}
    found = read_mapping(place, node, fields)
    if sum(name in found for name in ("pod", "gang", "bind")) != 1:
        raise place.wrong(node, "name one of pod, gang and bind, such as pod: research/train-0 or bind: gpu-1")
    if "bind" in found:
        return Refusal(found.get("at", 0.0), found["bind"], found.get("times", float("inf")), place_text(place, node))
    if "times" in found:
        raise place.at("times").wrong(node, "stands only beside bind; write an entry for each failure")
    if "at" not in found:
        raise place.wrong(node, "at: missing; write when it fails, such as at: 12m")
    names = {key: long_name(value) for key, value in found.items() if key != "at"}
    return Failure(found["at"], **names, where=place_text(place, node))


def _node_event(place: FilePlace, node: yaml.Node) -> NodeEvent:
    fields: dict[str, Read] = {"at": read_seconds, "node": read_text, "event": partial(read_one_of, NODE_EVENTS)}
    return NodeEvent(where=place_text(place.at("node"), node), **read_mapping(place, node, fields, needed=tuple(fields)))


def _expected_gang(place: FilePlace, node: yaml.Node) -> dict[str, Any]:
    fields: dict[str, Read] = {
        "starts": read_switch, "finishes": read_switch, "evicted": read_whole, "why": read_text, "after": read_text,
        "waits": read_span,
    }  # fmt: skip
    found = read_mapping(place, node, fields)
    return {**found, **({"after": long_name(found["after"])} if "after" in found else {})}


def _expected_gangs(place: FilePlace, node: yaml.Node) -> dict[str, dict[str, Any]]:
    if not isinstance(node, yaml.MappingNode):
        raise place.wrong(node, "expected a mapping from gangs to what becomes of them")
    return {long_name(str(key.value)): _expected_gang(place.at(str(key.value)), value) for key, value in node.value}


def _expectation(place: FilePlace, node: yaml.Node) -> Expectation:
    counts = ("deadlocks", "evictions", *COUNT_BY_FIELD)
    fields: dict[str, Read] = {
        "profiles": partial(read_list, _profile), "gangs": _expected_gangs, **dict.fromkeys(counts, read_whole),
    }  # fmt: skip
    found = read_mapping(place, node, fields)
    return Expectation(where=place_text(place, node), **{COUNT_BY_FIELD.get(name, name): value for name, value in found.items()})


COUNT_BY_FIELD = {"scaleUps": "scale_ups", "nodesDelivered": "nodes_delivered", "nodesGivenBack": "nodes_given_back"}
"""What may be expected of an autoscaler."""


def long_name(name: str) -> str:
    """Return a name with its namespace; without one it is in default."""
    return name if "/" in name else f"default/{name}"


FIELDS: Mapping[str, Read] = {
    "apiVersion": partial(read_one_of, (API_VERSION,)), "kind": read_text, "metadata": leave_out,
    "until": read_some_seconds, "seed": read_whole, **dict.fromkeys(("period", "heartbeat", "settling"), read_some_seconds),
    "longestRest": read_seconds, "delays": _delays, "restart": _restart,
    "keepsProgress": read_switch, "binder": read_switch, "durations": partial(read_list, _a_duration),
    "checkpoints": partial(read_list, _checkpoints), "arrivals": partial(read_list, _arrival),
    "failures": partial(read_list, _failure), "nodes": partial(read_list, _node_event), "controllers": _controllers,
    "autoscaler": read_autoscaler, "expect": partial(read_list, _expectation),
}  # fmt: skip
"""What a scenario may hold."""
SETTING_BY_FIELD = {
    "period": "period", "delays": "delays", "restart": "restart_after", "keepsProgress": "keeps_progress", "durations": "durations",
    "checkpoints": "checkpoints", "binder": "has_binder", "heartbeat": "heartbeat", "settling": "settling",
    "longestRest": "parks_up_to", "autoscaler": "autoscaler",
}  # fmt: skip
