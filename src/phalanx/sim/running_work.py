"""What running gangs do: work, as long as enough of them run together, and end.

A gang makes progress only while it has its minimum; pods of a half-started gang run and achieve nothing. That is what makes a
deadlock one. Each pod ends after its gang has worked for as long as the pod says. A gang that is interrupted begins anew, or where
it last saved its work.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.explain.gang_status import has_minimum
from phalanx.model.duration import seconds_in
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.model.work_annotations import CHECKPOINT_EVERY
from phalanx.model.work_annotations import DURATION as DURATION
from phalanx.sim.settings import FOREVER, Settings, Span, span_in
from phalanx.sim.virtual_time import Precedence, VirtualTime, VirtualTimer
from phalanx.state.gang_state import GangState

Finish = Callable[[list[TaskKey]], None]


def duration_of(text: str) -> Span:
    """Return a duration such as 90s, 2h30m or a plain number of seconds, or a range of them such as 30m..2h."""
    found = span_in(text)
    if found is None:
        raise SnapshotError(f"annotation {DURATION}: {text!r} is not a duration; write for example '90s', '2h30m' or '30m..2h'")
    return found


@dataclass(slots=True)
class Shift:
    """The work of one gang since it last became whole."""

    since: float | None = None
    done: float = 0.0
    """Seconds of work in earlier shifts that were not lost."""
    saved: float = 0.0
    """Seconds of work of all shifts until the last checkpoint."""
    checkpoint: VirtualTimer | None = None
    """The next one."""
    timers: dict[float, VirtualTimer] = field(default_factory=dict)
    tasks_by_duration: dict[float, set[TaskKey]] = field(default_factory=dict)


class Work:
    """Watches gangs become whole and broken, and ends their pods."""

    def __init__(self, cluster: ObjectCluster, time: VirtualTime, settings: Settings, chance: Random, finish: Finish) -> None:
        """Call `finish` with pods whose time has come."""
        self._cluster, self._time, self._settings, self._chance, self._finish = cluster, time, settings, chance, finish
        self._shifts: dict[GangKey, Shift] = {}
        self._durations: dict[GangKey, dict[str, float]] = {}
        """Drawn once for each gang, by what its annotation says."""
        self._done = dict(settings.done_by_gang)
        self._dirty: dict[GangKey, None] = {}
        self.listeners: list[Callable[[GangKey, bool, float], None]] = []
        """Told when a gang became whole, or ceased to be; then also how many seconds of what it did since are not lost."""
        self.saving: list[Callable[[GangKey], None]] = []
        """Told when a gang saves its work."""

    def touch(self, gang: GangKey) -> None:
        """Look at a gang again at the end of this moment."""
        if not self._dirty:
            self._time.after(0, Precedence.WORK, self._look)
        self._dirty[gang] = None

    def is_whole(self, gang: GangKey) -> bool:
        """Tell whether a gang is at work."""
        return gang in self._shifts and self._shifts[gang].since is not None

    def forget(self, gang: GangKey) -> None:
        """Take a gang out that is no longer there."""
        shift = self._shifts.pop(gang, None)
        self._durations.pop(gang, None)
        if shift is not None:
            _cancel(shift)

    def expected_seconds(self, gang: GangKey) -> float | None:
        """Return how long the pods of a gang work, at most; None while that is not drawn yet, or has no end."""
        tasks = [task for task in self._cluster.state.members(gang).values() if not task.is_placeholder]
        found = [self._known_duration(gang, task) for task in tasks]
        known = [seconds for seconds in found if seconds is not None and seconds != FOREVER]
        return max(known) if known and len(known) == len(found) else None

    def _known_duration(self, key: GangKey, task: Task) -> float | None:
        if key in self._settings.duration_by_gang:
            return self._settings.duration_by_gang[key]
        text = self._duration_text(key, task)
        span = duration_of(text) if text else self._settings.span_of(key)
        return span.low if span.low == span.high else self._durations.get(key, {}).get(text)

    def _look(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for key in dirty:
            gang = self._cluster.state.gang(key)
            if gang is None:
                self.forget(key)
                continue
            members = self._cluster.state.members(key)
            running = [task for task in members.values() if task.status is Status.RUNNING]
            at_work = [task for task in members.values() if task.status in (Status.RUNNING, Status.SUCCEEDED)]
            is_whole = bool(running) and has_minimum(GangState(gang, ((task, -1) for task in at_work)))
            self._set(key, is_whole, running)

    def _set(self, key: GangKey, is_whole: bool, running: list[Task]) -> None:
        shift = self._shifts.setdefault(key, Shift(done=self._done.pop(key, 0.0)))
        if is_whole and shift.since is None:
            shift.since = self._time.now
            self._tell(key, is_whole=True)
            self._plan_checkpoint(key, shift, running[0])
        elif not is_whole and shift.since is not None:
            before = shift.done
            shift.done = before + self._time.now - shift.since if self._settings.keeps_progress else shift.saved
            shift.since = None
            _cancel(shift)
            self._tell(key, is_whole=False, kept=max(shift.done - before, 0.0))
        if is_whole:
            self._plan(key, shift, running)

    def _tell(self, key: GangKey, *, is_whole: bool, kept: float = 0.0) -> None:
        for listener in self.listeners:
            listener(key, is_whole, kept)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def _plan_checkpoint(self, key: GangKey, shift: Shift, task: Task) -> None:
        every = self._checkpoint_every(key, task)
        if every:
            shift.checkpoint = self._time.after(every, Precedence.CHECKPOINT, lambda: self._save(key, shift, task))

    def _save(self, key: GangKey, shift: Shift, task: Task) -> None:
        """Let a gang save what it has done, and again after a while."""
        if shift.since is not None:
            shift.saved = shift.done + self._time.now - shift.since
            for listener in self.saving:
                listener(key)
            self._plan_checkpoint(key, shift, task)

    def _checkpoint_every(self, key: GangKey, task: Task) -> float:
        text = self._annotation(CHECKPOINT_EVERY, key, task)
        return (seconds_in(text) or 0.0) if text else self._settings.checkpoint_every(key)

    # --- ends --------------------------------------------------------------------------------------------------------

    def _plan(self, key: GangKey, shift: Shift, running: list[Task]) -> None:
        """Plan the end of each running pod: so long after now as it has not worked yet."""
        planned = set().union(*shift.tasks_by_duration.values()) if shift.tasks_by_duration else set()
        for task in running:
            duration = self._duration(key, task)
            if task.key in planned or duration == FOREVER or task.is_placeholder:
                continue
            end = self._time.now + max(duration - shift.done, 0.0)
            shift.tasks_by_duration.setdefault(end, set()).add(task.key)
            if end not in shift.timers:
                shift.timers[end] = self._time.at(end, Precedence.WORLD, lambda end=end: self._end(key, end))  # type: ignore[misc]

    def _duration(self, key: GangKey, task: Task) -> float:
        known = self._settings.duration_by_gang.get(key)
        if known is not None:
            return known
        text, drawn = self._duration_text(key, task), self._durations.setdefault(key, {})
        if text not in drawn:
            drawn[text] = (duration_of(text) if text else self._settings.span_of(key)).draw(self._chance)
        return drawn[text]

    def _duration_text(self, key: GangKey, task: Task) -> str:
        return self._annotation(DURATION, key, task)

    def _annotation(self, name: str, key: GangKey, task: Task) -> str:
        """Return what a pod says, else its group."""
        gang = self._cluster.state.gang(key)
        return task.annotations.get(name, gang.annotations.get(name, "") if gang is not None else "")

    def _end(self, key: GangKey, end: float) -> None:
        shift = self._shifts.get(key)
        if shift is not None and end in shift.tasks_by_duration:
            shift.timers.pop(end)
            self._finish(sorted(shift.tasks_by_duration.pop(end)))


def _cancel(shift: Shift) -> None:
    for timer in shift.timers.values():
        timer.cancel()
    shift.timers, shift.tasks_by_duration = {}, {}
    if shift.checkpoint is not None:
        shift.checkpoint.cancel()
