"""Configuration files of Volcano's form, read strictly: an unknown key, plugin or action is an error that names the nearest one."""

import re
from collections.abc import Mapping, Sequence

from phalanx.errors import ConfigError
from phalanx.session.arguments import nearest
from phalanx.session.policy import FLAGS, OFF_UNLESS_SET, PluginPolicy, Policy, ProcessFlags

KEYS = (
    "apiVersion", "kind", "profile", "actions", "tiers", "configurations", "flags", "metrics", "victimRule", "bestEffortMembers",
    "unreadyNodes", "unknownDrivers",
)  # fmt: skip
SHARDING_MODES = ("none", "hard", "soft")
VICTIM_RULES = ("first-tier", "all-agree")
BEST_EFFORT_RULES = ("after-gang", "with-gang")
UNREADY_RULES = ("by-taints", "refused")
DRIVER_RULES = ("refused", "uncounted")
FLAG_KEYS = ("shardingMode", "shardName", "ignoredProvisioners", "percentageOfNodesToFind", "liftsKueueGate", "gates")
_GATE_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def read_policy(document: object, *, actions: Sequence[str], plugins: Sequence[str]) -> Policy:
    """Read a configuration; `actions` and `plugins` are the names that exist."""
    config = _mapping(document, "configuration")
    _known_keys(config, KEYS, "configuration")
    policy = Policy(
        actions=_read_actions(config.get("actions", "enqueue, allocate, backfill"), actions),
        tiers=_read_tiers(config.get("tiers", []), plugins),
        arguments_by_action=_read_configurations(config.get("configurations") or [], actions),
        flags=read_flags(config.get("flags") or {}),
        victim_rule=_read_rule(config, "victimRule", VICTIM_RULES),
        best_effort_members=_read_rule(config, "bestEffortMembers", BEST_EFFORT_RULES),
        unready_nodes=_read_rule(config, "unreadyNodes", UNREADY_RULES),
        unknown_drivers=_read_rule(config, "unknownDrivers", DRIVER_RULES),
    )
    _reject_clashes(policy)
    return policy


def _read_actions(value: object, known: Sequence[str]) -> tuple[str, ...]:
    text = _text(value, "actions")
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        _known(name, known, "actions", "action")
    if not names:
        raise ConfigError("actions: empty; write for example 'enqueue, allocate, backfill'")
    return names


def _read_tiers(value: object, known: Sequence[str]) -> tuple[tuple[PluginPolicy, ...], ...]:
    tiers = []
    for number, tier in enumerate(_list(value, "tiers")):
        where = f"tiers[{number}]"
        entry = _mapping(tier, where)
        _known_keys(entry, ("plugins",), where)
        plugins = _list(entry.get("plugins") or [], f"{where}.plugins")
        tiers.append(tuple(_read_plugin(plugin, f"{where}.plugins[{place}]", known) for place, plugin in enumerate(plugins)))
    return tuple(tiers)


def _read_plugin(value: object, where: str, known: Sequence[str]) -> PluginPolicy:
    entry = _mapping(value, where)
    _known_keys(entry, ("name", "arguments", *FLAGS), where)
    name = _text(entry.get("name", ""), f"{where}.name")
    _known(name, known, f"{where}.name", "plugin")
    enabled = frozenset(flag for flag in FLAGS if _switch(entry, flag, where))
    return PluginPolicy(name, enabled, _mapping(entry.get("arguments") or {}, f"{where}.arguments"))


def _switch(entry: Mapping[str, object], flag: str, where: str) -> bool:
    value = entry.get(flag)
    if value is None:
        return flag not in OFF_UNLESS_SET
    if not isinstance(value, bool):
        raise ConfigError(f"{where}.{flag}: {value!r} is not a switch; write true or false")
    return value


def _read_configurations(value: object, known: Sequence[str]) -> dict[str, Mapping[str, object]]:
    found = {}
    for number, item in enumerate(_list(value, "configurations")):
        where = f"configurations[{number}]"
        entry = _mapping(item, where)
        _known_keys(entry, ("name", "arguments"), where)
        name = _text(entry.get("name", ""), f"{where}.name")
        _known(name, known, f"{where}.name", "action")
        found[name] = _mapping(entry.get("arguments") or {}, f"{where}.arguments")
    return found


def _read_rule(config: Mapping[str, object], key: str, rules: Sequence[str]) -> str:
    """Return the rule that a key names; Volcano's, which is the first, where it names none."""
    rule = _text(config.get(key, rules[0]), key)
    _known(rule, rules, key, "rule")
    return rule


def read_flags(value: object) -> ProcessFlags:
    """Read options of the scheduler process."""
    entry = _mapping(value, "flags")
    _known_keys(entry, FLAG_KEYS, "flags")
    mode = _text(entry.get("shardingMode") or "none", "flags.shardingMode")
    _known(mode, SHARDING_MODES, "flags.shardingMode", "mode")
    ignored = _list(entry.get("ignoredProvisioners") or [], "flags.ignoredProvisioners")
    lifts = entry.get("liftsKueueGate", False)
    if not isinstance(lifts, bool):
        raise ConfigError(f"flags.liftsKueueGate: expected true or false, got {lifts!r}")
    gates = checked_gates(_list(entry.get("gates") or [], "flags.gates"), "flags.gates")
    return ProcessFlags(mode, _text(entry.get("shardName") or "", "flags.shardName"), frozenset(map(str, ignored)), lifts, gates)


def checked_gates(names: Sequence[object], where: str) -> tuple[str, ...]:
    """Return names of scheduling gates; `where` says in an error who gave them."""
    for name in names:
        if not _GATE_NAME.fullmatch(_text(name, where)):
            raise ConfigError(f"{where}: {name!r} is not the name of a scheduling gate; write for example 'example.com/gang-ready'")
        if str(name).startswith("kueue.x-k8s.io/"):
            raise ConfigError(
                f"{where}: {name!r} belongs to Kueue; for clusters without Kueue write 'liftsKueueGate: true' in flags"
            )
    return tuple(map(str, names))


def _reject_clashes(policy: Policy) -> None:
    for number, tier in enumerate(policy.tiers):
        by_name = {plugin.name: plugin for plugin in tier}
        if "proportion" in by_name and "drf" in by_name and "enableHierarchy" in by_name["drf"].enabled:
            raise ConfigError(f"tiers[{number}]: 'proportion' and 'drf' with enableHierarchy clash; keep one of them in this tier")


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: expected a mapping, got {type(value).__name__}")
    return value


def _list(value: object, where: str) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{where}: expected a list, got {type(value).__name__}")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{where}: expected text, got {type(value).__name__}")
    return value


def _known(name: str, known: Sequence[str], where: str, noun: str) -> None:
    if name not in known:
        raise ConfigError(f"{where}: unknown {noun} {name!r}{nearest(name, known)}")


def _known_keys(entry: Mapping[str, object], known: Sequence[str], where: str) -> None:
    for key in entry:
        if key not in known:
            raise ConfigError(f"{where}.{key}: unknown key{nearest(str(key), known)}")
