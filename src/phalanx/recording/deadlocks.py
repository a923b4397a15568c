"""Deadlocks of a cluster: half-started gangs that hold what the others need.

None of them gets its minimum from what is free, but each would if the others let go. That is tried on the state of the cluster
itself: the others are taken out, a session that evicts nobody looks for room, and everybody is put back.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_gates
from phalanx.explain.gang_status import gang_status
from phalanx.model.task import GangKey
from phalanx.scheduling.cache import SchedulerCache
from phalanx.session.cycle import run_isolated
from phalanx.session.policy import Policy

MOST_TRIED = 20
"""Of more gangs than these, only the first are looked at: each takes a session."""


class DeadlockSearch:
    """Looks for deadlocks in a cluster."""

    def __init__(self, policy: Policy) -> None:
        """Look for room by the filters of our own profile, whatever a policy says about shares and order."""
        self._policy = policy_of_gates(policy)
        self._catalogue = catalogue_of(self._policy.catalogue)

    def stuck(self, cache: SchedulerCache, gangs: Sequence[GangKey], now: float) -> list[GangKey]:
        """Return those of some half-started gangs that keep each other from starting; none or at least two."""
        if len(gangs) < 2:
            return []
        tried = [gang for gang in gangs[:MOST_TRIED] if not self._has_room(cache, gang, now)]
        found = []
        for gang in tried:
            with _without(cache, (other for other in tried if other != gang)):
                if self._has_room(cache, gang, now):
                    found.append(gang)
        return found if len(found) > 1 else []

    def _has_room(self, cache: SchedulerCache, gang: GangKey, now: float) -> bool:
        """Tell whether a gang gets its minimum if it alone is served."""
        snapshot = replace(cache.snapshot(now), active=(gang,))
        decisions = run_isolated(snapshot, self._policy, self._catalogue)
        return any(outcome.state.key == gang and gang_status(outcome.state).has_minimum for outcome in decisions.outcomes)


@contextmanager
def _without(cache: SchedulerCache, gangs: Iterable[GangKey]) -> Iterator[None]:
    """Take the pods of some gangs out of the state of a cluster inside the block."""
    state = cache.cluster.state
    tasks = [task for gang in gangs for task in state.members(gang).values()]
    for task in tasks:
        state.drop_task(task.key)
    try:
        yield
    finally:
        for task in tasks:
            state.put_task(task)
