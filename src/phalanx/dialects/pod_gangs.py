"""What pods say of the gangs that they make.

The oldest of them counts, in whatever order they become known, changed or went; the gang goes with the last that says anything. A
pod that says nonsense, or something else than was agreed where that matters, is set aside alone, and read again when it need not be
any more. A group object comes before what pods say.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from phalanx.dialects.group_references import Link
from phalanx.dialects.groups import Groups
from phalanx.dialects.pod_gang_kinds import MAKERS
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.task import Task

Document = Mapping[str, Any]


@dataclass(slots=True)
class Saying:
    """What one pod says."""

    document: Document
    rank: tuple[bool, float, str]
    """The lowest counts."""
    gang: Gang | None = None
    problem: str = ""
    """Why it cannot be understood."""
    is_aside: bool = False


class Sayings:
    """Hears pods and lets the right description of each gang count."""

    def __init__(self, groups: Groups, read_again: Callable[[Document], None]) -> None:
        """Begin with nothing heard; `read_again` is for pods that are to be set aside, or not any more."""
        self._groups, self._read_again = groups, read_again
        self._said: dict[Link, dict[str, Saying]] = {}
        self._speaker: dict[Link, str] = {}
        """Whose word counts."""
        self._link_by_pod: dict[str, Link] = {}

    def hear(self, task: Task, document: Document) -> str:
        """Note what a pod says of its gang; return what is wrong with it."""
        saying, link = _saying(task, document), Link(task.dialect, task.group)
        if saying is None or self._link_by_pod.get(task.key) != link:
            self.forget(task.key)
        if saying is None:
            return ""
        self._said.setdefault(link, {})[task.key], self._link_by_pod[task.key] = saying, link
        before = self._groups.made(link)
        if self._may_count(link, task.key, saying):
            self._agree(link)
        problem = self._problem(link, saying)
        saying.is_aside = bool(problem)
        self._settle_others(link, before)
        return problem

    def forget(self, pod: str) -> None:
        """Forget what a pod said."""
        link = self._link_by_pod.pop(pod, None)
        if link is None:
            return
        del self._said[link][pod]
        if self._speaker.get(link) == pod:
            before = self._groups.made(link)
            self._agree(link)
            self._settle_others(link, before)
        if not self._said[link]:
            del self._said[link]

    def settle(self, link: Link) -> None:
        """Read pods again that are set aside and need not be, or the reverse."""
        for saying in list(self._said.get(link, {}).values()):
            if bool(self._problem(link, saying)) != saying.is_aside:
                self._read_again(saying.document)

    def _settle_others(self, link: Link, before: Gang | None) -> None:
        """Settle a gang unless what counts of it means the same for its pods as before."""
        agreed = self._groups.made(link)
        if agreed is None or before is None:
            is_other = agreed is not before
        else:
            is_other = bool(MAKERS[link.dialect].disagreement(before, agreed))
        if is_other:
            self.settle(link)

    def _may_count(self, link: Link, pod: str, saying: Saying) -> bool:
        speaker = self._speaker.get(link)
        return speaker in (None, pod) or (saying.gang is not None and saying.rank < self._said[link][speaker].rank)

    def _agree(self, link: Link) -> None:
        """Let the right description count."""
        ranks = {pod: saying.rank for pod, saying in self._said[link].items() if saying.gang is not None}
        speaker = min(ranks, key=ranks.__getitem__, default=None)
        gang = None if speaker is None else self._said[link][speaker].gang
        if speaker is None or gang is None:
            self._speaker.pop(link, None)
            self._groups.unmake(link)
            return
        self._speaker[link] = speaker
        self._groups.make(gang)

    def _problem(self, link: Link, saying: Saying) -> str:
        maker, agreed = MAKERS[link.dialect], self._groups.made(link)
        if saying.gang is None:
            return "" if maker.forgives and self._groups.is_there(link) else saying.problem
        return "" if agreed is None else maker.disagreement(saying.gang, agreed)


def _saying(task: Task, document: Document) -> Saying | None:
    """Return what a pod says; None if it leaves that to others, or if its dialect does."""
    maker = MAKERS.get(task.dialect)
    if maker is None:
        return None
    rank = (not maker.comes_first(task), task.created, task.key)
    try:
        gang = maker.gang(task)
    except SnapshotError as refusal:
        return Saying(document, rank, problem=str(refusal))
    return None if gang is None else Saying(document, rank, gang)
