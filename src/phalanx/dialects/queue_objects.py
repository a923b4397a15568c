"""Queues of Volcano and of KAI, which may have the same name, and the two that are there without an object.

Both projects install a queue `default`, so a cluster with both has two of that name. Gangs name their queue and nothing more.
Which one is meant depends on who schedules: by KAI's rules it is KAI's, by all others Volcano's. The other one has no effect then,
but it is kept: neither replaces the other, in whatever order they come, and when one goes the other one counts.

Only gangs of KAI's must name a queue that somebody has created. The others are in `default` unless they say otherwise, and KAI's
rules give it a share as long as there are such gangs or queues of Volcano's: without them KAI's shares are what they are in KAI.
"""

from phalanx.dialects import volcano
from phalanx.model.queue import ROOT, Queue
from phalanx.state.cluster import ClusterState

IMPLIED_QUEUES = ("default", ROOT)
"""Queues that are there without an object; they have no uid."""
KAI, VOLCANO = "kai", "volcano"


class QueueObjects:
    """The queues of a cluster as their objects say, entered into its state."""

    def __init__(self, state: ClusterState) -> None:
        """Start with the two queues that always exist."""
        self._state = state
        self._objects: dict[tuple[str, str], Queue] = {}
        self._serves_others = False
        for name in IMPLIED_QUEUES:
            self._update(name)

    def put(self, dialect: str, queue: Queue) -> None:
        """Enter a queue of a dialect, or replace it."""
        self._objects[dialect, queue.name] = queue
        self._update(queue.name)

    def remove(self, dialect: str, name: str) -> None:
        """Remove a queue of a dialect; one that always exists becomes what it is without an object."""
        self._objects.pop((dialect, name), None)
        self._update(name)

    def serve_others(self, *, is_needed: bool) -> None:
        """Give the queues that always exist a share under KAI's rules if gangs of other dialects need it, or Volcano has queues."""
        is_needed = is_needed or any(dialect == VOLCANO for dialect, _ in self._objects)
        if is_needed != self._serves_others:
            self._serves_others = is_needed
            for name in IMPLIED_QUEUES:
                self._update(name)

    def _update(self, name: str) -> None:
        first, second = self._objects.get((VOLCANO, name)), self._objects.get((KAI, name))
        found = first or second or (self._implied(name) if name in IMPLIED_QUEUES else None)
        if found is None:
            self._state.drop_queue(name)
        else:
            self._state.put_queue(found, namesake=second if first is not None else None)

    def _implied(self, name: str) -> Queue:
        return volcano.with_bounds(Queue(name)) if self._serves_others else Queue(name)
