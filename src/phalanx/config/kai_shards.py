"""The policy that a SchedulingShard asks for, by the rules of KAI's operator.

Plugins and actions have priorities, larger ones first, equal ones by name; a shard may switch each of them and change its
priority. `arguments` of a plugin replace those that other fields of the shard give it. Flags of the process become options.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from phalanx.config.kai import INERT_PLUGINS, check_plugin, kai_policy, read_options
from phalanx.errors import ConfigError
from phalanx.model.duration import seconds_of
from phalanx.model.shard import Override, PoolShard
from phalanx.session.policy import PluginPolicy, Policy

PLUGIN_PRIORITIES = {
    "predicates": 1900, "proportion": 1800, "priority": 1700, "nodeavailability": 1600, "resourcetype": 1500, "podaffinity": 1400,
    "elastic": 1300, "kubeflow": 1200, "ray": 1100, "subgrouporder": 1000, "taskorder": 900, "nominatednode": 800,
    "dynamicresources": 700, "minruntime": 600, "topology": 500, "snapshot": 400, "gpupack": 300, "gpuspread": 300,
    "nodeplacement": 200, "gpusharingorder": 100,
}  # fmt: skip
ACTION_PRIORITIES = {"allocate": 500, "consolidation": 400, "reclaim": 300, "preempt": 200, "stalegangeviction": 100}
STRATEGIES = ("binpack", "spread")

_SWITCHES = {
    "use-scheduling-signatures": "schedulingSignatures", "full-hierarchy-fairness": "fullHierarchyFairness",
    "allow-consolidating-reclaim": "allowConsolidatingReclaim", "restrict-node-scheduling": "restrictNodeScheduling",
}  # fmt: skip
_NUMBERS = {"max-consolidation-preemptees": "maxConsolidationPreemptees"}
_SECONDS = {"default-staleness-grace-period": "stalenessGracePeriodSeconds"}
INERT_FLAGS = (
    "schedule-period", "detailed-fit-errors", "schedule-csi-storage", "update-pod-eviction-condition",
    "num-of-status-recording-workers", "qps", "burst", "plugin-server-port", "leader-elect",
)  # fmt: skip
"""Accepted: they do not change what a session decides."""


def policy_of_shard(shard: PoolShard, *, actions: Sequence[str], plugins: Sequence[str]) -> Policy:
    """Return the policy of a shard; `actions` and `plugins` are the names that exist."""
    try:
        return _policy(shard, actions, plugins)
    except ConfigError as problem:
        raise ConfigError(f"SchedulingShard {shard.name}: {problem}") from problem


def _policy(shard: PoolShard, actions: Sequence[str], plugins: Sequence[str]) -> Policy:
    strategies = {kind: _strategy(shard, kind) for kind in ("gpu", "cpu")}
    for name in shard.plugins:
        check_plugin(name, plugins, "spec.plugins")
    for name in shard.actions:
        if name not in actions:
            raise ConfigError(f"spec.actions.{name}: unknown action; known: {', '.join(actions)}")
    names = _by_priority(_default_actions(strategies), ACTION_PRIORITIES, shard.actions)
    policy = kai_policy(tuple(names), tuple(_plugins(shard, strategies)), _options(shard, actions))
    return replace(policy, node_pool=shard.node_pool)


def _strategy(shard: PoolShard, kind: str) -> str:
    strategy = shard.strategies.get(kind) or "binpack"
    if strategy not in STRATEGIES:
        raise ConfigError(f"spec.placementStrategy.{kind}: {strategy!r} is unknown; write 'binpack' or 'spread'")
    return strategy


def _default_actions(strategies: Mapping[str, str]) -> list[str]:
    """Return what runs unless the shard says otherwise: whoever spreads does not want to be moved together again."""
    return [name for name in ACTION_PRIORITIES if name != "consolidation" or "spread" not in strategies.values()]


def _plugins(shard: PoolShard, strategies: Mapping[str, str]) -> list[PluginPolicy]:
    unused = ("gpuspread",) if strategies["gpu"] == "binpack" else ("gpupack", "gpusharingorder")
    names = _by_priority([name for name in PLUGIN_PRIORITIES if name not in unused], PLUGIN_PRIORITIES, shard.plugins)
    arguments = {**shard.arguments, "nodeplacement": strategies}
    found = []
    for name in names:
        own = shard.plugins.get(name, Override()).arguments
        found.append(PluginPolicy(name, arguments=dict(arguments.get(name, {}) if own is None else own)))
        if name == "predicates":
            found.append(PluginPolicy("nodetypes"))
    return [plugin for plugin in found if plugin.name not in INERT_PLUGINS]


def _by_priority(defaults: Sequence[str], priorities: Mapping[str, int], overrides: Mapping[str, Override]) -> list[str]:
    """Return the names that are on, the largest priority first."""

    def is_on(name: str) -> bool:
        said = overrides.get(name, Override()).enabled
        return (name in defaults or name in overrides) if said is None else said

    def priority(name: str) -> int:
        said = overrides.get(name, Override()).priority
        return (priorities[name] if name in defaults else 0) if said is None else said

    names = dict.fromkeys((*defaults, *overrides))
    return sorted(filter(is_on, names), key=lambda name: (-priority(name), name))


def _options(shard: PoolShard, actions: Sequence[str]) -> Mapping[str, object]:
    read_options({"queueDepthPerAction": shard.queue_depths}, actions, "spec")
    read_options({"usage": shard.usage}, actions, "spec.usageDBConfig")
    flags = dict(_option(name, text) for name, text in shard.flags.items() if name not in INERT_FLAGS)
    return read_options(
        {**flags, "queueDepthPerAction": dict(shard.queue_depths), "usage": dict(shard.usage)}, actions, "spec.args"
    )


def _option(flag: str, text: str) -> tuple[str, object]:
    """Return the option that a flag sets, and its value."""
    where = f"spec.args[{flag!r}]"
    if flag in _SWITCHES:
        if text not in ("true", "false"):
            raise ConfigError(f"{where}: {text!r} is not a switch; write 'true' or 'false'")
        return _SWITCHES[flag], text == "true"
    if flag in _NUMBERS:
        return _NUMBERS[flag], _number(text, where)
    if flag in _SECONDS:
        return _SECONDS[flag], _seconds(text, where)
    known = sorted((*_SWITCHES, *_NUMBERS, *_SECONDS, *INERT_FLAGS))
    raise ConfigError(f"{where}: unknown flag; known: {', '.join(known)}")


def _number(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{where}: {text!r} is not a whole number") from None


def _seconds(text: str, where: str) -> int:
    """Return a duration in whole seconds; a negative one is allowed."""
    seconds = seconds_of(text.removeprefix("-"))
    if seconds is None:
        raise ConfigError(f"{where}: {text!r} is not a duration; write for example '60s'")
    return -1 if text.startswith("-") else round(seconds)
