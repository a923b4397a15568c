"""Reads YAML event by event, so that no text can exhaust the stack or the memory.

PyYAML composes a graph of nodes and calls itself at every level: a text of 100 kB of brackets ends the process. Here the open
collections are a list, and what aliases stand for is counted. It takes half of the time, too.

A text means what the same object means as JSON: a time stays text, `1e3` is a number, and keys are text. Tags other than those of
JSON's own types are refused.
"""

import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from phalanx.model.bounds import ALIASED_VALUES, DOCUMENTS, NESTING

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML was built without libyaml: slower, the same otherwise
    from yaml import SafeLoader  # type: ignore[assignment]  # the same interface

__all__ = ["SafeLoader", "read_yaml"]

TAG = "tag:yaml.org,2002:"
PLAIN_TAGS = (f"{TAG}int", f"{TAG}float", f"{TAG}bool", f"{TAG}null")


class _Loader(SafeLoader):
    """Resolves plain values as the API server does."""


_REPLACED = ("timestamp", "value", "int", "float")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in _REPLACED]
    for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    f"{TAG}int",
    re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]*|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    f"{TAG}float",
    re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$"),
    list("-+.0123456789"),
)


class _Merge:
    """The key "<<"."""


_MERGE, _NO_KEY, _UNFINISHED = _Merge(), object(), object()


def read_yaml(text: bytes) -> list[object]:
    """Return the documents of a text; raises yaml.YAMLError with the place of what is wrong."""
    loader = _Loader(text)
    try:
        return _Reader(loader).documents()
    finally:
        loader.dispose()


class _Open:
    """A collection that has begun and not ended."""

    __slots__ = ("anchor", "items", "key", "key_mark", "merged", "pairs", "size")

    def __init__(self, event: Any) -> None:  # Any: events of PyYAML have no types
        self.anchor, self.size, self.key, self.key_mark = event.anchor, 1, _NO_KEY, event.start_mark
        self.items: list[object] | None = [] if type(event) is SequenceStartEvent else None
        self.pairs: dict[str, object] = {}
        self.merged: list[tuple[object, Any]] = []

    def take(self, value: object, mark: Any) -> None:
        """Take the next item, key or value."""
        if self.items is not None:
            self.items.append(value)
        elif self.key is _NO_KEY:
            self.key, self.key_mark = value if value is _MERGE else _key(value, mark), mark
        else:
            self._pair(value, mark)

    def _pair(self, value: object, mark: Any) -> None:
        key, self.key = self.key, _NO_KEY
        if key is _MERGE:
            self.merged.append((value, mark))
            return
        assert isinstance(key, str)
        if key in self.pairs:
            hint = "; separate objects with '---'" if key in ("apiVersion", "kind") else ""
            raise _wrong(f"key {key!r} is given twice{hint}", self.key_mark)
        self.pairs[key] = value

    def whole(self) -> object:
        """Return the collection; its own keys come before merged ones, and earlier merged ones before later ones."""
        if self.items is not None:
            return self.items
        if not self.merged:
            return self.pairs
        found: dict[str, object] = {}
        for value, mark in reversed(self.merged):
            for part in reversed(value) if isinstance(value, list) else (value,):
                if not isinstance(part, dict):
                    raise _wrong("expected a mapping or a list of mappings to merge", mark)
                found |= part
        return found | self.pairs


