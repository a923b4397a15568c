"""Configurations of the profile kai: actions in order, plugins that are switched or set, options of the process."""

from collections.abc import Mapping, Sequence

from phalanx.core.policy import PluginPolicy, Policy
from phalanx.errors import ConfigError

DEFAULT_PLUGINS = (
    "predicates", "nodetypes", "proportion", "priority", "elastic", "kubeflow", "ray", "nodeavailability", "gpusharingorder",
    "gpupack",
    "resourcetype", "subgrouporder", "taskorder", "nominatednode", "dynamicresources", "nodeplacement", "minruntime", "topology",
)  # fmt: skip
"""In the order in which they are opened."""
OPTIONS = {
    "allowConsolidatingReclaim": True, "maxConsolidationPreemptees": 16, "stalenessGracePeriodSeconds": 60,
    "schedulingSignatures": True, "bindBackoffLimit": -1,
}  # fmt: skip


def read_kai_policy(config: Mapping[str, object], *, actions: Sequence[str], plugins: Sequence[str]) -> Policy:
    """Read a configuration; `actions` and `plugins` are the names that exist."""
    for key in config:
        if key not in ("profile", "actions", "plugins", "options", "flags"):
            raise ConfigError(f"configuration.{key}: unknown key of profile 'kai'; known: actions, options, plugins, profile")
    names = tuple(name.strip() for name in str(config.get("actions", ", ".join(actions))).split(",") if name.strip())
    for name in names:
        if name not in actions:
            raise ConfigError(f"actions: unknown action {name!r}; known: {', '.join(actions)}")
    options = _section(config, "options")
    for key in options:
        if key not in OPTIONS:
            raise ConfigError(f"options.{key}: unknown option; known: {', '.join(sorted(OPTIONS))}")
        _check_kind(key, options[key])
    tier = _read_plugins(_section(config, "plugins"), plugins)
    return Policy(names, (tier,), family="kai", options={**OPTIONS, **options}, victim_rule="all-agree")


def _check_kind(key: str, value: object) -> None:
    is_switch = isinstance(OPTIONS[key], bool)
    if isinstance(value, bool) != is_switch or not isinstance(value, int):
        wanted = "true or false" if is_switch else "a whole number"
        raise ConfigError(f"options.{key}: {value!r} is wrong; write {wanted}")


def _section(config: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = config.get(key) or {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key}: expected a mapping, got {type(value).__name__}")
    return value


def _read_plugins(given: Mapping[str, object], known: Sequence[str]) -> tuple[PluginPolicy, ...]:
    chosen = {name: PluginPolicy(name) for name in DEFAULT_PLUGINS if name in known}
    for name, entry in given.items():
        if name not in known and name != "snapshot":
            raise ConfigError(f"plugins.{name}: unknown plugin; known: {', '.join(sorted(known))}")
        if not isinstance(entry, Mapping):
            raise ConfigError(f"plugins.{name}: expected a mapping, got {type(entry).__name__}")
        if entry.get("enabled") is False or name == "snapshot":
            chosen.pop(name, None)
            chosen.pop("nodetypes" if name == "predicates" else "", None)
        else:
            arguments = entry.get("arguments") or {}
            if not isinstance(arguments, Mapping):
                raise ConfigError(f"plugins.{name}.arguments: expected a mapping, got {type(arguments).__name__}")
            chosen[name] = PluginPolicy(name, arguments=arguments)
    return tuple(chosen.values())
