"""Gangs that pods describe themselves, by labels and annotations, without a group object.

Pods may contradict each other, and they come, change and go in any order. So that the gang depends on the pods alone and not on
the order, the description of the oldest pod counts (in YuniKorn that of the originator). The gang goes with the last pod that
describes it. A pod whose description cannot be read, or contradicts the one that counts where that matters, is quarantined alone;
it is read again when that may have changed. A group object comes before what pods say.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from phalanx.dialects import gates, koordinator, kueue, yunikorn
from phalanx.dialects.group_references import GroupReference
from phalanx.dialects.groups import Groups
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.task import Task

Document = Mapping[str, Any]


def _never(task: Task) -> bool:
    return False


def _no_conflict(gang: Gang, other: Gang) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class PodGangReader:
    """How pods of one dialect describe their gang."""

    gang: Callable[[Task], Gang | None]
    """Returns the gang as a pod describes it; None if it describes none. Raises if the description is wrong."""
    comes_first: Callable[[Task], bool] = _never
    """Tells whether the description of a pod comes before those of older pods."""
    conflict: Callable[[Gang, Gang], str] = _no_conflict
    """Says what is wrong with a description beside the one that counts; empty if they may differ."""
    tolerates_unreadable: bool = False
    """A pod whose description is wrong is a member all the same if somebody else describes the gang."""


POD_GANG_READERS: Mapping[str, PodGangReader] = MappingProxyType({
    "gates": PodGangReader(gates.gang, tolerates_unreadable=True),
    "koordinator": PodGangReader(koordinator.gang_of_pod, tolerates_unreadable=True),
    "kueue": PodGangReader(kueue.gang, conflict=kueue.disagreement),
    "yunikorn": PodGangReader(yunikorn.gang, yunikorn.comes_first),
})  # fmt: skip
"""By dialect; in the others only objects make gangs."""


@dataclass(slots=True)
class GangDescription:
    """A gang as one pod describes it."""

    document: Document
    rank: tuple[bool, float, str]
    """The lowest counts."""
    gang: Gang | None = None
    problem: str = ""
    """Why it cannot be read."""
    is_quarantined: bool = False


class PodGangs:
    """Keeps what each pod says of its gang, and enters the description that counts."""

    def __init__(self, groups: Groups, read_again: Callable[[Document], None]) -> None:
        """Start without pods; `read_again` is called for pods that are to be quarantined, or not any more."""
        self._groups, self._read_again = groups, read_again
        self._descriptions: dict[GroupReference, dict[str, GangDescription]] = {}
        self._author: dict[GroupReference, str] = {}
        """The pod whose description counts."""
        self._group_by_pod: dict[str, GroupReference] = {}

    def put(self, task: Task, document: Document) -> str:
        """Enter what a pod says of its gang; return what is wrong with it."""
        description, group = _read(task, document), GroupReference(task.dialect, task.group)
        if description is None or self._group_by_pod.get(task.key) != group:
            self.remove(task.key)
        if description is None:
            return ""
        self._descriptions.setdefault(group, {})[task.key], self._group_by_pod[task.key] = description, group
        before = self._groups.described(group)
        if self._may_count(group, task.key, description):
            self._choose(group)
        problem = self._problem(group, description)
        description.is_quarantined = bool(problem)
        self._reread_others(group, before)
        return problem

    def remove(self, pod: str) -> None:
        """Forget what a pod said."""
        group = self._group_by_pod.pop(pod, None)
        if group is None:
            return
        del self._descriptions[group][pod]
        if self._author.get(group) == pod:
            before = self._groups.described(group)
            self._choose(group)
            self._reread_others(group, before)
        if not self._descriptions[group]:
            del self._descriptions[group]

    def reread(self, group: GroupReference) -> None:
        """Read pods again that are quarantined and need not be, or the reverse."""
        for description in list(self._descriptions.get(group, {}).values()):
            if bool(self._problem(group, description)) != description.is_quarantined:
                self._read_again(description.document)

    def _reread_others(self, group: GroupReference, before: Gang | None) -> None:
        """Read pods again unless the description that counts means the same for them as before.

        Pods of a large gang come one by one: to look at all of them each time would be quadratic.
        """
        counts = self._groups.described(group)
        if counts is None or before is None:
            has_changed = counts is not before
        else:
            has_changed = bool(POD_GANG_READERS[group.dialect].conflict(before, counts))
        if has_changed:
            self.reread(group)

    def _may_count(self, group: GroupReference, pod: str, description: GangDescription) -> bool:
        author = self._author.get(group)
        is_lower = author is not None and description.rank < self._descriptions[group][author].rank
        return author in (None, pod) or (description.gang is not None and is_lower)

    def _choose(self, group: GroupReference) -> None:
        """Enter the description that counts, or remove the gang if nobody describes it."""
        ranks = {pod: each.rank for pod, each in self._descriptions[group].items() if each.gang is not None}
        author = min(ranks, key=ranks.__getitem__, default=None)
        gang = None if author is None else self._descriptions[group][author].gang
        if author is None or gang is None:
            self._author.pop(group, None)
            self._groups.remove_described(group)
            return
        self._author[group] = author
        self._groups.put_described(gang)

    def _problem(self, group: GroupReference, description: GangDescription) -> str:
        reader, counts = POD_GANG_READERS[group.dialect], self._groups.described(group)
        if description.gang is None:
            return "" if reader.tolerates_unreadable and self._groups.exists(group) else description.problem
        return "" if counts is None else reader.conflict(description.gang, counts)


def _read(task: Task, document: Document) -> GangDescription | None:
    """Return what a pod says of its gang; None if it says nothing, or cannot in its dialect."""
    reader = POD_GANG_READERS.get(task.dialect)
    if reader is None:
        return None
    rank = (not reader.comes_first(task), task.created, task.key)
    try:
        gang = reader.gang(task)
    except SnapshotError as refusal:
        return GangDescription(document, rank, problem=str(refusal))
    return None if gang is None else GangDescription(document, rank, gang)
