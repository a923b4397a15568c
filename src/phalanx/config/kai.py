"""Configurations of the profile kai: actions in order, plugins that are switched or set, options of the process."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from phalanx.config.volcano import read_flags
from phalanx.errors import ConfigError
from phalanx.kai.usage_window import read_window
from phalanx.session.policy import PluginPolicy, Policy

DEFAULT_PLUGINS = (
    "predicates", "nodetypes", "proportion", "priority", "elastic", "kubeflow", "ray", "nodeavailability", "gpusharingorder",
    "gpupack",
    "resourcetype", "subgrouporder", "taskorder", "nominatednode", "dynamicresources", "nodeplacement", "minruntime", "topology",
)  # fmt: skip
"""In the order in which they are opened."""
INERT_PLUGINS = ("snapshot", "reflectjoborder")
"""Accepted: they answer HTTP requests in KAI and decide nothing."""
OPTIONS: Mapping[str, object] = {
    "allowConsolidatingReclaim": True, "maxConsolidationPreemptees": 16, "stalenessGracePeriodSeconds": 60,
    "schedulingSignatures": True, "bindBackoffLimit": -1, "fullHierarchyFairness": True, "restrictNodeScheduling": False,
    "queueDepthPerAction": {}, "usage": {},
}  # fmt: skip
KEYS = ("profile", "actions", "plugins", "options", "flags")


def read_kai_policy(config: Mapping[str, object], *, actions: Sequence[str], plugins: Sequence[str]) -> Policy:
    """Read a configuration; `actions` and `plugins` are the names that exist."""
    for key in config:
        if key not in KEYS:
            raise ConfigError(f"configuration.{key}: unknown key of profile 'kai'; known: {', '.join(sorted(KEYS))}")
    names = tuple(name.strip() for name in str(config.get("actions", ", ".join(actions))).split(",") if name.strip())
    for name in names:
        if name not in actions:
            raise ConfigError(f"actions: unknown action {name!r}; known: {', '.join(actions)}")
    tier = _read_plugins(_section(config, "plugins"), plugins)
    options = read_options(_section(config, "options"), actions, "options")
    return replace(kai_policy(names, tier, options), flags=read_flags(config.get("flags") or {}))


def kai_policy(actions: tuple[str, ...], plugins: tuple[PluginPolicy, ...], options: Mapping[str, object]) -> Policy:
    """Return a policy that decides by KAI's rules. This is the one place that says what they differ in from Volcano's."""
    return Policy(
        actions, (plugins,), catalogue="kai", dialect="kai", has_tiers=False, options=options, follows_shards=True,
        tries_all_gangs=True, reads_kai_queues=True, counts_all_gangs=True, books_are_live=True, evictions_free_devices=True,
        binds_by_request=True,
        victim_rule="all-agree", best_effort_members="with-gang", unready_nodes="refused", unknown_drivers="uncounted",
    )  # fmt: skip


def read_options(given: Mapping[str, object], actions: Sequence[str], where: str) -> Mapping[str, object]:
    """Return all options, those that are given checked; `where` says in an error who gave them."""
    for key, value in given.items():
        if key not in OPTIONS:
            raise ConfigError(f"{where}.{key}: unknown option; known: {', '.join(sorted(OPTIONS))}")
        if key == "queueDepthPerAction":
            _check_depths(_mapping(value, f"{where}.{key}"), actions, f"{where}.{key}")
        elif key == "usage":
            read_window(_mapping(value, f"{where}.{key}"), f"{where}.{key}")
        else:
            _check_kind(key, value, where)
    return {**OPTIONS, **given}


def _check_kind(key: str, value: object, where: str) -> None:
    is_switch = isinstance(OPTIONS[key], bool)
    if isinstance(value, bool) != is_switch or not isinstance(value, int):
        wanted = "true or false" if is_switch else "a whole number"
        raise ConfigError(f"{where}.{key}: {value!r} is wrong; write {wanted}")


def _check_depths(depths: Mapping[str, object], actions: Sequence[str], where: str) -> None:
    for name, depth in depths.items():
        if name not in actions:
            raise ConfigError(f"{where}.{name}: unknown action; known: {', '.join(actions)}")
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < -1:
            raise ConfigError(f"{where}.{name}: {depth!r} is not a number of jobs; write 0 or more, or -1 for all")


def _section(config: Mapping[str, object], key: str) -> Mapping[str, object]:
    return _mapping(config.get(key) or {}, key)


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: expected a mapping, got {type(value).__name__}")
    return value


def check_plugin(name: str, known: Sequence[str], where: str) -> None:
    """Refuse a plugin that does not exist."""
    if name not in known and name not in INERT_PLUGINS:
        raise ConfigError(f"{where}.{name}: unknown plugin; known: {', '.join(sorted((*known, *INERT_PLUGINS)))}")


def _read_plugins(given: Mapping[str, object], known: Sequence[str]) -> tuple[PluginPolicy, ...]:
    chosen = {name: PluginPolicy(name) for name in DEFAULT_PLUGINS if name in known}
    for name, value in given.items():
        check_plugin(name, known, "plugins")
        entry = _mapping(value, f"plugins.{name}")
        if entry.get("enabled") is False or name in INERT_PLUGINS:
            chosen.pop(name, None)
            chosen.pop("nodetypes" if name == "predicates" else "", None)
        else:
            chosen[name] = PluginPolicy(name, arguments=_mapping(entry.get("arguments") or {}, f"plugins.{name}.arguments"))
    return tuple(chosen.values())
