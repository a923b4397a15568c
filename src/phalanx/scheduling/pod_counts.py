"""Which gangs lack pods only for the moment: their controllers create or delete pods one by one.

Nothing is said about the missing pods of such a gang. When it has pods that were created a moment ago, their creation times tell.
When pods go, nothing on the objects tells, so it is remembered here how many there were. A controller that scales a gang down may
take pods that run before those that wait: until it is done the gang looks like one that lost members, and that is not said either.
"""

from collections.abc import Container

from phalanx.model.task import GangKey
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState
from phalanx.state.staleness import stale_verdict


class PodCounts:
    """How many pods gangs have that lack some, and since when they have so many."""

    def __init__(self, quiet_seconds: float) -> None:
        """A count that has not changed for `quiet_seconds` is what the owner wants; 0: every count is."""
        self._quiet_seconds = quiet_seconds
        self._counts: dict[GangKey, tuple[int, float]] = {}

    def is_changing(self, outcome: Outcome) -> bool:
        """Note how many pods a gang has; tell whether it lacks some and was given or lost one a moment ago."""
        state, key = outcome.state, GangKey(outcome.state.key)
        present = _present(state)
        if not self._quiet_seconds or present >= state.gang.min_member:
            self._counts.pop(key, None)
            return False
        count, since = self._counts.get(key, (-1, outcome.now))
        if count != present:
            since = outcome.now
        self._counts[key] = present, since
        newest = max([state.gang.created, since, *(task.task.created for task in state.tasks)])
        return outcome.now - newest < self._quiet_seconds

    def keep(self, gangs: Container[GangKey]) -> None:
        """Forget gangs that are gone."""
        self._counts = {key: entry for key, entry in self._counts.items() if key in gangs}

    def remembered(self) -> list[tuple[str, int, float]]:
        """Return gangs that lack pods, how many they have, and since when."""
        return [(key, count, since) for key, (count, since) in self._counts.items()]

    def remember(self, counts: list[tuple[str, int, float]]) -> None:
        """Go on with what was remembered before."""
        self._counts = {GangKey(key): (count, since) for key, count, since in counts}


def _present(state: GangState) -> int:
    """Return how many pods a gang has; those of a stale one that their controller takes away are gone already."""
    leaving = [task for task in state.tasks if task.task.is_leaving and task.task.has_controller]
    return len(state.tasks) - len(leaving) if stale_verdict(state) is not None else len(state.tasks)
