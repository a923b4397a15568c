"""The gangs of one queue in the order in which they are tried.

Keys are taken once, when a gang gets in line. Most gangs are tried once, so the line is sorted once and the first gang is taken off
the end of a list; only those that come back for more of their tasks are kept in a heap.
"""

from collections.abc import Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush, merge
from itertools import count
from typing import NamedTuple

from phalanx.session.hooks import SortKey
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState


class Entry(NamedTuple):
    """A gang in line. No two entries have the same number."""

    key: SortKey
    number: int
    gang: GangState


class GangLine:
    """Entries in order; smaller keys first, then smaller numbers."""

    __slots__ = ("_back", "_fresh")

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Sort the gangs that wait from the beginning."""
        self._fresh = sorted(entries, reverse=True)
        """The next one last."""
        self._back: list[Entry] = []
        """Those that came back, as a heap."""

    def __len__(self) -> int:
        """Return the number of gangs in line."""
        return len(self._fresh) + len(self._back)

    def __iter__(self) -> Iterator[Entry]:
        """Yield every entry, in any order."""
        yield from self._fresh
        yield from self._back

    @property
    def first(self) -> GangState:
        """The gang that is next."""
        return self._back[0].gang if self._is_back_next() else self._fresh[-1].gang

    def pop(self) -> GangState:
        """Take the first gang out of the line."""
        return heappop(self._back).gang if self._is_back_next() else self._fresh.pop().gang

    def upcoming(self) -> Iterator[GangState]:
        """Yield the gangs in order, as long as nobody gets in line or is taken out."""
        fresh = reversed(self._fresh)
        return (entry.gang for entry in (merge(fresh, sorted(self._back)) if self._back else fresh))

    def drop(self, number: int) -> None:
        """Take so many gangs out of the line, the first ones."""
        if self._back:
            for _ in range(number):
                self.pop()
        else:
            del self._fresh[len(self._fresh) - number :]

    def _is_back_next(self) -> bool:
        return bool(self._back) and (not self._fresh or self._back[0] < self._fresh[-1])

    def push(self, entry: Entry) -> None:
        """Let a gang get in line again."""
        heappush(self._back, entry)

    def remove(self, entries: Collection[Entry]) -> None:
        """Take gangs out of the line, wherever they are."""
        gone = {entry.number for entry in entries}
        self._fresh = [entry for entry in self._fresh if entry.number not in gone]
        self._back = [entry for entry in self._back if entry.number not in gone]
        heapify(self._back)


def lines_by_queue(session: Session, gangs: Iterable[GangState]) -> dict[str, GangLine]:
    """Let gangs get in line, each in its queue."""
    found: dict[str, list[GangState]] = {}
    for gang in gangs:
        found.setdefault(gang.gang.queue, []).append(gang)
    number = count()
    return {name: GangLine(map(Entry, session.gang_keys(line), number, line)) for name, line in found.items()}
