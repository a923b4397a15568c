"""What a command is given: documents from files, folders and stdin, and the cluster that they describe.

A document is YAML or JSON. A file may hold several, and a list as `kubectl get -o yaml` or `-o json` prints it counts as its
items. YAML is read so that it means what the same object means as JSON: a time stays text, and `1e3` is a number.

Nothing here is fatal before everything was read: broken objects are gathered and refused together, each with its place.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from phalanx.core.snapshot import Snapshot
from phalanx.dialects.cluster import ObjectCluster, describe
from phalanx.errors import PhalanxError, SnapshotError
from phalanx.model.status import Status

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML was built without libyaml: slower, the same otherwise
    from yaml import SafeLoader  # type: ignore[assignment]  # the same interface

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
OWN_GROUP = "phalanx.dev"
"""Documents of this API group, such as what an example expects, are not objects of a cluster."""
MOST_SHOWN = 5


class Located(NamedTuple):
    """Something that was read, and where: "pods.yaml, document 2"."""

    place: str
    value: object


class _Loader(SafeLoader):
    """Reads what the API server would read; a key that stands twice in one mapping is an error."""

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
        raise yaml.constructor.ConstructorError(None, None, f"key {twin.value!r} stands twice{hint}", twin.start_mark)


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


def read_documents(path: str) -> list[Located]:
    """Return the documents of one file, or of stdin for "-"; empty ones are left out, but counted."""
    return documents_in(read_bytes(path), "stdin" if path == STDIN else path)


def documents_in(text: bytes, name: str) -> list[Located]:
    """Return the documents of a text; `name` says whose it is."""
    documents = parse_text(text, name)
    return [Located(f"{name}, document {number}", value) for number, value in enumerate(documents, start=1) if value is not None]


def read_bytes(path: str) -> bytes:
    """Return what a file holds, or stdin for "-"."""
    if path == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise SnapshotError(f"{path}: no such file or folder") from None
    except OSError as problem:
        raise SnapshotError(f"{path}: cannot be read: {problem.strerror}") from problem


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


def read_objects(path: str) -> Iterator[Located]:
    """Return the objects of a file, of the files of a folder or of stdin; lists are taken apart."""
    found_any = False
    for file in files_of(path):
        for document in read_documents(file):
            found_any = True
            yield from _items(document)
    if not found_any:
        hint = "; pipe for example 'kubectl get nodes,pods,podgroups,queues -A -o yaml' into it" if path == STDIN else ""
        raise SnapshotError(f"{'stdin' if path == STDIN else path}: no objects in it{hint}")


def files_of(path: str) -> list[str]:
    """Return the files that a path stands for: itself, or those of a folder."""
    folder = Path(path)
    if path == STDIN or not folder.is_dir():
        return [path]
    files = sorted(str(file) for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise SnapshotError(f"{path}: no {', '.join(SUFFIXES)} files in this folder; folders inside it are not read")
    return files


def _items(document: Located) -> Iterator[Located]:
    value = document.value
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or not kind.endswith("List") or "items" not in value:
        yield document
        return
    items = value["items"] or []
    if not isinstance(items, list):
        yield Located(document.place, SnapshotError(f"items: expected a list, got {_type_name(items)}"))
        return
    own = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")} if kind != "List" else {}
    for number, item in enumerate(items):
        whole = {**own, **item} if isinstance(item, dict) else item
        yield from _items(Located(f"{document.place}, items[{number}]", whole))


@dataclass(slots=True)
class Intake:
    """A cluster made of what was read, and what was left out."""

    cluster: ObjectCluster
    skipped: Counter[str] = field(default_factory=Counter)
    """How many objects of each kind no session reads, as "Deployment.apps"."""
    problems: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Objects that cannot be understood, as "PodGroup research/train", each with its place and what is wrong."""
    documents: list[tuple[str, dict[str, Any]]] | None = None
    """Every object with its place, for those who want them; None: nobody does."""

    def take(self, path: str) -> None:
        """Read everything at a path; what is broken is kept as a problem."""
        try:
            for found in read_objects(path):
                self._put(found)
        except SnapshotError as problem:
            self.problems.append(str(problem))

    def _put(self, found: Located) -> None:
        try:
            document = _checked(found.value)
        except PhalanxError as problem:
            self.problems.append(f"{found.place}: {problem}")
            return
        try:
            self._enter(found.place, document)
        except PhalanxError as problem:
            self.refused.append((describe(document), f"{found.place}: {problem}"))

    def _enter(self, place: str, document: dict[str, Any]) -> None:
        group = document["apiVersion"].rpartition("/")[0]
        if group == OWN_GROUP:
            return
        try:
            is_known = self.cluster.put(document)
        except (TypeError, AttributeError, KeyError) as problem:
            raise SnapshotError(f"{describe(document)}: cannot be understood: {problem}") from problem
        if not is_known:
            self.skipped[f"{document['kind']}.{group}".rstrip(".")] += 1
        if self.documents is not None:
            self.documents.append((place, document))

    def refuse_problems(self) -> None:
        """Raise if anything was broken: one sentence for one object, a list of the first few for many."""
        problems = [*self.problems, *(text for _, text in self.refused)]
        if len(problems) == 1:
            raise SnapshotError(problems[0])
        if problems:
            lines = [f"{len(problems)} objects or files cannot be read:", *problems[:MOST_SHOWN]]
            more = len(problems) - MOST_SHOWN
            raise SnapshotError("\n  ".join([*lines, *([f"and {more} more"] if more > 0 else [])]))


