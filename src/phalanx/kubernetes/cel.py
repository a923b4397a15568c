"""A small evaluator for the CEL expressions that select devices; `cel_rules.py` adds what rules about objects need.

    device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model in ["a100", "h100"]
    device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0

It has what device selectors use: the fields of `device`, comparisons, `in`, `&&`, `||`, `!`, `?:`, lists, `has`,
`cel.bind`, `quantity`, `semver` and some methods of text. Arithmetic, macros such as `exists` and optional fields are
left out; an expression that needs them does not compile. Nothing is handed to Python's own evaluator, nesting is
limited, and no pattern of `matches` can run away (`model/patterns.py`).

As in CEL, an attribute that the device lacks is an error and not false, unless `&&` or `||` has its answer anyway.

There are few expressions and many devices, so an expression is compiled once into nested Python functions, which are called for
every device without any parsing. What is outside of the subset is refused when it is compiled: an expression never selects
devices by a guess at what it means.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from phalanx.kubernetes.cel_values import (
    FUNCTIONS,
    METHODS,
    RELATIONS,
    CelError,
    CelList,
    CelSyntaxError,
    DeviceView,
    lookup,
    truth,
)  # fmt: skip
from phalanx.model.storage import Device

LONGEST_EXPRESSION = 10 * 1024
"""As in the API server; what is longer never reaches a real cluster."""
DEEPEST_NESTING = 24
"""Parsing recurses some ten calls per level: an object must not be able to exhaust Python's stack."""

Scope: TypeAlias = Mapping[str, object]
Run: TypeAlias = Callable[[Scope], object]
Step: TypeAlias = Callable[[Scope, object], object]


@dataclass(frozen=True, slots=True)
class CompiledSelector:
    """A compiled expression that selects devices."""

    text: str
    run: Run

    def matches(self, driver: str, device: Device) -> bool:
        """Tell whether the device is selected; raises CelError when the expression has no answer for it."""
        return truth(self.run({"device": DeviceView(driver, device)}))


@lru_cache(maxsize=4096)
def compile_selector(text: str) -> CompiledSelector:
    """Return the compiled expression; raises CelSyntaxError when it is outside of what is supported."""
    if len(text) > LONGEST_EXPRESSION:
        raise CelSyntaxError(f"expression of {len(text)} characters; the limit is {LONGEST_EXPRESSION}")
    return CompiledSelector(text, Parser(text).whole())


def _decided_by(answer: bool, parts: Sequence[Run]) -> Run:
    """Return `&&` (decided by false) or `||` (by true): a part that decides makes errors of the others vanish."""

    def run(scope: Scope) -> object:
        # CEL's logical operators commute: `missing || true` is true, whichever comes first. So an error is kept until every other
        # part had its say.
        failure: CelError | None = None
        for part in parts:
            try:
                if truth(part(scope)) is answer:
                    return answer
            except CelError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return not answer

    return run


@dataclass(frozen=True, slots=True)
class Path:
    """A value and the steps that lead on from it."""

    first: Run
    steps: Sequence[Step]

    def __call__(self, scope: Scope) -> object:
        value = self.first(scope)
        for step in self.steps:
            value = step(scope, value)
        return value


def _has(argument: Run) -> Run:
    """Tell whether the last field of a path is there; the others must be. What can have no fields has none."""
    if not isinstance(argument, Path):
        raise CelSyntaxError("'has' asks for a field")
    # Only the last step may be missing: `has(a.b.c)` is an error where `b` is missing, as in CEL.
    before, last = Path(argument.first, argument.steps[:-1]), argument.steps[-1]

    def run(scope: Scope) -> object:
        value = before(scope)
        try:
            last(scope, value)
        except CelError:
            return False
        return True

    return run


_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d+|0x[0-9a-fA-F]{1,16}|\d{1,19})(?![\w.])"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>&&|\|\||[=!<>]=|[-+*/%!<>(){}\[\].,?:])"
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


class Parser:
    """Turns text into one callable. Long chains become lists, so that only brackets and branches nest."""

    def __init__(self, text: str, names: Sequence[str] = ("device",)) -> None:
        self._tokens = list(_tokens(text))
        self._place = 0
        self._depth = 0
        self._names = list(names)

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
        run = self._conditional()
        self._depth -= 1
        return run

    def _conditional(self) -> Run:
        condition = self._any()
        if not self._took("?"):
            return condition
        then = self._expression()
        self._expect(":")
        other = self._expression()
        return lambda scope: then(scope) if truth(condition(scope)) else other(scope)

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
        first = self._operand()
        if self._ahead not in RELATIONS:
            return first
        test, second = RELATIONS[self._next()[1]], self._operand()
        if self._ahead in RELATIONS:
            raise CelSyntaxError("comparisons do not chain; join them with &&")
        return lambda scope: test(first(scope), second(scope))

    def _operand(self) -> Run:
        """Read what is compared."""
        return self._unary()

    def _unary(self) -> Run:
        turns = 0
        while self._took("!"):
            turns += 1
        run = self._constant(-self._number(*self._next())) if self._took("-") else self._member()
        return (lambda scope: truth(run(scope)) is (turns % 2 == 0)) if turns else run

    def _number(self, kind: str, token: str) -> int | float:
        if kind != "number":
            raise CelSyntaxError(f"expected a number, found {token!r}")
        return float(token) if "." in token else int(token, 0 if token.startswith("0x") else 10)

    def _member(self) -> Run:
        first = self._primary()
        steps: list[Step] = []
        while self._ahead in (".", "["):
            steps.append(self._field() if self._next()[1] == "." else self._index())
        return Path(first, steps) if steps else first

    def _index(self) -> Step:
        key = self._expression()
        self._expect("]")
        return lambda scope, value: lookup(value, key(scope))

    def _field(self) -> Step:
        name = self._name()
        if not self._took("("):
            return lambda _, value: lookup(value, name)
        arguments = self._list(")")
        method = METHODS.get((name, len(arguments)))
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
            return lambda scope: CelList(item(scope) for item in items)
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
            raise CelSyntaxError(f"unknown name {name!r}; expressions read {', '.join(map(repr, self._names))}")
        return lambda scope: scope[name]

    def _function(self, name: str) -> Run:
        arguments = self._list(")")
        if name == "has" and len(arguments) == 1:
            return _has(arguments[0])
        function = FUNCTIONS.get(name)
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
