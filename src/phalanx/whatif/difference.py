"""What else changes: two sessions compared gang by gang."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from phalanx.explain.gang_status import GangStatus, gang_status
from phalanx.explain.reason_text import counted
from phalanx.model.task import TaskKey
from phalanx.whatif.trial_cluster import Trial, starts

ABSENT, WAITS, STARTS, STOPS = "absent", "waits", "starts", "stops"
"""What becomes of a gang, as far as others care; one that no session had to look at goes on as it is, and starts here too."""


@dataclass(frozen=True, slots=True)
class GangDifference:
    """What becomes of a gang otherwise than before."""

    gang: str
    before: str
    after: str
    evicted_before: int = 0
    evicted_after: int = 0
    """How many of its pods are evicted."""
    moved: int = 0
    """How many of its pods lose their node with a change, and wait for another."""

    @property
    def text(self) -> str:
        """What would happen to it, behind its name."""
        return f"{self.gang} would {self._verb}"

    @property
    def _verb(self) -> str:
        if self.after == ABSENT:
            return "not be there"
        if self.evicted_after > self.evicted_before:
            rest = " and go on with the rest" if self.after == STARTS else ""
            return f"be evicted ({counted(self.evicted_after, 'pod')}){rest}"
        if self.moved and self.after == STARTS:
            return f"be moved ({counted(self.moved, 'pod')})"
        if self.after == self.before:
            return "not be evicted" if not self.evicted_after else f"lose only {counted(self.evicted_after, 'pod')}"
        if self.before == STOPS:
            return "not be evicted" if self.after == STARTS else "wait"
        return "start" if self.after == STARTS else "wait"

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "gang": self.gang,
            "before": self.before,
            "after": self.after,
            "evictedPods": self.evicted_after,
            "movedPods": self.moved,
            "text": self.text,
        }


def difference(before: Trial, after: Trial, but: str = "") -> list[GangDifference]:
    """Return the gangs, all but one, of which something else becomes in the second session, in the order of their names."""
    first, second = _Fates(before), _Fates(after)
    return [found for key in sorted(first.keys | second.keys) if key != but for found in _compared(key, first, second)]


def _compared(key: str, first: "_Fates", second: "_Fates") -> Iterator[GangDifference]:
    moved = len(first.placed.get(key, set()) & second.unplaced.get(key, set()))
    found = GangDifference(key, first.of(key), second.of(key), first.evicted[key], second.evicted[key], moved)
    if moved or (found.before, found.evicted_before) != (found.after, found.evicted_after):
        yield found


class _Fates:
    """What one session makes of every gang."""

    def __init__(self, trial: Trial) -> None:
        parts = [(part.snapshot, part.decisions) for part in trial.parts]
        gated = trial.gated.gangs if trial.gated is not None else frozenset()
        self._all = {str(key) for snapshot, _ in parts for key in snapshot.gangs}
        self._changed: dict[str, str] = {}
        self.evicted: Counter[str] = Counter()
        for _, decisions in parts:
            self.evicted.update(eviction.task.gang or eviction.task.key for eviction in decisions.evictions.values())
        self.placed, self.unplaced = dict[str, set[TaskKey]](), dict[str, set[TaskKey]]()
        """The pods of each gang that have a node before the session, and those that wait for one."""
        for snapshot, _ in parts:
            for gang, members in snapshot.members.items():
                self.placed[gang] = {key for key, task in members.items() if task.node}
                self.unplaced[gang] = members.keys() - self.placed[gang]
        for key in {outcome.state.key for _, decisions in parts for outcome in decisions.outcomes} | gated:
            self._changed[key] = _fate(trial, key)

    @property
    def keys(self) -> set[str]:
        """The gangs of which something may become, and pods without a gang that are evicted."""
        return self._changed.keys() | self.evicted.keys()

    def of(self, key: str) -> str:
        if key in self._changed:
            return self._changed[key]
        return STARTS if key in self._all or self.evicted[key] else ABSENT


def _fate(trial: Trial, key: str) -> str:
    reading = trial.reading(key)
    if reading is None:
        return ABSENT
    if starts(reading):
        return STARTS
    return STOPS if gang_status(reading.gang) is GangStatus.EVICTED else WAITS
