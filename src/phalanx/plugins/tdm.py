"""Time division multiplexing: nodes that others lend for a part of the day.

A node with the label ``volcano.sh/revocable-zone: NAME`` takes tasks only in the daily window that the argument
``tdm.revocable-zone.NAME: "10:00-21:00"`` gives, and only revocable ones: those with the annotation
``volcano.sh/revocable-zone: "*"`` or ``volcano.sh/preemptable: "true"``. After the window the shuffle action clears the node, a
few tasks of a gang at a time. On ordinary nodes tasks that are not preemptable may push out those that are.

Times of day are in UTC, at the moment of the session. A window that ends before it begins goes over midnight, and one that ends
when it begins never closes; Volcano closes both at midnight until they begin again.

Volcano keeps the time of its last eviction in the process. Here it follows from the cluster: a gang loses no more tasks while
one of them is leaving, for at most ``tdm.evict.period``.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import eq

import numpy as np

from phalanx.errors import ConfigError
from phalanx.model.shape import Shape
from phalanx.model.task_status import COMPLETED, Status
from phalanx.placement import Index, Mask, Scores
from phalanx.placement.score import TOP
from phalanx.session.arguments import Arguments
from phalanx.session.node_answers import Layer, Site
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import PERMITTED, YES, Verdict, Vote

ZONE = "volcano.sh/revocable-zone"
WINDOW = "tdm.revocable-zone."
MIN_AVAILABLE, MAX_UNAVAILABLE = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
DEFAULT_BUDGET = 1
"""How many tasks of a gang go at a time when its group does not say."""
NOT_REVOCABLE = "node(s) were in a revocable zone that the task must not use"

_DAY_SECONDS = 24 * 60 * 60
_CLOCK = r"([01]?\d|2[0-3]):([0-5]\d)"
_WINDOW = re.compile(rf"{_CLOCK}-{_CLOCK}")
_AMOUNT = re.compile(r"(\d{1,9})(%?)")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of every day, in seconds since midnight, both ends included."""

    start: int
    end: int
    text: str

    def is_open(self, now: float) -> bool:
        """Tell whether a moment is inside."""
        moment = int(now // 1) % _DAY_SECONDS
        if self.start < self.end:
            return self.start <= moment <= self.end
        return moment >= self.start or moment <= self.end


class TdmPlugin:
    """Opens and clears revocable nodes by the time of day."""

    name = "tdm"
    protects = "it is on a revocable node or not preemptable, or the preemptor is preemptable or revocable itself"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the windows and how long a gang is left in peace after an eviction."""
        settings = Arguments(self.name, policy.arguments, prefixes=(WINDOW,))
        self._period_seconds = settings.seconds("tdm.evict.period", "1m") or 0.0
        settings.done()
        zones = {key.removeprefix(WINDOW): value for key, value in policy.arguments.items() if key.startswith(WINDOW)}
        self._windows = {zone: _read_window(zone, value) for zone, value in zones.items()}

    def open(self, session: Session) -> None:
        """Look up which nodes are revocable, and which of them are open now."""
        session.decisions.may_change_with_time()
        column = session.snapshot.nodes.label(ZONE)
        is_open = {zone: window.is_open(session.now) for zone, window in self._windows.items()}
        self._revocable: Mask = column.where(bool)
        self._open: Mask = column.where(lambda zone: is_open.get(zone or "", False))
        self._over: Mask = column.where(lambda zone: not is_open.get(zone or "", True))
        shut = [zone for zone in sorted(column.values) if zone and not is_open.get(zone, False)]
        self._shut = [(column.where(partial(eq, zone)), self._closing_reason(zone)) for zone in shut]

    def _closing_reason(self, zone: str) -> str:
        window = self._windows.get(zone)
        return f"node(s) were in revocable zone {zone} ({f'open {window.text} UTC' if window else 'without a window'})"

    def screen(self, session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Refuse zones that are shut, and to tasks that are not revocable the open ones too."""
        layers = [Layer(mask[nodes], reason, is_final=True) for mask, reason in self._shut]
        return layers if shape.is_revocable else [*layers, Layer(self._open[nodes], NOT_REVOCABLE, is_final=True)]

    def node_scores(self, session: Session, shape: Shape, site: Site) -> Scores:
        """Send revocable tasks to revocable nodes."""
        return np.where(self._open[site.nodes] & shape.is_revocable, float(TOP), 0.0)

    def preemptable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Let preemptable tasks on ordinary nodes go for one that is neither preemptable nor revocable."""
        if preemptor.task.is_preemptable or preemptor.task.shape.is_revocable:
            return []
        return _within_budgets(task for task in candidates if _may_leave(task) and not self._revocable[task.node])

    def why_protected(self, session: Session, preemptor: TaskState, victim: TaskState) -> Verdict:
        """Say whether it is the preemptor, the victim, its node or the budget of its gang."""
        if preemptor.task.is_preemptable or preemptor.task.shape.is_revocable:
            text = "stays, since the preemptor is preemptable or revocable itself"
        elif self._revocable[victim.node]:
            text = f"is on the revocable node {session.node_name(victim.node)}"
        else:
            text = "is not preemptable, or its gang gives no more at a time"
        return Verdict.refuse(self.name, "TimeDivision", text)

    def victim_tasks(self, session: Session, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Clear nodes whose window is over, gang by gang as its budget allows."""
        due = [task for task in candidates if _may_leave(task) and self._over[task.node]]
        return _within_budgets(task for task in due if not self._is_in_peace(task.gang, session.now))

    def _is_in_peace(self, gang: GangState, now: float) -> bool:
        leaving = (task.task.leaving_since for task in gang.tasks if task.task.status is Status.RELEASING)
        return any(since + self._period_seconds > now for since in leaving)

    def gang_order(self, session: Session, gang: GangState) -> int:
        """Gangs that are not preemptable come first."""
        return int(bool(gang.gang.is_preemptable))

    def gang_pipelined(self, session: Session, gang: GangState) -> Vote:
        """Vote for a gang whose minimum is met, pipelined members included."""
        if gang.is_pipelined:
            return PERMITTED
        return Vote.reject(self.name, "NotEnoughTasks", ready=gang.tally.ready, needed=gang.gang.min_member)

    def gang_starving(self, session: Session, gang: GangState) -> Verdict:
        """Agree while a gang that is not preemptable has tasks that wait."""
        if gang.gang.is_preemptable:
            return Verdict.refuse(self.name, "Preemptable", "a preemptable gang takes no room from others")
        waiting = gang.tally.counts[Status.PENDING]
        return YES if waiting else Verdict.refuse(self.name, "NotStarving", waiting=waiting)


def _read_window(zone: str, value: object) -> Window:
    match = _WINDOW.fullmatch(str(value).strip())
    if match is None:
        raise ConfigError(f"plugin 'tdm', argument '{WINDOW}{zone}': {value!r} is not a window; write for example '10:00-21:00'")
    hours = [int(part) for part in match.groups()]
    return Window(hours[0] * 3600 + hours[1] * 60, hours[2] * 3600 + hours[3] * 60, match[0])


def _may_leave(task: TaskState) -> bool:
    return task.task.is_preemptable and task.status is Status.RUNNING and task.node >= 0


def _within_budgets(tasks: Iterable[TaskState]) -> list[TaskState]:
    """Return the first tasks of each gang, as many as may go at a time."""
    left: dict[str, int] = {}
    victims = []
    for task in tasks:
        budget = left.setdefault(task.gang.key, _budget(task.gang))
        if budget > 0:
            left[task.gang.key] = budget - 1
            victims.append(task)
    return victims


def _budget(gang: GangState) -> int:
    """Return how many running tasks a gang can lose now, by the annotations of its group."""
    total, running = len(gang.tasks), gang.tally.counts[Status.RUNNING]
    minimum = _amount(gang.gang.annotations.get(MIN_AVAILABLE), total)
    if minimum is not None:
        return max(running - minimum, 0)
    maximum = _amount(gang.gang.annotations.get(MAX_UNAVAILABLE), total)
    if maximum is not None:
        return max(maximum - (total - gang.tally.total(COMPLETED) - running), 0)
    return DEFAULT_BUDGET


def _amount(text: str | None, total: int) -> int | None:
    """Return a number of tasks, given as such or in percent of all, rounded up; None when it is neither."""
    match = _AMOUNT.fullmatch((text or "").strip())
    if match is None:
        return None
    return -(-int(match[1]) * total // 100) if match[2] else int(match[1])
