"""The CEL of rules about objects, as CustomResourceDefinitions and admission policies have them.

    self.tasks.all(t, self.tasks.exists_one(u, u.name == t.name))
    self.tasks.map(t, t.replicas).sum() >= self.minAvailable

Beyond the selectors of `cel.py` it has arithmetic, the macros that look at every item of a list or map, literals of maps and
patches, and functions of lists. It is for expressions of our own, which are short and known: nothing bounds their cost.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from phalanx.kubernetes.cel import Parser, Run, Scope, Step
from phalanx.kubernetes.cel_values import (
    FUNCTIONS,
    METHODS,
    CelError,
    CelSyntaxError,
    Quantity,
    as_text,
    equal,
    is_number,
    truth,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A compiled expression and the names it reads."""

    text: str
    run: Run

    def holds(self, scope: Scope) -> bool:
        """Tell whether a rule holds; one without an answer raises CelError."""
        return truth(self.run(scope))

    def value(self, scope: Scope) -> Any:  # Any: what comes out is as the expression says
        """Return what the expression gives."""
        return self.run(scope)


@cache
def compile_rule(source: str, *names: str) -> CompiledRule:
    """Return the compiled expression; `names` are those it may read."""
    return CompiledRule(source, _RuleParser(source, names).whole())


# --- what is asked of every item -----------------------------------------------------------------------------------------


