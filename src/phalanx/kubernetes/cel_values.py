"""The values of CEL expressions: how they compare, what is inside them, and what can be asked of them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from phalanx.errors import PhalanxError, SnapshotError
from phalanx.model.patterns import compile_pattern
from phalanx.model.quantity import parse_quantity
from phalanx.model.storage import Device

MOST_VALUES = 10_000
"""In one list, with the lists inside of it. An expression of the longest text that is allowed writes fewer."""


class CelError(PhalanxError):
    """An expression has no answer for this device."""


class CelSyntaxError(CelError):
    """An expression cannot be understood, whatever the device."""


class MissingKey(CelError):
    """The device does not have this attribute or capacity."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount, as in `quantity("40Gi")`. Equal amounts are equal however they are written."""

    amount: Fraction | int

    @classmethod
    def parse(cls, text: str) -> "Quantity":
        """Read an amount."""
        try:
            return cls(parse_quantity(text))
        except SnapshotError as error:
            raise CelError(f"quantity({text!r}): not a quantity") from error


class CelList(tuple[object, ...]):
    """A list that an expression writes. It knows how many values are in it, those of inner lists among them.

    With `cel.bind` a list can hold another one a hundred times, which holds a third one a hundred times, and so on: to compare two
    of those takes longer than anybody waits.
    """

    size: int

    def __new__(cls, items: Iterable[object]) -> Self:
        """Make a list; one with too many values has no answer."""
        found = super().__new__(cls, items)
        found.size = sum(item.size if isinstance(item, CelList) else 1 for item in found)
        if found.size > MOST_VALUES:
            raise CelError(f"a list of {found.size} values; the limit is {MOST_VALUES}")
        return found


_VERSION = re.compile(r"(\d{1,18})\.(\d{1,18})\.(\d{1,18})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version as something that compares: release numbers, then pre-releases before the release."""

    amount: tuple[object, ...]

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Read a version such as 1.2.3 or 2.0.0-rc.1; what follows a plus sign does not count."""
        match = _VERSION.fullmatch(text)
        if match is None:
            raise CelError(f"semver({text!r}): not a semantic version")
        numbers, before = tuple(map(int, match.group(1, 2, 3))), match[4]
        # Numeric parts come before others and compare as numbers; a release (no parts: True) comes after its pre-releases.
        parts = before.split(".") if before else []
        return cls((*numbers, not parts, tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)))


class DeviceView:
    """The `device` of an expression; attributes are looked up only when asked for."""

    __slots__ = ("device", "driver")

    def __init__(self, driver: str, device: Device) -> None:
        self.driver, self.device = driver, device

    def field(self, name: str) -> object:
        match name:
            case "driver":
                return self.driver
            case "attributes":
                return _Domains(self.driver, self.device.attributes)
            case "capacity":
                amounts = tuple((key, Quantity(amount)) for key, amount in self.device.capacity)
                return _Domains(self.driver, amounts)
            case "allowMultipleAllocations":
                return False
        raise CelError(f"undefined field {name!r}")


@dataclass(frozen=True, slots=True)
class _Domains:
    """Attributes by domain: an unknown one is empty, and a name without domain is in the driver's."""

    driver: str
    pairs: Sequence[tuple[str, object]]

    def names(self, domain: str) -> dict[str, object]:
        found = {}
        for key, value in self.pairs:
            before, slash, after = key.partition("/")
            if (before if slash else self.driver) == domain:
                found[after if slash else key] = value
        return found


def lookup(value: object, key: object) -> object:
    """Return `value.key` or `value[key]`."""
    if isinstance(value, DeviceView) and isinstance(key, str):
        return value.field(key)
    if isinstance(value, _Domains) and isinstance(key, str):
        return value.names(key)
    if isinstance(value, Mapping) and isinstance(key, str):
        if key not in value:
            raise MissingKey(f"no such key: {key}")
        return value[key]
    if isinstance(value, list | tuple) and isinstance(key, int):
        if not 0 <= key < len(value):
            raise CelError(f"index out of bounds: {key}")
        return value[key]
    raise CelError("no such overload")


def truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise CelError(f"expected true or false, got {value!r}")
    return value


def _as_version(value: object, other: object) -> object:
    """Read a text that meets a version: attributes of type version arrive as text."""
    return Version.parse(value) if isinstance(value, str) and isinstance(other, Version) else value


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: object, right: object) -> bool:
    """Compare as CEL does: numbers by value, anything else only with its own kind."""
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if is_number(left) and is_number(right):
        return left == right
    # In Python true equals 1; in CEL values of different types are never equal, except for numbers.
    left, right = _as_version(left, right), _as_version(right, left)
    return type(left) is type(right) and left == right


def _order(left: object, right: object) -> int:
    """Return the sign of `left - right` for two texts, two numbers or two truths."""
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    if isinstance(left, int | float) and isinstance(right, int | float) and is_number(left) == is_number(right):
        return (left > right) - (left < right)
    raise CelError("no such overload")


def contains(item: object, container: object) -> bool:
    if isinstance(container, list | tuple):
        return any(equal(item, each) for each in container)
    if isinstance(container, _Domains) and isinstance(item, str):
        return bool(container.names(item))
    if isinstance(container, Mapping) and isinstance(item, str):
        return item in container
    raise CelError("no such overload")


RELATIONS: dict[str, Callable[[object, object], bool]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": lambda left, right: _order(left, right) < 0,
    "<=": lambda left, right: _order(left, right) <= 0,
    ">": lambda left, right: _order(left, right) > 0,
    ">=": lambda left, right: _order(left, right) >= 0,
    "in": contains,
}


def as_text(value: object) -> str:
    if not isinstance(value, str):
        raise CelError("no such overload")
    return value


def _difference(left: object, right: object) -> int:
    """Return the sign of the difference of two amounts or two versions."""
    left = _as_version(left, right)
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return (left.amount > right.amount) - (left.amount < right.amount)
    if isinstance(left, Version) and isinstance(right, Version):
        return (left.amount > right.amount) - (left.amount < right.amount)
    raise CelError("no such overload")


def _pattern_matches(text: str, pattern: str) -> bool:
    try:
        return compile_pattern(pattern).is_in(text)
    except SnapshotError as problem:
        raise CelError(f"matches({pattern!r}): {problem}") from problem


FUNCTIONS: dict[str, Callable[[object], object]] = {
    "quantity": lambda text: Quantity.parse(as_text(text)),
    "semver": lambda text: Version.parse(as_text(text)),
}

METHODS: dict[tuple[str, int], Callable[..., object]] = {
    ("compareTo", 1): _difference,
    ("isLessThan", 1): lambda left, right: _difference(left, right) < 0,
    ("isGreaterThan", 1): lambda left, right: _difference(left, right) > 0,
    ("startsWith", 1): lambda text, part: as_text(text).startswith(as_text(part)),
    ("endsWith", 1): lambda text, part: as_text(text).endswith(as_text(part)),
    ("contains", 1): lambda text, part: as_text(part) in as_text(text),
    ("matches", 1): lambda text, pattern: _pattern_matches(as_text(text), as_text(pattern)),
    ("lowerAscii", 0): lambda text: as_text(text).lower(),
    ("upperAscii", 0): lambda text: as_text(text).upper(),
}
