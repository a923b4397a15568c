"""Lets a simulated cluster live until its end: a moment that was asked for, a stop from outside, or nothing more to happen."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from phalanx.model.duration import DAY_SECONDS
from phalanx.sim.world import World

QUIET_SECONDS = DAY_SECONDS
"""Sessions that change nothing for so long will not change anything later."""


class End(StrEnum):
    """Why a simulation is over."""

    REACHED = "reached"
    """It is the moment that was asked for."""
    DONE = "done"
    """Nothing is planned any more, or nothing but checkpoints of gangs that never end."""
    HOPELESS = "hopeless"
    """Some gangs wait, and for a day nothing has changed for anybody."""
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Ending:
    """How and when a simulation ended, in seconds from its start."""

    end: End
    seconds: float
    is_quiet: bool
    """Nothing would happen any more but sessions."""


def play(world: World, until: float | None, reach: Callable[[float], float]) -> Ending:
    """Let time pass; `reach` is asked for each moment at which something happens, may take its time, and says how far to go."""
    end = None
    while end is None:
        due = world.next_time()
        end = _end(world, due, until)
        if end in (End.DONE, End.HOPELESS):
            break
        wanted = until if end is End.REACHED and until is not None else (due or world.now) - world.start
        reached = reach(wanted)
        world.advance(world.start + reached)
        end = End.INTERRUPTED if reached < wanted else end
    return _ending(world, end)


def _end(world: World, due: float | None, until: float | None) -> End | None:
    """Tell whether it is over before the next moment comes."""
    if until is not None:
        return End.REACHED if due is None or due > world.start + until else None
    if due is None:
        return End.DONE
    if due - world.last_progress <= QUIET_SECONDS or world.next_deed() is not None:
        return None
    return End.DONE if world.time.only_saves() else End.HOPELESS


def _ending(world: World, end: End) -> Ending:
    moment = world.last_change if end is End.DONE else world.now
    return Ending(end, moment - world.start, end is not End.INTERRUPTED and world.next_deed() is None)