def _bindings(value: object, wanted: int) -> Iterator[tuple[object, ...]]:
    """Yield what the names of a macro stand for, item by item: the item, or its place and itself; of a map the keys."""
    if isinstance(value, Mapping):
        yield from ((key,) if wanted == 1 else (key, item) for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from ((item,) if wanted == 1 else (place, item) for place, item in enumerate(value))
    else:
        raise CelError("no such overload")


def _filtered(bindings: Sequence[Sequence[object]], test: Callable[..., object]) -> list[object]:
    return [binding[-1] for binding in bindings if truth(test(*binding))]


def _mapped(bindings: Sequence[Sequence[object]], *parts: Callable[..., object]) -> list[object]:
    *tests, result = parts
    return [result(*binding) for binding in bindings if all(truth(test(*binding)) for test in tests)]


_MACROS: dict[str, Callable[..., object]] = {
    "all": lambda bindings, test: all(truth(test(*binding)) for binding in bindings),
    "exists": lambda bindings, test: any(truth(test(*binding)) for binding in bindings),
    "exists_one": lambda bindings, test: sum(truth(test(*binding)) for binding in bindings) == 1,
    "filter": _filtered,
    "map": _mapped,
    "transformList": _mapped,
}
_NAMES_BY_MACRO = {"filter": (1,), "map": (1,), "transformList": (2,)}
_PARTS_BY_MACRO = {"map": (1, 2), "transformList": (1, 2)}


# --- arithmetic and functions --------------------------------------------------------------------------------------------


def _plus(left: object, right: object) -> object:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return [*left, *right]
    return _number(left) + _number(right)


def _number(value: object) -> Any:  # Any: whole numbers and others mix
    if not is_number(value):
        raise CelError("no such overload")
    return value


def _items(value: object) -> Sequence[Any]:  # Any: of whatever the list holds
    if not isinstance(value, list | tuple):
        raise CelError("no such overload")
    return value


def _size(value: object) -> int:
    if not isinstance(value, str | list | tuple | Mapping):
        raise CelError("no such overload")
    return len(value)


def _index_of(value: object, item: object) -> int:
    return next((place for place, each in enumerate(_items(value)) if equal(each, item)), -1)


def _written(value: object) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(_number(value))


def _is_quantity(value: object) -> bool:
    try:
        Quantity.parse(as_text(value))
    except CelError:
        return False
    return True


_OPERATIONS: dict[str, Callable[[object, object], object]] = {
    "+": _plus,
    "-": lambda left, right: _number(left) - _number(right),
    "*": lambda left, right: _number(left) * _number(right),
}
_RULE_FUNCTIONS: dict[str, Callable[[object], object]] = {
    **FUNCTIONS,
    "isQuantity": _is_quantity,
    "size": _size,
    "string": _written,
    "int": lambda value: int(_number(value)),
    "dyn": lambda value: value,
    "lists.range": lambda count: list(range(_number(count))),
    "jsonpatch.escapeKey": lambda key: as_text(key).replace("~", "~0").replace("/", "~1"),
}
_RULE_METHODS: dict[tuple[str, int], Callable[..., object]] = {
    **METHODS,
    ("size", 0): _size,
    ("sum", 0): lambda value: sum(map(_number, _items(value))),
    ("max", 0): lambda value: max(map(_number, _items(value))),
    ("indexOf", 1): _index_of,
    ("split", 1): lambda value, mark: as_text(value).split(as_text(mark)),
}
_LIBRARIES = ("lists", "jsonpatch")
_MESSAGES = ("JSONPatch",)


class _RuleParser(Parser):
    """Reads what rules have and selectors have not."""

    def _operand(self) -> Run:
        return self._chain(("+", "-"), lambda: self._chain(("*",), self._unary))

    def _chain(self, signs: tuple[str, ...], part: Callable[[], Run]) -> Run:
        run = part()
        while self._ahead in signs:
            run = _calculated(_OPERATIONS[self._next()[1]], run, part())
        return run

    def _field(self) -> Step:
        kind, name = self._tokens[self._place]
        is_call = self._tokens[self._place + 1][1] == "("
        if kind == "name" and is_call and name in _MACROS:
            self._place += 2
            return self._macro(name)
        if kind == "name" and is_call:
            self._place += 2
            return self._call(name)
        return super()._field()

    def _call(self, name: str) -> Step:
        arguments = self._list(")")
        method = _RULE_METHODS.get((name, len(arguments)))
        if method is None:
            raise CelSyntaxError(f"method {name!r} with {len(arguments)} arguments is not supported")
        return lambda scope, value: method(value, *(argument(scope) for argument in arguments))

    def _macro(self, name: str) -> Step:
        """Read the rest of `list.all(item, test)`: names, then the parts that are worked out for every item."""
        names = self._macro_names(name)
        self._names += names
        parts = self._list(")")
        del self._names[-len(names) :]
        if len(parts) not in _PARTS_BY_MACRO.get(name, (1,)):
            raise CelSyntaxError(f"macro {name!r} with {len(parts)} expressions is not supported")
        macro = _MACROS[name]

        def step(scope: Scope, value: object) -> object:
            bindings = list(_bindings(value, len(names)))
            return macro(bindings, *(_with_names(part, scope, names) for part in parts))

        return step

    def _macro_names(self, macro: str) -> list[str]:
        names = [self._name()]
        self._expect(",")
        if self._tokens[self._place][0] == "name" and self._tokens[self._place + 1][1] == "," and macro not in ("filter", "map"):
            names.append(self._name())
            self._expect(",")
        if len(names) not in _NAMES_BY_MACRO.get(macro, (1, 2)):
            raise CelSyntaxError(f"macro {macro!r} with {len(names)} names is not supported")
        return names

    def _primary(self) -> Run:
        if self._took("{"):
            return self._map()
        if self._took("["):
            items = self._list("]")
            return lambda scope: [item(scope) for item in items]
        return super()._primary()

    def _map(self) -> Run:
        pairs: list[tuple[Run, Run]] = []
        while not self._took("}"):
            key = self._expression()
            self._expect(":")
            pairs.append((key, self._expression()))
            if not self._took(","):
                self._expect("}")
                break
        return lambda scope: {as_text(key(scope)): value(scope) for key, value in pairs}

    def _named(self, name: str) -> Run:
        if name in _MESSAGES and self._took("{"):
            return self._message()
        if name in _LIBRARIES and self._took("."):
            name = f"{name}.{self._name()}"
        return super()._named(name)

    def _message(self) -> Run:
        pairs: list[tuple[str, Run]] = []
        while not self._took("}"):
            name = self._name()
            self._expect(":")
            pairs.append((name, self._expression()))
            if not self._took(","):
                self._expect("}")
                break
        return lambda scope: {name: value(scope) for name, value in pairs}

    def _function(self, name: str) -> Run:
        function = _RULE_FUNCTIONS.get(name)
        if function is None:
            return super()._function(name)
        arguments = self._list(")")
        if len(arguments) != 1:
            raise CelSyntaxError(f"function {name!r} with {len(arguments)} arguments is not supported")
        return lambda scope: function(arguments[0](scope))


def _calculated(operation: Callable[[object, object], object], left: Run, right: Run) -> Run:
    return lambda scope: operation(left(scope), right(scope))


def _with_names(part: Run, scope: Scope, names: Sequence[str]) -> Callable[..., object]:
    return lambda *values: part({**scope, **dict(zip(names, values, strict=True))})