def _checked(value: object) -> dict[str, Any]:
    """Return what looks like an object of a cluster."""
    if isinstance(value, SnapshotError):
        raise value
    if isinstance(value, list):
        raise SnapshotError("a list at the top; write 'kind: List' with 'items', or separate the objects with '---'")
    if not isinstance(value, dict):
        raise SnapshotError(f"expected an object with apiVersion, kind and metadata, got {_type_name(value)}")
    for key in ("apiVersion", "kind"):
        if not isinstance(value.get(key), str) or not value[key]:
            raise SnapshotError(f"{describe(value)}: {key}: missing; every object needs apiVersion, kind and metadata")
    return value


def _type_name(value: object) -> str:
    names = {str: "text", int: "a number", float: "a number", bool: "true or false", dict: "a mapping", list: "a list"}
    return names.get(type(value), type(value).__name__)


def take_in(paths: Iterable[str], *, ignored_provisioners: frozenset[str] = frozenset(), goes_on: bool = False) -> Intake:
    """Read every path into one cluster; refuse the whole if anything is broken, or go on without broken objects."""
    intake = Intake(ObjectCluster(ignored_provisioners=ignored_provisioners))
    for path in paths:
        intake.take(path)
    if intake.problems or not goes_on:
        intake.refuse_problems()
    return intake


def documents_of(paths: Iterable[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return every object at the paths with its place; refuse the whole if anything is broken."""
    intake = Intake(ObjectCluster(), documents=[])
    for path in paths:
        intake.take(path)
    intake.refuse_problems()
    return intake.documents or []


def notes_on(intake: Intake, snapshot: Snapshot) -> Iterator[str]:
    """Say in a sentence each what was left out and may surprise."""
    if intake.skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(intake.skipped.items()))
        yield f"skipped what a session does not read: {kinds}"
    refused = {name for name, _ in intake.refused}
    orphans = {
        gang: sum(task.status is Status.PENDING for task in members.values())
        for gang, members in snapshot.members.items()
        if gang not in snapshot.gangs and f"PodGroup {gang}" not in refused
    }
    waiting = {gang: count for gang, count in sorted(orphans.items()) if count}
    if waiting:
        names = ", ".join(list(waiting)[:MOST_SHOWN]) + (" and others" if len(waiting) > MOST_SHOWN else "")
        yield f"{sum(waiting.values())} pending pods name a PodGroup that is not in the input: {names}"
