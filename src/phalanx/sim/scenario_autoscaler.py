"""The section `autoscaler` of a scenario file."""

import re
from functools import partial

import yaml

from phalanx.errors import SnapshotError
from phalanx.model.resources import amount_of
from phalanx.sim.node_pools import AutoscalerSettings, NodePool, NodeTemplate, Stockout
from phalanx.sim.scenario_values import (
    FilePlace,
    Read,
    read_list,
    read_mapping,
    read_one_of,
    read_seconds,
    read_some_seconds,
    read_span,
    read_switch,
    read_text,
    read_whole,
)

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = re.compile("[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")
MOST_NODES = 10_000
"""In a pool."""


def read_autoscaler(place: FilePlace, node: yaml.Node) -> AutoscalerSettings:
    """Read how the autoscaler works, and its pools."""
    found = read_mapping(place, node, FIELDS, needed=("pools",))
    settings = AutoscalerSettings(**{SETTING_BY_FIELD[name]: value for name, value in found.items()})
    _refuse_pools(settings.pools, place.at("pools"), node)
    if settings.max_backoff < settings.backoff:
        raise place.wrong(node, f"maxBackoff is shorter than backoff, {settings.backoff:g} s; write at least as much")
    return settings


def _refuse_pools(pools: tuple[NodePool, ...], place: FilePlace, node: yaml.Node) -> None:
    if not pools:
        raise place.wrong(node, "an autoscaler needs a pool; write for example - {name: gpu, max: 8, template: {...}}")
    names = [pool.name for pool in pools]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise place.wrong(node, f"{twice!r} is there twice; give each pool a name of its own")


def _pool_name(place: FilePlace, node: yaml.Node) -> str:
    name = read_text(place, node)
    if not _NAME.fullmatch(name):
        raise place.wrong(node, f"{name!r} is not the name of a node; write lower case letters, digits and '-', at most 50")
    return name


def _pool(place: FilePlace, node: yaml.Node) -> NodePool:
    found = read_mapping(place, node, POOL_FIELDS, needed=("name", "max", "template"))
    pool = NodePool(**{POOL_SETTING_BY_FIELD.get(name, name): value for name, value in found.items()})
    if not 1 <= pool.max <= MOST_NODES:
        raise place.at("max").wrong(node, f"{pool.max} is not possible; write a number from 1 to {MOST_NODES}")
    if pool.min > pool.max:
        raise place.at("min").wrong(node, f"{pool.min} is more than max, {pool.max}; write at most as many")
    return pool


def _template(place: FilePlace, node: yaml.Node) -> NodeTemplate:
    fields: dict[str, Read] = {
        "allocatable": partial(_texts, _quantity), "labels": partial(_texts, _any_text), "annotations": partial(_texts, _any_text),
        "taints": partial(read_list, _taint),
    }  # fmt: skip
    return NodeTemplate(**read_mapping(place, node, fields, needed=("allocatable",)))


def _texts(read: Read, place: FilePlace, node: yaml.Node) -> dict[str, str]:
    """Read a mapping whose names are free."""
    if not isinstance(node, yaml.MappingNode):
        raise place.wrong(node, "expected a mapping, such as {cpu: 8, memory: 32Gi}")
    return {str(key.value): read(place.at(str(key.value)), value) for key, value in node.value}


def _any_text(place: FilePlace, node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise place.wrong(node, "expected text")
    return str(node.value)


def _quantity(place: FilePlace, node: yaml.Node) -> str:
    text = read_text(place, node)
    try:
        amount = amount_of(place.path.rpartition(".allocatable.")[2], text)
    except SnapshotError as problem:
        raise place.wrong(node, str(problem)) from problem
    if amount < 0:
        raise place.wrong(node, f"{text!r} is less than nothing; write for example 8 or 32Gi")
    return text


def _taint(place: FilePlace, node: yaml.Node) -> dict[str, str]:
    fields: dict[str, Read] = {"key": read_text, "value": _any_text, "effect": partial(read_one_of, EFFECTS)}
    return read_mapping(place, node, fields, needed=("key", "effect"))


def _stockout(place: FilePlace, node: yaml.Node) -> Stockout:
    fields: dict[str, Read] = {"nodes": read_whole, "at": read_seconds, "until": read_some_seconds}
    found = Stockout(**read_mapping(place, node, fields, needed=("nodes",)))
    if found.until <= found.at:
        raise place.at("until").wrong(node, f"{found.until:g} s is not after its beginning, {found.at:g} s; write a later time")
    return found


def _fraction(place: FilePlace, node: yaml.Node) -> float:
    text = read_text(place, node)
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise place.wrong(node, f"{text!r} is not a fraction; write a number from 0 to 1, such as 0.1")
    return found


FIELDS: dict[str, Read] = {
    "scanInterval": read_some_seconds, "unneededTime": read_seconds, "delayAfterAdd": read_seconds, "backoff": read_some_seconds,
    "maxBackoff": read_some_seconds, "atomic": read_switch, "keepForPending": read_switch, "pools": partial(read_list, _pool),
}  # fmt: skip
"""What the section may hold."""
SETTING_BY_FIELD = {
    "scanInterval": "scan_interval", "unneededTime": "unneeded_time", "delayAfterAdd": "delay_after_add", "backoff": "backoff",
    "maxBackoff": "max_backoff", "atomic": "is_atomic", "keepForPending": "keeps_for_pending", "pools": "pools",
}  # fmt: skip
POOL_FIELDS: dict[str, Read] = {
    "name": _pool_name, "template": _template, "min": read_whole, "max": read_whole, "delay": read_span, "failureRate": _fraction,
    "stockouts": partial(read_list, _stockout),
}  # fmt: skip
"""What an entry of `pools` may hold."""
POOL_SETTING_BY_FIELD = {"failureRate": "failure_rate"}
