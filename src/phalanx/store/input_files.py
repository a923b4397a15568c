"""Files that a command is given, folders and stdin among them: manifests with the cluster that they describe, configurations,
and how much queues used in the past.

A file may hold several documents, and a list as `kubectl get -o yaml` or `-o json` prints it counts as its items.

Nothing here is fatal before everything was read: broken objects are gathered and refused together, each with its place.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from phalanx.config.policies import policy_of_text
from phalanx.dialects.cluster import ObjectCluster, describe
from phalanx.dialects.documents import Located, documents_in
from phalanx.dialects.queue_usage import history
from phalanx.errors import ClusterError, ConfigError, PhalanxError, SnapshotError
from phalanx.explain.reason_text import counted
from phalanx.manifests.definitions import DEFINITION_BY_KIND
from phalanx.manifests.permissions import kinds_listed
from phalanx.model.kinds import PRIORITY, object_key
from phalanx.model.queue_usage import QueueHistory
from phalanx.session.policy import Policy
from phalanx.state.hypernode_problems import hypernode_problems
from phalanx.state.snapshot import Snapshot
from phalanx.store.admission import refuse_invalid
from phalanx.store.bounded_files import STDIN as STDIN
from phalanx.store.bounded_files import read_bounded
from phalanx.store.completion import ManifestObjects, known_kind
from phalanx.store.listed_cluster import ListedCluster
from phalanx.store.missing_references import (
    DOES_NOT_EXIST,
    NOT_IN_INPUT,
    MissingReference,
    missing_references,
    sentences,
)
from phalanx.store.snapshot_command import SNAPSHOT_COMMAND
from phalanx.store.unknown_fields import unknown_fields
from phalanx.store.value_rules import refuse_values

SUFFIXES = (".yaml", ".yml", ".json")
OWN_GROUP = "phalanx.dev"
"""Documents of this API group, such as what an example expects, are not objects of a cluster."""
NOT_UNDERSTOOD = (TypeError, AttributeError, KeyError)
"""What a reader may raise over an object of which not even the outlines are right."""
MOST_SHOWN = 5
GROUP = "PodGroup "
"""How the name of a refused group begins."""
Placed = tuple[str, dict[str, Any]]
"""An object with the place where it was found."""


def read_documents(path: str) -> list[Located]:
    """Return the documents of one file, or of stdin for "-"; empty ones are left out, but counted."""
    return documents_in(read_bytes(path), "stdin" if path == STDIN else path)


def read_bytes(path: str) -> bytes:
    """Return what a file holds, or stdin for "-"."""
    try:
        return read_bounded(path)
    except FileNotFoundError:
        raise SnapshotError(f"{path}: no such file or folder") from None
    except OSError as problem:
        raise SnapshotError(f"{path}: cannot be read: {problem.strerror}") from problem


def read_objects(path: str) -> Iterator[Located]:
    """Return the objects of a file, of the files of a folder or of stdin; lists are taken apart."""
    found_any = False
    for file in files_of(path):
        for document in read_documents(file):
            found_any = True
            yield from _items(document)
    if not found_any:
        own = "'phalanx schedule --context NAME' reads a live cluster itself"
        hint = f"; {own}, and a snapshot of one is printed by: {SNAPSHOT_COMMAND}" if path == STDIN else ""
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
    """Made of complete objects, as the API server would store them."""
    defaults: ManifestObjects | None = None
    """Completes objects; without it they are entered as they were written."""
    documents: list[Placed] = field(default_factory=list)
    """What was understood, as it was written."""
    complete: list[dict[str, Any]] = field(default_factory=list)
    """The same, as the API server would store it."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many objects there are of each kind that decides nothing, as "Ingress.networking.k8s.io"."""
    problems: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Objects that cannot be understood, as "PodGroup research/train", each with its place and what is wrong."""
    places: dict[str, list[str]] = field(default_factory=dict)
    """Where each object that has a name was found, by API group, kind and name."""
    unknown: dict[str, list[Placed]] = field(default_factory=dict)
    """Objects with fields that their kinds do not have, by what the API server says of it."""
    invalid: list[str] = field(default_factory=list)
    """What the API server would say of objects of custom kinds that break their rules; they are entered all the same."""
    live: ListedCluster | None = None
    """What was read from an API server, if anything was."""
    _index: dict[str, int] = field(default_factory=dict)

    @property
    def now(self) -> float:
        """The time by the clock of the cluster, which may be a virtual one; without one by that of the machine."""
        return datetime.now(UTC).timestamp() if self.live is None else self.live.now

    def enter(self, place: str, document: dict[str, Any], *, is_stored: bool = False) -> None:
        """Enter an object into the cluster; one that cannot be understood is refused. What a server shows has no unknown fields."""
        whole = document if self.defaults is None else self.defaults.complete(document)
        try:
            is_known = self._put(whole, is_stored=is_stored)
        except PhalanxError as problem:
            self.refused.append((_full_name(document), f"{place}: {problem}"))
            return
        if not is_stored:
            self.look_for_unknown_fields((place, document))
            self._look_for_broken_rules(place, whole)
        if self._is_again((place, document), whole):
            return
        self.documents.append((place, document))
        self.complete.append(whole)
        if not is_known and known_kind(document) not in kinds_listed():
            self.skipped[f"{document['kind']}.{_group(document)}".rstrip(".")] += 1

    @property
    def refused_groups(self) -> dict[str, str]:
        """The groups among the refused objects, each with its place and what is wrong."""
        return {name.removeprefix(GROUP): text for name, text in self.refused if name.startswith(GROUP)}

    def look_for_unknown_fields(self, placed: Placed) -> None:
        """Remember unknown fields; an object that an API server has stored has none, whatever version its definitions have."""
        kind, was_stored = known_kind(placed[1]), bool(_meta(placed[1]).get("uid"))
        for text in unknown_fields(kind, placed[1]) if kind is not None and not was_stored else ():
            self.unknown.setdefault(text, []).append(placed)

    def _look_for_broken_rules(self, place: str, whole: dict[str, Any]) -> None:
        """Remember rules that an object breaks; one that an API server has stored was admitted, whatever rules it has."""
        kind = known_kind(whole)
        if kind not in DEFINITION_BY_KIND or _meta(whole).get("uid"):
            return
        try:
            refuse_invalid(kind, whole, None)
        except ClusterError as problem:
            self.invalid.append(f"{place}: the API server would reject it: {problem}")

    def warnings(self) -> Iterator[str]:
        """Warn of fields that the API server would drop, each with the first object that has it."""
        for text, found in self.unknown.items():
            (place, first), more = found[0], len(found) - 1
            others = f" and {counted(more, 'other object')}" if more else ""
            field_name, _, hint = text.partition("; ")
            yield f"{field_name} in {describe(first)} ({place}){others}{f'; {hint}' if hint else ''}"

    def _is_again(self, placed: Placed, whole: dict[str, Any]) -> bool:
        """Tell whether an object was there before; if so, it takes the place of the earlier one."""
        place, document = placed
        if not _meta(document).get("name"):
            return False
        key = f"{_group(document)} {document['kind']} {object_key(document)}"
        self.places.setdefault(key, []).append(place)
        index = self._index.setdefault(key, len(self.documents))
        if index == len(self.documents):
            return False
        self.documents[index], self.complete[index] = placed, whole
        return True

    def duplicates(self) -> Iterator[str]:
        """Say of each object that was given more than once where, and which one counts."""
        again = [(self._index[key], places) for key, places in self.places.items() if len(places) > 1]
        for index, places in again[:MOST_SHOWN]:
            where = f"{', '.join(places[:-1])} and {places[-1]}"
            yield f"{describe(self.documents[index][1])} is given {counted(len(places), 'time')}: {where}; the last one counts"
        if len(again) > MOST_SHOWN:
            yield f"{len(again) - MOST_SHOWN} more objects are given more than once; the last one counts"

    def _put(self, document: dict[str, Any], *, is_stored: bool) -> bool:
        try:
            kind = None if is_stored else known_kind(document)
            if kind is not None:  # what a server has accepted takes room, whatever its rules are
                refuse_values(kind, document)
            return self.cluster.put(document)
        except NOT_UNDERSTOOD as problem:
            raise SnapshotError(f"{describe(document)}: cannot be understood: {problem}") from problem

    def notes(self) -> Iterator[str]:
        """Say in a sentence each what is missing or there twice."""
        yield from self.live.notes() if self.live is not None else ()
        yield from self.duplicates()
        yield from sentences(self.defaults.missing() if self.defaults is not None else (), self.absent)

    @property
    def namespace(self) -> str:
        """The namespace of objects that name none."""
        return "default" if self.live is None else self.live.namespace

    @property
    def absent(self) -> str:
        """How to say that something is not there."""
        return NOT_IN_INPUT if self.live is None else DOES_NOT_EXIST

    def missing(self, snapshot: Snapshot, more: Sequence[Mapping[str, Any]] = ()) -> list[MissingReference]:
        """Return what objects refer to and is not there; `more` are objects that the snapshot has besides these."""
        classes = self.defaults.missing() if self.defaults is not None else []
        hidden = () if self.live is None else self.live.problems
        found = [*classes, *missing_references(snapshot, [*self.complete, *more], hidden)]
        rejected = {name for name, _ in self.refused}
        return [item for item in found if f"{item.kind} {item.name}" not in rejected]

    def refuse_problems(self) -> None:
        """Raise if anything was broken: one sentence for one object, a list of the first few for many."""
        problems = [*self.problems, *(text for _, text in self.refused)]
        if len(problems) == 1:
            raise SnapshotError(problems[0])
        if problems:
            more = len(problems) - MOST_SHOWN
            shown = [*problems[:MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])]
            raise SnapshotError(f"{len(problems)} objects or files cannot be read:", details=shown)


def _objects(paths: Iterable[str], problems: list[str]) -> Iterator[Placed]:
    """Yield what looks like an object of a cluster, with its place; what does not is a problem."""
    for path in paths:
        try:
            for place, value in read_objects(path):
                try:
                    document = _checked(value)
                except PhalanxError as problem:
                    problems.append(f"{place}: {problem}")
                    continue
                if _group(document) != OWN_GROUP:
                    yield place, document
        except SnapshotError as problem:
            problems.append(str(problem))


def _group(document: dict[str, Any]) -> str:
    return str(document["apiVersion"].rpartition("/")[0])


def _full_name(document: dict[str, Any]) -> str:
    """Name an object as others refer to it: with the namespace in which it is, also if it names none."""
    kind = known_kind(document)
    is_complete = kind is not None and kind.is_namespaced and _meta(document).get("name")
    return f"{document['kind']} {object_key(document)}" if is_complete else describe(document)


def _meta(document: dict[str, Any]) -> dict[str, Any]:
    found = document.get("metadata")
    return found if isinstance(found, dict) else {}


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


def take_in(
    paths: Iterable[str], cluster: ObjectCluster | None = None, *, goes_on: bool = False, live: ListedCluster | None = None
) -> Intake:
    """Read every path into one cluster; refuse the whole if anything is broken, or go on without broken objects.

    Objects of a live cluster come first: a file that has one of them replaces it.
    """
    problems: list[str] = []
    found, listed = list(_objects(paths, problems)), [] if live is None else live.documents
    defaults = ManifestObjects([*listed, *(document for _, document in found)])
    intake = Intake(cluster or ObjectCluster(), defaults, problems=problems, live=live)
    for document in listed:
        intake.enter(live.server if live else "", document, is_stored=True)
    for place, document in found:
        intake.enter(place, document)
    if intake.problems or not goes_on:
        intake.refuse_problems()
    return intake


def documents_of(paths: Iterable[str]) -> list[Placed]:
    """Return every object at the paths; refuse the whole if something is not even an object."""
    problems: list[str] = []
    found = list(_objects(paths, problems))
    if problems:
        refuse_broken(found, problems)
    return found


def warnings_about(documents: Iterable[Placed]) -> list[str]:
    """Return the warnings about fields that the API server would drop from manifests."""
    intake = Intake(ObjectCluster())
    for placed in documents:
        intake.look_for_unknown_fields(placed)
    return list(intake.warnings())


def refuse_broken(documents: Iterable[Placed], problems: list[str]) -> None:
    """Raise if objects cannot be understood, or anything was broken before."""
    intake = Intake(ObjectCluster(), problems=problems)
    for place, document in documents:
        intake.enter(place, document)
    intake.refuse_problems()


def notes_on(intake: Intake, snapshot: Snapshot, missing: Sequence[MissingReference] | None = None) -> Iterator[str]:
    """Say in a sentence each what was left out and may surprise; `missing` is what the intake misses, if that is known already."""
    yield from intake.notes()
    found = intake.missing(snapshot) if missing is None else missing
    yield from sentences([item for item in found if item.kind != PRIORITY.kind], intake.absent)
    kinds = ", ".join(f"{count} {kind}{_kind_meant(kind)}" for kind, count in sorted(intake.skipped.items()))
    if kinds:
        yield f"skipped what a session does not read: {kinds}"
    for name, text in hypernode_problems(snapshot.hypernodes, snapshot.nodes).items():
        yield f"HyperNode {name}: {text}"


def _kind_meant(name: str) -> str:
    """Return in parentheses what a kind that nobody reads, such as "Podgroup.scheduling.volcano.sh", may be a slip for."""
    kind, _, group = name.partition(".")
    likely = {item.kind: item for item in kinds_listed() if item.group == group}
    close = [item for item in likely if item.lower() == kind.lower()] or get_close_matches(kind, likely, n=1, cutoff=0.85)
    if close:
        return f" (did you mean {close[0]}?)"
    versions = [item.api_version for item in kinds_listed() if item.kind == kind]
    return f" (write its whole apiVersion: {', '.join(versions)})" if versions and not group else ""


def policy_of_file(path: str) -> Policy:
    """Return the policy of a configuration file, or of stdin for "-"."""
    try:
        text = read_bytes(path)
    except SnapshotError as problem:
        raise ConfigError(str(problem)) from problem
    return policy_of_text(text, "stdin" if path == STDIN else path)


def read_usage(paths: Iterable[str]) -> QueueHistory | None:
    """Return how much queues used in the past as files say it, in our own form or as answers of Prometheus; None without files."""
    found: QueueHistory | None = None
    for document in (document for path in paths for document in read_documents(path)):
        try:
            more = history(document.value)
        except SnapshotError as problem:
            raise SnapshotError(f"{document.place}: {problem}") from problem
        found = more if found is None else found.plus(more)
    return found