class _Reader:
    """Makes values of the events of one text."""

    def __init__(self, loader: Any) -> None:  # Any: PyYAML has no types for the methods of its C loader
        self._loader = loader
        self._anchors: dict[str, tuple[object, int]] = {}
        self._aliased, self._most_aliased, self._deepest = 0, ALIASED_VALUES.most, NESTING.most
        self._plain: dict[str, object] = {}
        self._numbers: dict[str, Callable[[Any], object]] = dict(
            zip(
                PLAIN_TAGS,
                (loader.construct_yaml_int, loader.construct_yaml_float, loader.construct_yaml_bool, loader.construct_yaml_null),
                strict=True,
            )
        )

    def documents(self) -> list[object]:
        """Return all documents."""
        found: list[object] = []
        most = DOCUMENTS.most
        while type(event := self._loader.get_event()) is not StreamEndEvent:
            if type(event) is DocumentStartEvent:
                if len(found) == most:
                    raise _wrong(f"more documents than that; {DOCUMENTS.text}", event.start_mark)
                found.append(self._document())
        return found

    def _document(self) -> object:
        self._anchors = {}
        opened: list[_Open] = []
        value: object = None
        while True:
            event = self._loader.get_event()
            kind, size = type(event), 1
            if kind is ScalarEvent:
                value, anchor = self._scalar(event), event.anchor
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self._open(opened, event)
                continue
            elif kind is DocumentEndEvent:
                return None if value is _MERGE else value
            elif kind is AliasEvent:
                (value, size), anchor = self._referred_to(event), None
            else:
                done = opened.pop()
                value, size, anchor = done.whole(), done.size, done.anchor
            if anchor:
                self._anchors[anchor] = (value, size)
            if opened:
                opened[-1].size += size
                opened[-1].take(value, event.start_mark)

    def _open(self, opened: list[_Open], event: Any) -> None:
        if event.tag not in (None, "!", f"{TAG}map", f"{TAG}seq"):
            raise _wrong(f"the tag {event.tag!r} is not read; write a plain list or mapping", event.start_mark)
        if len(opened) >= self._deepest:
            raise _wrong(f"nested too deeply: {NESTING.text}", event.start_mark)
        if event.anchor:
            self._anchors[event.anchor] = (_UNFINISHED, 0)
        opened.append(_Open(event))

    def _referred_to(self, event: Any) -> tuple[object, int]:
        value, size = self._anchors.get(event.anchor, (_NO_KEY, 0))
        if value is _NO_KEY:
            raise _wrong(f"found undefined alias {event.anchor!r}", event.start_mark)
        if value is _UNFINISHED:
            raise _wrong(f"alias {event.anchor!r} stands inside of what it stands for", event.start_mark)
        self._aliased += size
        if self._aliased > self._most_aliased:
            raise _wrong(f"aliases stand for too much: {ALIASED_VALUES.text}", event.start_mark)
        return value, size

    def _scalar(self, event: Any) -> object:
        text: str = event.value
        if event.tag not in (None, "!"):
            return self._tagged(event)
        if not event.implicit[0]:
            return text
        if text not in self._plain:
            tag = self._loader.resolve(yaml.ScalarNode, text, (True, False))
            self._plain[text] = _MERGE if tag == f"{TAG}merge" else self._made(tag, event)
        return self._plain[text]

    def _tagged(self, event: Any) -> object:
        if event.tag == f"{TAG}str":
            return event.value
        if event.tag not in self._numbers:
            raise _wrong(f"the tag {event.tag!r} is not read; write plain text", event.start_mark)
        return self._made(event.tag, event)

    def _made(self, tag: str, event: Any) -> object:
        make = self._numbers.get(tag)
        try:
            return event.value if make is None else make(yaml.ScalarNode(tag, event.value))
        except (
            ValueError,
            KeyError,
            IndexError,
            OverflowError,
        ) as problem:  # PyYAML lets 0x_ through to int(), and "!!bool x" to a table
            raise _wrong(
                f"{event.value[:40]!r} cannot be read as {tag.removeprefix(TAG)}: {problem}", event.start_mark
            ) from problem


def _key(value: object, mark: Any) -> str:
    """Return a key as JSON has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        raise _wrong("a key must be text, not a list or a mapping", mark)
    if isinstance(value, float):  # the API server writes 1.0 as 1
        return f"{value:.17g}"
    return {True: "true", False: "false", None: "null"}[value] if value is None or isinstance(value, bool) else str(value)


def _wrong(problem: str, mark: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, mark)
