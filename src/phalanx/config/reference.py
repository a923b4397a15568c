"""What actions and plugins accept, for `phalanx config show --defaults` and the reference.

The arguments and their defaults stand in `arguments.yaml` beside this file. A test makes every action and plugin with them and
without them and finds no difference, and holds the keys against those that the code asks for. After a change, write the document
anew: `python -m phalanx.config.reference > docs/reference/plugins.md`.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from phalanx.config.builtin import CATALOGUE
from phalanx.session.hooks import HOOKS
from phalanx.session.policy import PluginPolicy, Policy

HIERARCHY = "enableHierarchy"
HIERARCHICAL = ("drf", "capacity", "nodegroup")


@cache
def arguments() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return the arguments of every action and plugin by name: what they mean and their defaults."""
    text = files("phalanx.config").joinpath("arguments.yaml").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Mapping[str, Any]]] = yaml.safe_load(text)
    return found


def defaults_of(name: str) -> dict[str, Any]:
    """Return the arguments of an action or plugin that have a value when nobody sets them, with that value."""
    known = arguments()
    entries = {**known["actions"], **known["plugins"]}.get(name) or {}
    return {key: entry["default"] for key, entry in entries.items() if entry.get("default") is not None}


def switches_of(name: str) -> list[str]:
    """Return the switches that matter to a plugin: those of the hooks that it answers."""
    factory = CATALOGUE.plugins[name]
    found = {hook.switch for hook in HOOKS.values() if hook.switch is not None and hasattr(factory, hook.name)}
    return sorted({*found, HIERARCHY} if name in HIERARCHICAL else found)


def summary(factory: object) -> str:
    """Return what the docstring of an action or plugin says first."""
    return (factory.__doc__ or "").strip().partition("\n")[0]


def spelled_out(policy: Policy) -> str:
    """Write a policy as a configuration that leaves nothing unsaid."""
    return yaml.safe_dump(in_full(policy), sort_keys=False)


def in_full(policy: Policy) -> dict[str, Any]:
    """Return a policy as a configuration that leaves nothing unsaid."""
    if not policy.has_tiers:
        return _in_full_without_tiers(policy)
    return {
        "actions": ", ".join(policy.actions),
        "victimRule": policy.victim_rule,
        "bestEffortMembers": policy.best_effort_members,
        "tiers": [{"plugins": list(map(_plugin, tier))} for tier in policy.tiers],
        "configurations": list(_configurations(policy)),
        "flags": {"shardingMode": policy.flags.sharding_mode, "shardName": policy.flags.shard_name,
                  "ignoredProvisioners": sorted(policy.flags.ignored_provisioners),
                  "liftsKueueGate": policy.flags.lifts_kueue_gate},
    }  # fmt: skip


def _in_full_without_tiers(policy: Policy) -> dict[str, Any]:
    plugins = {plugin.name: {"enabled": True, "arguments": dict(plugin.arguments)} for plugin in policy.plugins()}
    return {"profile": policy.catalogue, "actions": ", ".join(policy.actions), "plugins": plugins, "options": dict(policy.options)}


def _plugin(plugin: PluginPolicy) -> dict[str, Any]:
    switches = {flag: flag in plugin.enabled for flag in switches_of(plugin.name)}
    settings = {**defaults_of(plugin.name), **plugin.arguments}
    return {"name": plugin.name, **switches, **({"arguments": settings} if settings else {})}


def _configurations(policy: Policy) -> Iterator[dict[str, Any]]:
    for name in policy.actions:
        settings = {**defaults_of(name), **policy.arguments_by_action.get(name, {})}
        if settings:
            yield {"name": name, "arguments": settings}


# --- the document --------------------------------------------------------------------------------------------------------

HEAD = """# Actions and plugins

What a [configuration](configuration.md) may name. Actions run one after the other; plugins are asked tier by tier. A wrong
argument is an error that names the nearest right one. This page is written by `python -m phalanx.config.reference`, and a test
holds it against the code.
"""


def document() -> str:
    """Return the page of the reference that describes every action and plugin."""
    known = arguments()
    parts = [HEAD, "## Actions\n", "Arguments of an action stand under `configurations`.\n"]
    parts += [_section(name, summary(action), known["actions"].get(name)) for name, action in CATALOGUE.actions.items()]
    parts += ["## Plugins\n", "A switch is true unless the configuration says otherwise, except `enableHierarchy`.\n"]
    for name, plugin in sorted(CATALOGUE.plugins.items()):
        switches = ", ".join(f"`{switch}`" for switch in switches_of(name))
        about = f"{summary(plugin)}\n\nSwitches: {switches}" if switches else summary(plugin)
        parts.append(_section(name, about, known["plugins"].get(name)))
    return "\n".join(parts)


def _section(name: str, about: str, entries: Mapping[str, Mapping[str, Any]] | None) -> str:
    lines = [f"### {name}", "", about, ""]
    if entries:
        lines += ["| argument | default | meaning |", "| --- | --- | --- |"]
        lines += [f"| `{key}` | {_written(entry.get('default'))} | {entry['meaning']} |" for key, entry in entries.items()]
        lines.append("")
    return "\n".join(lines)


def _written(default: object) -> str:
    if default is None or default == "":
        return "not set"
    return f"`{yaml.safe_dump(default, default_flow_style=True, width=1000).removesuffix('...' + chr(10)).strip()}`"


if __name__ == "__main__":
    print(document(), end="")
