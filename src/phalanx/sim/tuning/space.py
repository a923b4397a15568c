"""Which settings a search may change, and between which bounds: derived from a policy, or read from a file.

Numbers and durations say how much, switches and words say what is right. So a search changes numbers and durations of its own
accord, and switches and words only where a file names them. A weight may become 0; any other number that is 1 or more stays
so; what is 0 or never, and so switched off, stays off.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from phalanx.config.reference import arguments, in_full
from phalanx.errors import ConfigError
from phalanx.model.duration import seconds_of
from phalanx.session.policy import Policy

Value = int | float | str | bool
Values = Mapping[str, Value]
"""Chosen values by the name of the setting."""
Document = dict[str, Any]
PLUGINS, ACTIONS, QUEUES = "plugins", "actions", "queues"
OWNERS = (PLUGINS, ACTIONS)
MOST, FACTOR = 10, 10
"""A number is searched up to so much, or so many times its present value; a duration from and to so many times less and more."""
HIGHEST_WEIGHT_OF_QUEUE = 8
WITHOUT_EFFECT = "Accepted, without effect"
"""How the meaning of an argument begins that is there for the sake of old configurations."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, and what it may be."""

    section: str
    """Whose it is: `plugins`, `actions` or `queues`."""
    owner: str
    key: str
    default: Value | None
    low: float = 0
    high: float = 0
    choices: tuple[Value, ...] = ()
    is_whole: bool = True
    is_duration: bool = False
    is_log: bool = False

    @property
    def name(self) -> str:
        """What it is called in reports and files."""
        return f"{self.owner}: {self.key}"

    def written(self, value: Value) -> Value:
        """Return a chosen value as it is written into a configuration."""
        return f"{value:g}s" if self.is_duration and not isinstance(value, str) else value

    def as_data(self) -> Document:
        """Return it as plain data."""
        bounds = (
            {"choices": list(self.choices)} if self.choices else {"from": self.written(self.low), "to": self.written(self.high)}
        )
        return {"setting": self.name, "default": self.default, **bounds}


# --- from a policy -------------------------------------------------------------------------------------------------------


def derived(policy: Policy) -> list[Setting]:
    """Return the numbers and durations of the actions and plugins of a policy."""
    if not policy.has_tiers:
        raise ConfigError(f"--space: which settings of profile {policy.catalogue!r} to search is not known; name a file with them")
    names = {PLUGINS: list(dict.fromkeys(plugin.name for plugin in policy.plugins())), ACTIONS: list(dict.fromkeys(policy.actions))}
    return [setting for section in OWNERS for owner in names[section] for setting in _settings_of(policy, section, owner)]


def _settings_of(policy: Policy, section: str, owner: str) -> Iterator[Setting]:
    present = _present(policy, section, owner)
    for key, entry in (arguments()[section].get(owner) or {}).items():
        value = present.get(key, entry.get("default"))
        if not entry["meaning"].startswith(WITHOUT_EFFECT):
            yield from _around(section, owner, key, value)


def _present(policy: Policy, section: str, owner: str) -> Mapping[str, Any]:
    if section == ACTIONS:
        return policy.arguments_by_action.get(owner, {})
    return next(plugin.arguments for plugin in policy.plugins() if plugin.name == owner)


