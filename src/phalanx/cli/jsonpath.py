"""Templates of `-o jsonpath=`, as kubectl reads them: text, with paths into the answer between braces.

{.items[*].metadata.name}                       a field, all entries of a list, one entry: [0], [-1]
{.metadata.labels['app.kubernetes.io/name']}    a field whose name has dots
{.items[?(@.status.phase=="Pending")].spec}     entries of which a field has a value, or with != another
{range .items[*]}{.metadata.name}{"\\n"}{end}    a part for each
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from phalanx.errors import ConfigError

_PIECE = re.compile(r"\{((?:[^{}\"']|\"[^\"]*\"|'[^']*')*)\}|([^{}]+)")
_STEP = re.compile(
    r"""\.(?P<name>[\w-]+|\*)|\.?\[(?:(?P<number>-?\d+|\*)|'(?P<quoted>[^']*)'|"""
    r"""\?\(@(?P<tested>[^=!<>]*?)\s*(?P<sign>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[\w.-]+)\))\]"""
)
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\\": "\\"}
KNOWN = '{.field}, {.list[0]}, {.list[*]}, {.list[?(@.field=="value")]}, {range ...}{end} and {"text"}'


@dataclass(frozen=True, slots=True)
class _Part:
    """A text, or a path, or a path with parts for each thing that it finds."""

    text: str = ""
    path: str | None = None
    inside: tuple["_Part", ...] = ()
    is_range: bool = False


def filled(template: str, answer: Mapping[str, Any]) -> str:
    """Return a template with what its paths find; several things have a space between them."""
    pieces = _pieces(template)
    return "".join(_written(part, answer) for part in _parts(pieces, template, is_inside=False))


def values_at(path: str, answer: object) -> list[object]:
    """Return everything that a path leads to, as `--sort-by` and custom columns write it: .a.b, a.b or {.a.b}."""
    return _found(_plain(path), answer)


def check_path(path: str) -> None:
    """Refuse a path that cannot be read, also where there is nothing to read it from."""
    _found(_plain(path), {})


def text_of(value: object) -> str:
    """Return a value as it is written into an answer."""
    return _shown(value)


def _plain(path: str) -> str:
    text = path.strip()
    inside = text[1:-1].strip() if text.startswith("{") and text.endswith("}") else text
    return inside if inside.startswith((".", "[", "$", "@")) else f".{inside}"


def _pieces(template: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a template and the contents of its braces, in order."""
    place = 0
    while place < len(template):
        found = _PIECE.match(template, place)
        if found is None:
            raise ConfigError(f"jsonpath: {template!r}: a brace is open or closed alone; write {KNOWN}")
        yield (found[1].strip(), True) if found[1] is not None else (found[2], False)
        place = found.end()


def _parts(pieces: Iterator[tuple[str, bool]], template: str, *, is_inside: bool) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    for text, is_code in pieces:
        if is_code and text == "end" and is_inside:
            return tuple(parts)
        parts.append(_part(text, pieces, template) if is_code else _Part(text))
    if is_inside:
        raise ConfigError(f"jsonpath: {template!r}: a {{range}} has no {{end}}")
    return tuple(parts)


def _part(text: str, pieces: Iterator[tuple[str, bool]], template: str) -> _Part:
    if text[:1] in "\"'" and text[:1] == text[-1:] and len(text) > 1:
        return _Part(re.sub(r"\\[nt\\]", lambda found: _ESCAPES[found[0]], text[1:-1]))
    word, _, rest = text.partition(" ")
    if word == "range":
        return _Part(path=rest.strip(), inside=_parts(pieces, template, is_inside=True), is_range=True)
    return _Part(path=text)


def _written(part: _Part, answer: object) -> str:
    if part.path is None:
        return part.text
    found = _found(part.path, answer)
    if part.is_range:
        return "".join(_written(inner, item) for item in found for inner in part.inside)
    return " ".join(map(_shown, found))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _found(path: str, answer: object) -> list[object]:
    """Return everything that a path leads to."""
    rest, found = path.removeprefix("$").removeprefix("@"), [answer]
    if rest == ".":
        return found
    while rest:
        step = _STEP.match(rest)
        if step is None:
            raise ConfigError(f"jsonpath: {path!r}: {rest!r} is not understood; write {KNOWN}")
        found = [inner for value in found for inner in _taken(value, step)]
        rest = rest[step.end() :]
    return found


def _taken(value: object, step: re.Match[str]) -> Iterator[object]:
    """Yield what one step leads to from a value; nothing where it leads nowhere."""
    entries = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
    if step["sign"]:
        yield from (entry for entry in entries if _passes(entry, step))
    elif "*" in (step["name"], step["number"]):
        yield from entries
    elif step["number"]:
        yield from ([value[int(step["number"])]] if isinstance(value, list) and _is_inside(value, int(step["number"])) else ())
    elif isinstance(value, Mapping):
        name = step["name"] or step["quoted"]
        yield from ([value[name]] if name in value else ())


def _is_inside(entries: list[Any], number: int) -> bool:
    return -len(entries) <= number < len(entries)


def _passes(entry: object, step: re.Match[str]) -> bool:
    wanted = step["value"].strip("\"'")
    is_equal = any(_shown(value) == wanted for value in _found(step["tested"], entry))
    return is_equal == (step["sign"] == "==")
