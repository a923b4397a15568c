"""A gang on which a session fails is left out and told so; all others are decided about as if it were not there.

A cycle is pure, so that it can be run again on part of its snapshot. That is how the gang is found: by halves. It takes about as
long as two more cycles, and is done once for as long as the gang stays as it is. Where no single gang is to blame, the cycle fails.
"""

import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

from phalanx.errors import PhalanxError
from phalanx.model.gang import Gang
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.session.decision import Decisions, Fault, Outcome
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import Verdict

SCHEDULER_FAULT = "SchedulerFault"
MOST_FAULTS = 10
"""With more gangs than this to leave out at once, it is not they who are to blame."""
TRIED_AGAIN_SECONDS = 60.0
"""A gang that was left out takes part again when it has changed, or after so long: what it met with may have changed."""


Run = Callable[[Snapshot], Decisions]
"""One cycle on a snapshot."""


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """A gang as it was when a cycle failed on it."""

    gang: Gang
    members: Mapping[TaskKey, Task]
    fault: Fault
    until: float


class Isolation:
    """Runs cycles, and remembers which gangs they failed on."""

    def __init__(self) -> None:
        """Begin with no such gang."""
        self._left_out: dict[GangKey, _LeftOut] = {}

    def run(self, run: Run, snapshot: Snapshot, *, suspects: Collection[GangKey]) -> Decisions:
        """Run a cycle without the gangs, among the suspects, on which it fails; each gets an outcome that says so."""
        faults = {key: left.fault for key, left in self._left_out.items() if _is_as_before(key, left, snapshot)}
        while True:
            seen = without(snapshot, faults)
            try:
                decisions = run(seen)
            except PhalanxError:
                raise  # says itself what is wrong, and it is no gang
            except Exception as problem:
                culprit = _culprit(run, seen, [key for key in suspects if key not in faults])
                if culprit is None or len(faults) >= MOST_FAULTS:
                    raise
                faults[culprit] = _fault(problem)
            else:
                self._remember(snapshot, faults)
                decisions.faults = faults
                decisions.outcomes += [outcome for key in faults for outcome in _outcome(snapshot, key, faults[key])]
                return decisions

    def _remember(self, snapshot: Snapshot, faults: Mapping[GangKey, Fault]) -> None:
        known, until = self._left_out, snapshot.now + TRIED_AGAIN_SECONDS
        fresh = {key: _LeftOut(snapshot.gangs[key], snapshot.members_of(key), fault, until) for key, fault in faults.items()}
        self._left_out = {
            key: known[key] if key in known and known[key].fault is left.fault else left for key, left in fresh.items()
        }


def _is_as_before(key: GangKey, left: _LeftOut, snapshot: Snapshot) -> bool:
    is_same = snapshot.gangs.get(key) is left.gang and snapshot.members_of(key) is left.members
    return is_same and snapshot.now < left.until


def without(snapshot: Snapshot, gangs: Collection[GangKey]) -> Snapshot:
    """Return the cluster as if these were no gangs; their pods keep their places."""
    if not gangs:
        return snapshot
    kept = {key: gang for key, gang in snapshot.gangs.items() if key not in gangs}
    return replace(snapshot, gangs=kept, active=tuple(key for key in snapshot.active if key in kept))


def _culprit(run: Run, snapshot: Snapshot, suspects: list[GangKey]) -> GangKey | None:
    """Return a gang on which the cycle fails even if it is the only suspect; None if no single one is to blame."""
    fails = partial(_fails_with, run, snapshot, frozenset(suspects))
    while len(suspects) > 1:
        middle = len(suspects) // 2
        suspects = next((half for half in (suspects[:middle], suspects[middle:]) if fails(half)), [])
    return suspects[0] if suspects and fails(suspects) else None


def _fails_with(run: Run, snapshot: Snapshot, all_suspects: frozenset[GangKey], some: list[GangKey]) -> bool:
    try:
        run(without(snapshot, all_suspects.difference(some)))
    except Exception:  # whatever it is: which gang it comes from is the question
        return True
    return False


def _fault(problem: Exception) -> Fault:
    sentence = f"the scheduler failed on this gang and leaves it out ({type(problem).__name__}: {problem}); please report it"
    return Fault(sentence, "".join(traceback.format_exception(problem)))


def _outcome(snapshot: Snapshot, key: GangKey, fault: Fault) -> list[Outcome]:
    """Return the outcome of a gang that was left out; none if it cannot even be counted."""
    try:
        return [Outcome.left_out(snapshot, key, Verdict.refuse("", SCHEDULER_FAULT, fault.sentence))]
    except Exception:
        return []