def _around(section: str, owner: str, key: str, value: object) -> Iterator[Setting]:
    """Yield a setting around its present value, if that is a number or a duration."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        is_weight = "weight" in key.lower()
        if value > 0 or is_weight:
            low = 0 if is_weight or value < 1 else 1
            yield Setting(section, owner, key, value, low, max(MOST, FACTOR * value), is_whole=isinstance(value, int))
    elif (seconds := seconds_of(str(value))) is not None and seconds > 0:
        low = max(round(seconds / FACTOR), 1)
        yield Setting(section, owner, key, str(value), low, round(seconds * FACTOR), is_duration=True, is_log=True)


def of_queues(weights: Mapping[str, float]) -> list[Setting]:
    """Return the weights of queues."""
    return [Setting(QUEUES, name, "weight", round(weight), 1, HIGHEST_WEIGHT_OF_QUEUE) for name, weight in sorted(weights.items())]


# --- from a file ---------------------------------------------------------------------------------------------------------


def read_space(document: object, policy: Policy, where: str) -> list[Setting]:
    """Read a file of settings: ``plugins: {binpack: {binpack.weight: {from: 0, to: 10}}}``."""
    if not isinstance(document, dict) or not document or not set(document) <= {PLUGINS, ACTIONS, QUEUES}:
        raise ConfigError(f"{where}: write 'plugins:', 'actions:' or 'queues:', and below it whose settings to search")
    found = []
    for section, owners in document.items():
        for owner, keys in _mapping(owners, f"{where}: {section}").items():
            place = f"{where}: {section}.{owner}"
            entries = {"weight": keys} if section == QUEUES else _mapping(keys, place)
            present = {} if section == QUEUES else _known_present(policy, section, owner, place)
            found += [_read(section, owner, (key, present.get(key)), entry, f"{place}.{key}") for key, entry in entries.items()]
    return found


def _known_present(policy: Policy, section: str, owner: str, place: str) -> Mapping[str, Any]:
    names = policy.actions if section == ACTIONS else [plugin.name for plugin in policy.plugins()]
    if owner not in names:
        raise ConfigError(f"{place}: not in the configuration; it has: {', '.join(dict.fromkeys(names))}")
    defaults = {key: entry.get("default") for key, entry in (arguments()[section].get(owner) or {}).items()}
    return {**defaults, **_present(policy, section, owner)}


def _read(section: str, owner: str, present: tuple[str, Value | None], entry: object, place: str) -> Setting:
    key, value = present
    given = _mapping(entry, place)
    if set(given) == {"choices"} and isinstance(given["choices"], list) and given["choices"]:
        return Setting(section, owner, key, value, choices=tuple(given["choices"]))
    if not {"from", "to"} <= set(given) <= {"from", "to", "log"}:
        raise ConfigError(f"{place}: write {{from: 0, to: 10}}, with 'log: true' for a logarithmic scale, or {{choices: [a, b]}}")
    low, high = (_bound(given[name], f"{place}.{name}") for name in ("from", "to"))
    if low[0] >= high[0] or (given.get("log") and low[0] <= 0):
        raise ConfigError(f"{place}: 'from' must be less than 'to', and more than 0 on a logarithmic scale")
    is_whole = float(low[0]).is_integer() and float(high[0]).is_integer() and not isinstance(given["to"], float)
    return Setting(
        section, owner, key, value, low[0], high[0], is_whole=is_whole, is_duration=low[1] or high[1], is_log=bool(given.get("log"))
    )  # fmt: skip


def _bound(value: object, place: str) -> tuple[float, bool]:
    """Return a bound, and whether it is a duration."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value, False
    seconds = seconds_of(str(value))
    if seconds is None:
        raise ConfigError(f"{place}: {value!r} is neither a number nor a duration such as 90s")
    return seconds, True


def _mapping(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ConfigError(f"{place}: expected a mapping, got {type(value).__name__}")
    return value


# --- chosen values -------------------------------------------------------------------------------------------------------


def configuration(policy: Policy, settings: Sequence[Setting], values: Values) -> Document:
    """Return a configuration in full, with chosen values instead of those of a policy."""
    document = deepcopy(in_full(policy))
    for setting in settings:
        if setting.name in values and setting.section != QUEUES:
            _arguments_in(document, setting)[setting.key] = setting.written(values[setting.name])
    return document


def _arguments_in(document: Document, setting: Setting) -> Document:
    """Return where the arguments of an action or a plugin stand in a configuration."""
    if setting.section == ACTIONS:
        entries = document.setdefault("configurations", [])
        found = next((entry for entry in entries if entry["name"] == setting.owner), None)
        if found is None:
            found = {"name": setting.owner}
            entries.append(found)
    elif "tiers" in document:
        found = next(plugin for tier in document["tiers"] for plugin in tier["plugins"] if plugin["name"] == setting.owner)
    else:
        found = document["plugins"][setting.owner]
    place: Document = found.setdefault("arguments", {})
    return place


def weights_of_queues(settings: Sequence[Setting], values: Values) -> dict[str, int]:
    """Return the chosen weights of queues."""
    return {
        setting.owner: int(values[setting.name]) for setting in settings if setting.section == QUEUES and setting.name in values
    }
