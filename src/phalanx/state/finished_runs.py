"""How long gangs took that have finished, learnt from events: a guess at how long the next one like them takes.

Gangs are alike that have the same name without digits and random endings and the same size. Only the last few count, and only so
many names are remembered, the one that was seen longest ago forgotten first. A guess is a guess: nobody goes ahead because of one.
"""

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType

from phalanx.model.name_pattern import pattern_of
from phalanx.model.task import GangKey, Task
from phalanx.model.task_status import Status

MOST_RUNS, MOST_NAMES, ENOUGH = 32, 4096, 3
Runs = Mapping[str, tuple[float, ...]]
"""Seconds of finished gangs by what they have in common, the latest last."""
NONE: Runs = MappingProxyType({})


def likeness(gang: GangKey, size: int) -> str:
    """Return what a gang has in common with others like it."""
    return f"{pattern_of(gang)} of {size}"


def quantile(seconds: tuple[float, ...], part: float) -> float:
    """Return the duration that this part of some runs did not exceed."""
    ordered = sorted(seconds)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


class FinishedRuns:
    """Learns with each pod that has succeeded; a gang counts once, with its last pod."""

    def __init__(self) -> None:
        """Start without any."""
        self._runs: OrderedDict[str, tuple[float, ...]] = OrderedDict()
        self._latest: tuple[GangKey | None, str] = None, ""
        self._shared: Runs = NONE
        self._is_new = False

    def note(self, task: Task, size: int) -> None:
        """Learn from a pod that has ended; one that failed, or of which nobody knows when, says nothing."""
        if task.status is not Status.SUCCEEDED or task.gang is None or not 0 < task.started < task.finished:
            return
        label, seconds = likeness(task.gang, size), task.finished - task.started
        known = self._runs.pop(label, ())
        is_same = self._latest == (task.gang, label)
        self._runs[label] = (*(known[:-1] if is_same else known), max(seconds, known[-1]) if is_same else seconds)[-MOST_RUNS:]
        self._latest, self._is_new = (task.gang, label), True
        if len(self._runs) > MOST_NAMES:
            self._runs.popitem(last=False)

    def runs(self) -> Runs:
        """Return what is known now; it does not change any more."""
        if self._is_new:
            self._shared, self._is_new = MappingProxyType(dict(self._runs)), False
        return self._shared
