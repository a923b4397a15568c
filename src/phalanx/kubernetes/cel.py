"""A small evaluator for the CEL expressions that select devices. Used by `claims.py`; knows nothing of claims or nodes.

    device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model in ["a100", "h100"]
    device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0

It has what device selectors use: the fields of `device`, comparisons, `in`, `&&`, `||`, `!`, `?:`, lists, `has`,
`cel.bind`, `quantity`, `semver` and some methods of text. Arithmetic, macros such as `exists` and optional fields are
left out; an expression that needs them does not compile. Nothing is handed to Python's own evaluator, nesting is
limited, and patterns of `matches` are limited to forms that cannot run away.

As in CEL, an attribute that the device lacks is an error and not false, unless `&&` or `||` has its answer anyway.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from phalanx.errors import PhalanxError, SnapshotError
from phalanx.model.quantity import parse_quantity
from phalanx.model.storage import Device

LONGEST_EXPRESSION = 10 * 1024
DEEPEST_NESTING = 24
LONGEST_MATCHED_TEXT = 256

Scope: TypeAlias = Mapping[str, object]
Run: TypeAlias = Callable[[Scope], object]
Step: TypeAlias = Callable[[Scope, object], object]


class CelError(PhalanxError):
    """An expression has no answer for this device."""


class CelSyntaxError(CelError):
    """An expression cannot be understood, whatever the device."""


class MissingKey(CelError):
    """The device does not have this attribute or capacity."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled expression."""

    text: str
    run: Run

    def matches(self, driver: str, device: Device) -> bool:
        """Tell whether the device is selected; raises CelError when the expression has no answer for it."""
        return _truth(self.run({"device": _DeviceView(driver, device)}))


@lru_cache(maxsize=4096)
def compile_selector(text: str) -> Selector:
    """Return the compiled expression; raises CelSyntaxError when it is outside of what is supported."""
    if len(text) > LONGEST_EXPRESSION:
        raise CelSyntaxError(f"expression of {len(text)} characters; the limit is {LONGEST_EXPRESSION}")
    return Selector(text, _Parser(text).whole())


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
        parts = before.split(".") if before else []
        return cls((*numbers, not parts, tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)))


class _DeviceView:
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


def _lookup(value: object, key: object) -> object:
    """Return `value.key` or `value[key]`."""
    if isinstance(value, _DeviceView) and isinstance(key, str):
        return value.field(key)
    if isinstance(value, _Domains) and isinstance(key, str):
        return value.names(key)
    if isinstance(value, dict) and isinstance(key, str):
        if key not in value:
            raise MissingKey(f"no such key: {key}")
        return value[key]
    raise CelError("no such overload")


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise CelError(f"expected true or false, got {value!r}")
    return value


