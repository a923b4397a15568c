"""Arguments of plugins and actions, read into typed settings. A wrong key names itself and the nearest right one."""

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from phalanx.errors import ConfigError
from phalanx.model.duration import grace_of, seconds_of
from phalanx.session.policy import PluginPolicy

LARGEST = 2**31 - 1
"""Of a whole number; a product of a weight and a score must stay inside 64 bits."""


class Arguments:
    """The arguments of one plugin or action. Every known key is read once; `done` refuses the rest."""

    __slots__ = ("_known", "_owner", "_prefixes", "_values")

    def __init__(self, owner: str, values: Mapping[str, object], *, prefixes: Sequence[str] = ()) -> None:
        """Wrap the values; keys that start with one of `prefixes` are free."""
        self._owner, self._values, self._known, self._prefixes = owner, values, list[str](), tuple(prefixes)

    def integer(self, key: str, default: int) -> int:
        """Read a whole number."""
        value = self._get(key, default)
        try:
            number = int(str(value))
        except ValueError:
            raise self._wrong(key, value, "a whole number") from None
        if abs(number) > LARGEST:
            raise self._wrong(key, value, f"between -{LARGEST} and {LARGEST}")
        return number

    def number(self, key: str, default: float) -> float:
        """Read a number."""
        value = self._get(key, default)
        try:
            number = float(str(value))
        except ValueError:
            raise self._wrong(key, value, "a number") from None
        if not math.isfinite(number):
            raise self._wrong(key, value, "a finite number")
        return number

    def at_least(self, key: str, default: float, least: float) -> float:
        """Read a number that has a lower bound."""
        number = self.number(key, default)
        if number < least:
            raise self._wrong(key, number, f"a number of {least:g} or more")
        return number

    def switch(self, key: str, default: bool) -> bool:
        """Read true or false."""
        value = self._get(key, default)
        text = str(value).lower()
        if text not in ("true", "false"):
            raise self._wrong(key, value, "true or false")
        return text == "true"

    def seconds(self, key: str, default: str | None) -> float | None:
        """Read a duration such as ``1h30m``; None when there is neither one nor a default."""
        value = str(self._get(key, default or ""))
        seconds = seconds_of(value)
        if value and seconds is None:
            raise self._wrong(key, value, "a duration; write for example '1h30m'")
        return seconds

    def grace(self, key: str, default: str) -> float:
        """Read a period of grace, in seconds; `inf` when it never ends."""
        value = str(self._get(key, default))
        seconds = grace_of(value)
        if seconds is None:
            raise self._wrong(key, value, "a period; write seconds, a duration such as '90s', or 'never'")
        return seconds

    def text(self, key: str, default: str) -> str:
        """Read a text."""
        return str(self._get(key, default))

    def choice(self, key: str, default: str, choices: Sequence[str]) -> str:
        """Read one of a few words."""
        value = self.text(key, default)
        if value not in choices:
            raise ConfigError(f"plugin {self._owner!r}, argument {key!r}: {value!r} is unknown; write {_either(choices)}")
        return value

    def raw(self, key: str) -> object:
        """Read a value of any form; None when absent."""
        return self._get(key, None)

    def done(self) -> None:
        """Refuse keys that nobody asked for."""
        for key in self._values:
            if key not in self._known and not key.startswith(self._prefixes or ("\0",)):
                raise setting_error(self._owner, key, self._known)

    def _get(self, key: str, default: object) -> object:
        self._known.append(key)
        value = self._values.get(key)
        return default if value is None else value

    def _wrong(self, key: str, value: object, wanted: str) -> ConfigError:
        return ConfigError(f"plugin {self._owner!r}, argument {key!r}: {value!r} is not {wanted}")


def _either(choices: Sequence[str]) -> str:
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}"


class PlainPlugin:
    """What plugins without settings have in common: a name, and that they refuse every argument."""

    name = ""

    def __init__(self, policy: PluginPolicy) -> None:
        """Refuse arguments."""
        self.policy = policy
        Arguments(self.name, policy.arguments).done()


def setting_error(plugin: str, key: str, known: Sequence[str]) -> ConfigError:
    """Return the error for an argument that the plugin does not have."""
    hint = nearest(key, known) if known else "; it takes no arguments"
    return ConfigError(f"plugin {plugin!r}, argument {key!r}: unknown setting{hint}")


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the hint for a name that does not exist: what was probably meant, or all that there are."""
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(known))}"
