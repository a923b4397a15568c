"""What the generator of work may be told, as `jobs=10000,nodes=1000,load=0.8`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from phalanx.errors import ConfigError

PLACE = "generated"
"""Begins every message, as it begins the work on the command line: `generated:jobs=10000`."""
LIMITS: Mapping[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1), "jobs": (1, 1_000_000), "nodes": (1, 100_000), "gpus": (1, 64), "days": (0.01, 366),
    "load": (0.01, 10), "queues": (1, 1000), "sweeps": (0, 1), "rhythm": (0, 1),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GeneratorSettings:
    """What to generate."""

    seed: int = 0
    """The same seed gives the same work."""
    jobs: int = 1000
    """Gangs."""
    nodes: int = 100
    gpus: int = 8
    """Of one node."""
    days: float = 7.0
    """In which gangs are submitted; the first begins at midnight."""
    load: float = 0.9
    """The work of all gangs, in GPU seconds, as a part of what the GPUs could do in these days."""
    queues: int = 4
    sweeps: float = 0.2
    """The part of the gangs that come many at once: small, alike, from one queue."""
    rhythm: float = 0.6
    """How much more than on average is submitted in the afternoon, and less at night; 0 is the same all day."""


_WHOLE = frozenset(field.name for field in fields(GeneratorSettings) if field.type is int)


def read_settings(text: str) -> dict[str, float]:
    """Return the settings in a text such as ``jobs=10000,nodes=1000,seed=7``; an empty text says nothing."""
    found: dict[str, float] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, sign, value = map(str.strip, entry.partition("="))
        if name in found:
            raise ConfigError(f"{PLACE}: {name}: stands twice; write it once")
        if not sign:
            raise ConfigError(f"{PLACE}: {entry!r} has no value; write for example jobs=10000")
        found[name] = _checked(name, value)
    return found


def settings_of(wishes: Mapping[str, float]) -> GeneratorSettings:
    """Return the settings with these wishes; the rest is as usual."""
    found: dict[str, Any] = {name: _checked(name, value) for name, value in wishes.items()}  # int or float, as the field is
    return GeneratorSettings(**found)


def _checked(name: str, value: str | float) -> float:
    if name not in LIMITS:
        raise ConfigError(f"{PLACE}: {name}: unknown setting; write one of: {', '.join(LIMITS)}")
    least, most = LIMITS[name]
    number = _number(value, is_whole=name in _WHOLE)
    if number is None or not least <= number <= most:
        kind = "a whole number" if name in _WHOLE else "a number"
        raise ConfigError(f"{PLACE}: {name}: {value!r} is not possible; write {kind} from {least} to {most}")
    return number


def _number(value: str | float, *, is_whole: bool) -> float | None:
    try:
        number = int(value) if is_whole else float(value)
    except (ValueError, OverflowError):
        return None
    return None if isinstance(value, float) and number != value else number