def _as_version(value: object, other: object) -> object:
    """Read a text that meets a version: attributes of type version arrive as text."""
    return Version.parse(value) if isinstance(value, str) and isinstance(other, Version) else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(left: object, right: object) -> bool:
    """Compare as CEL does: numbers by value, anything else only with its own kind."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if _is_number(left) and _is_number(right):
        return left == right
    left, right = _as_version(left, right), _as_version(right, left)
    return type(left) is type(right) and left == right


def _order(left: object, right: object) -> int:
    """Return the sign of `left - right` for two texts, two numbers or two truths."""
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    if isinstance(left, int | float) and isinstance(right, int | float) and _is_number(left) == _is_number(right):
        return (left > right) - (left < right)
    raise CelError("no such overload")


def _contains(item: object, container: object) -> bool:
    if isinstance(container, tuple):
        return any(_equal(item, each) for each in container)
    if isinstance(container, dict | _Domains) and isinstance(item, str):
        return item in container if isinstance(container, dict) else bool(container.names(item))
    raise CelError("no such overload")


_RELATIONS: dict[str, Callable[[object, object], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": lambda left, right: _order(left, right) < 0,
    "<=": lambda left, right: _order(left, right) <= 0,
    ">": lambda left, right: _order(left, right) > 0,
    ">=": lambda left, right: _order(left, right) >= 0,
    "in": _contains,
}


def _text(value: object) -> str:
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


_ATOM = r"(?:[^\\()\[\]{}*+?|^$]|\\[dwsDWS.\-]|\[\^?[\w .:/-]+\])"
_TAME_PATTERN = re.compile(rf"\^?(?:{_ATOM}[*+?]?)*\$?")
_MOST_REPEATS = 3


def _pattern_matches(text: str, pattern: str) -> bool:
    """Search for a pattern. Without groups and with few repeats the time is a small power of the length of the text."""
    is_tame = _TAME_PATTERN.fullmatch(pattern) and len(re.findall(r"(?<!\\)[*+?]", pattern)) <= _MOST_REPEATS
    if not is_tame or len(text) > LONGEST_MATCHED_TEXT:
        raise CelError(f"matches({pattern!r}): only short patterns without groups and alternatives are supported")
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise CelError(f"matches({pattern!r}): {error}") from error


_FUNCTIONS: dict[str, Callable[[object], object]] = {
    "quantity": lambda text: Quantity.parse(_text(text)),
    "semver": lambda text: Version.parse(_text(text)),
}

_METHODS: dict[tuple[str, int], Callable[..., object]] = {
    ("compareTo", 1): _difference,
    ("isLessThan", 1): lambda left, right: _difference(left, right) < 0,
    ("isGreaterThan", 1): lambda left, right: _difference(left, right) > 0,
    ("startsWith", 1): lambda text, part: _text(text).startswith(_text(part)),
    ("endsWith", 1): lambda text, part: _text(text).endswith(_text(part)),
    ("contains", 1): lambda text, part: _text(part) in _text(text),
    ("matches", 1): lambda text, pattern: _pattern_matches(_text(text), _text(pattern)),
    ("lowerAscii", 0): lambda text: _text(text).lower(),
    ("upperAscii", 0): lambda text: _text(text).upper(),
}


def _decided_by(answer: bool, parts: Sequence[Run]) -> Run:
    """Return `&&` (decided by false) or `||` (by true): a part that decides makes errors of the others vanish."""

    def run(scope: Scope) -> object:
        failure: CelError | None = None
        for part in parts:
            try:
                if _truth(part(scope)) is answer:
                    return answer
            except CelError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return not answer

    return run


def _has(argument: Run) -> Run:
    def run(scope: Scope) -> object:
        try:
            argument(scope)
        except MissingKey:
            return False
        return True

    return run


_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d+|0x[0-9a-fA-F]{1,16}|\d{1,19})(?![\w.])"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>&&|\|\||[=!<>]=|[-!<>()\[\].,?:])"
    r"|(?P<end>$))"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "`": "`", "?": "?"}
_CONSTANTS: dict[str, object] = {"true": True, "false": False, "null": None}


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while True:
        match = _TOKEN.match(text, place)
        if match is None:
            raise CelSyntaxError(f"character {place + 1}: {text[place : place + 10]!r} is not understood")
        kind = match.lastgroup or ""
        yield kind, match[kind]
        if kind == "end":
            return
        place = match.end()


def _unescape(literal: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise CelSyntaxError(f"escape {match[0]!r} is not supported")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", replaced, literal[1:-1])


class _Parser:
    """Turns text into one callable. Long chains become lists, so that only brackets and branches nest."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._place = 0
        self._depth = 0
        self._names = ["device"]

    def whole(self) -> Run:
        run = self._expression()
        self._expect("")
        return run

    @property
    def _ahead(self) -> str:
        kind, token = self._tokens[self._place]
        return f"{kind} literal" if kind in ("text", "number") else token

    def _next(self) -> tuple[str, str]:
        self._place += 1
        return self._tokens[self._place - 1]

    def _took(self, token: str) -> bool:
        if self._ahead != token:
            return False
        if token:
            self._place += 1
        return True

    def _expect(self, token: str) -> None:
        if not self._took(token):
            raise CelSyntaxError(f"expected {token or 'the end'!r}, found {self._ahead!r}")

    def _expression(self) -> Run:
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            raise CelSyntaxError(f"nested deeper than {DEEPEST_NESTING} levels")
        run = self._choice()
        self._depth -= 1
        return run

    def _choice(self) -> Run:
        condition = self._any()
        if not self._took("?"):
            return condition
        then = self._expression()
        self._expect(":")
        other = self._expression()
        return lambda scope: then(scope) if _truth(condition(scope)) else other(scope)

    def _any(self) -> Run:
        parts = [self._all()]
        while self._took("||"):
            parts.append(self._all())
        return _decided_by(True, parts) if len(parts) > 1 else parts[0]

    def _all(self) -> Run:
        parts = [self._relation()]
        while self._took("&&"):
            parts.append(self._relation())
        return _decided_by(False, parts) if len(parts) > 1 else parts[0]

    def _relation(self) -> Run:
        first = self._unary()
        if self._ahead not in _RELATIONS:
            return first
        test, second = _RELATIONS[self._next()[1]], self._unary()
        if self._ahead in _RELATIONS:
            raise CelSyntaxError("comparisons do not chain; join them with &&")
        return lambda scope: test(first(scope), second(scope))

    def _unary(self) -> Run:
        turns = 0
        while self._took("!"):
            turns += 1
        run = self._constant(-self._number(*self._next())) if self._took("-") else self._member()
        return (lambda scope: _truth(run(scope)) is (turns % 2 == 0)) if turns else run

    def _number(self, kind: str, token: str) -> int | float:
        if kind != "number":
            raise CelSyntaxError(f"expected a number, found {token!r}")
        return float(token) if "." in token else int(token, 0 if token.startswith("0x") else 10)

    def _member(self) -> Run:
        first = self._primary()
        steps: list[Step] = []
        while self._ahead in (".", "["):
            steps.append(self._field() if self._next()[1] == "." else self._index())
        if not steps:
            return first

        def run(scope: Scope) -> object:
            value = first(scope)
            for step in steps:
                value = step(scope, value)
            return value

        return run

    def _index(self) -> Step:
        key = self._expression()
        self._expect("]")
        return lambda scope, value: _lookup(value, key(scope))

    def _field(self) -> Step:
        name = self._name()
        if not self._took("("):
            return lambda _, value: _lookup(value, name)
        arguments = self._list(")")
        method = _METHODS.get((name, len(arguments)))
        if method is None:
            raise CelSyntaxError(f"method {name!r} with {len(arguments)} arguments is not supported")
        return lambda scope, value: method(value, *(argument(scope) for argument in arguments))

    def _name(self) -> str:
        kind, token = self._next()
        if kind != "name":
            raise CelSyntaxError(f"expected a name, found {token!r}")
        return token

    def _list(self, end: str) -> list[Run]:
        items: list[Run] = []
        while not self._took(end):
            items.append(self._expression())
            if not self._took(","):
                self._expect(end)
                break
        return items

    def _primary(self) -> Run:
        kind, token = self._next()
        if kind in ("text", "number"):
            return self._constant(_unescape(token) if kind == "text" else self._number(kind, token))
        if kind == "name":
            return self._named(token)
        if token == "(":
            inner = self._expression()
            self._expect(")")
            return inner
        if token == "[":
            items = self._list("]")
            return lambda scope: tuple(item(scope) for item in items)
        raise CelSyntaxError(f"expected a value, found {token!r}")

    def _constant(self, value: object) -> Run:
        return lambda _: value

    def _named(self, name: str) -> Run:
        if name in _CONSTANTS:
            return self._constant(_CONSTANTS[name])
        if self._took("("):
            return self._function(name)
        if name == "cel" and self._took("."):
            return self._bind()
        if name not in self._names:
            raise CelSyntaxError(f"unknown name {name!r}; expressions read 'device'")
        return lambda scope: scope[name]

    def _function(self, name: str) -> Run:
        arguments = self._list(")")
        if name == "has" and len(arguments) == 1:
            return _has(arguments[0])
        function = _FUNCTIONS.get(name)
        if function is None or len(arguments) != 1:
            raise CelSyntaxError(f"function {name!r} with {len(arguments)} arguments is not supported")
        return lambda scope: function(arguments[0](scope))

    def _bind(self) -> Run:
        """Read the rest of `cel.bind(name, value, expression)`."""
        for token in ("bind", "("):
            self._expect(token)
        name = self._name()
        self._expect(",")
        value = self._expression()
        self._expect(",")
        self._names.append(name)
        body = self._expression()
        self._names.pop()
        self._expect(")")
        return lambda scope: body({**scope, name: value(scope)})
