"""Reads YAML or JSON texts, with several documents in one text.

YAML is read so that it means what the same object means as JSON: a time stays text, and `1e3` is a number.
"""

import json
import re
from typing import Any, NamedTuple

import msgspec
import yaml

from phalanx.errors import SnapshotError

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML was built without libyaml: slower, the same otherwise
    from yaml import SafeLoader  # type: ignore[assignment]  # the same interface


class Located(NamedTuple):
    """Something that was read, and where: "pods.yaml, document 2"."""

    place: str
    value: object


class _Loader(SafeLoader):
    """Reads what the API server would read; a key that is given twice in one mapping is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        pairs = node.value
        found = super().construct_mapping(node, deep)
        if len(found) < len(pairs) and node.value is pairs:  # with a merge key ("<<") the node gets a new list of pairs
            self._refuse_twin([key for key, _ in pairs])
        return found

    def _refuse_twin(self, keys: list[yaml.ScalarNode]) -> None:
        names = [key.value for key in keys]
        twin = next((key for place, key in enumerate(keys) if key.value in names[:place]), keys[-1])
        hint = "; separate objects with '---'" if twin.value in ("apiVersion", "kind") else ""
        raise yaml.constructor.ConstructorError(None, None, f"key {twin.value!r} is given twice{hint}", twin.start_mark)


_REPLACED = ("timestamp", "value", "int", "float")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in _REPLACED]
    for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]*|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$"),
    list("-+.0123456789"),
)


def documents_in(text: bytes, name: str) -> list[Located]:
    """Return the documents of a text; `name` says whose it is."""
    documents = parse_text(text, name)
    return [Located(f"{name}, document {number}", value) for number, value in enumerate(documents, start=1) if value is not None]


def parse_text(text: bytes, name: str) -> list[object]:
    """Return the documents of a text; `name` says in an error whose text it is."""
    try:
        return _parse(text)
    except yaml.YAMLError as problem:
        raise SnapshotError(f"{name}{_yaml_problem(problem)}") from problem
    except ValueError as problem:  # PyYAML lets numbers such as 0x_ through to int()
        raise SnapshotError(f"{name}: a number in it cannot be read: {problem}") from problem
    except RecursionError:
        raise SnapshotError(f"{name}: nested too deeply to be an object of a cluster") from None


def _parse(text: bytes) -> list[object]:
    if text.lstrip()[:1] in (b"{", b"["):
        try:
            return _parse_json(text)
        except ValueError:
            pass  # YAML may begin with a bracket too, and says in which line a mistake is
    return list(yaml.load_all(text, Loader=_Loader))


def _parse_json(text: bytes) -> list[object]:
    """Return the values of a JSON text; several may follow each other, as when files are joined."""
    try:
        return [msgspec.json.decode(text)]
    except msgspec.DecodeError:
        pass
    rest, found, decoder = text.decode().strip(), [], json.JSONDecoder()
    while rest:
        value, end = decoder.raw_decode(rest)
        found.append(value)
        rest = rest[end:].lstrip()
    return found


def _yaml_problem(problem: yaml.YAMLError) -> str:
    if isinstance(problem, yaml.MarkedYAMLError) and problem.problem_mark is not None:
        mark = problem.problem_mark
        return f", line {mark.line + 1}, column {mark.column + 1}: {problem.problem or problem.context}"
    if isinstance(problem, yaml.reader.ReaderError):
        return f": not text in UTF-8: {problem.reason}"
    return f": {str(problem).splitlines()[0]}"
