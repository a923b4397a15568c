"""Events wait while pods are being bound, keep the time at which they happened, and do not wait for ever."""

import asyncio
from collections.abc import Callable
from typing import cast

from phalanx.controllers.controller import RecordEvent
from phalanx.live import held_events
from phalanx.live.clock import LoopClock
from phalanx.live.held_events import LONGEST_HOLD_SECONDS, STEP_SECONDS, HeldEvents

EVENT = RecordEvent({"metadata": {"name": "a"}}, "Scheduled", "to a node")


class Recorder:
    """Notes what is recorded, and when that happened; None stands for now."""

    def __init__(self) -> None:
        self.moments: list[float | None] = []

    def record(self, event: RecordEvent, now: float | None = None) -> None:
        assert event is EVENT
        self.moments.append(now)


class Clock(LoopClock):
    """A clock that a test turns."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 100.0
        self.planned: list[Callable[[], None]] = []

    @property
    def now(self) -> float:
        return self.at

    @property
    def elapsed(self) -> float:
        return self.at

    def after(self, seconds: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        self.planned.append(action)
        return cast(asyncio.TimerHandle, self)  # it is cancelled at most

    def cancel(self) -> None:
        self.planned.clear()

    def turn(self, seconds: float) -> None:
        self.at += seconds
        planned, self.planned = self.planned, []
        for action in planned:
            action()


class Held:
    """Held events with what they are connected to."""

    def __init__(self) -> None:
        self.recorder, self.clock, self.is_busy = Recorder(), Clock(), False
        self.events = HeldEvents(self.recorder, self.clock, is_busy=lambda: self.is_busy)  # type: ignore[arg-type]  # as it is used


def test_an_event_is_recorded_at_once_when_nothing_is_bound() -> None:
    held = Held()
    held.events.record(EVENT)
    assert held.recorder.moments == [None]


def test_events_wait_while_pods_are_bound_and_keep_their_time_and_order() -> None:
    held = Held()
    held.is_busy = True
    held.events.record(EVENT)
    held.clock.turn(STEP_SECONDS)
    held.is_busy = False
    held.events.record(EVENT)
    assert held.recorder.moments == []
    held.clock.turn(STEP_SECONDS)
    assert held.recorder.moments == [100.0, 100.0 + STEP_SECONDS]
    assert not held.clock.planned


def test_events_do_not_wait_for_ever() -> None:
    held = Held()
    held.is_busy = True
    held.events.record(EVENT)
    held.clock.turn(LONGEST_HOLD_SECONDS)
    assert held.recorder.moments == [100.0]


def test_of_many_events_some_are_recorded_in_each_step() -> None:
    held = Held()
    held.is_busy = True
    for _ in range(held_events.AT_ONCE + 1):
        held.events.record(EVENT)
    held.is_busy = False
    held.clock.turn(STEP_SECONDS)
    assert len(held.recorder.moments) == held_events.AT_ONCE
    held.clock.turn(STEP_SECONDS)
    assert len(held.recorder.moments) == held_events.AT_ONCE + 1


def test_who_does_not_lead_any_more_forgets_them() -> None:
    held = Held()
    held.is_busy = True
    held.events.record(EVENT)
    held.events.forget()
    held.is_busy = False
    held.clock.turn(STEP_SECONDS)
    assert held.recorder.moments == []
