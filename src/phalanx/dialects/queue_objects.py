"""Queues of Volcano and of KAI, which may have the same name, and the two that are there without an object.

Both projects install a queue `default`, so a cluster with both has two of that name. Gangs name their queue and nothing more.
Which one is meant depends on who schedules: by KAI's rules it is KAI's, by all others Volcano's. The other one has no effect then,
but it is kept: neither replaces the other, in whatever order they come, and when one goes the other one counts.
"""

from collections.abc import Mapping
from typing import Any

from phalanx.dialects import volcano
from phalanx.model.kinds import object_key
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
        self._volcano: set[str] = set()
        """Groups and queues of Volcano's, by kind and name."""
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

    def note_volcano(self, document: Mapping[str, Any], *, is_there: bool) -> None:
        """Give the queues that always exist in Volcano a share under KAI's rules, but only while there are objects of Volcano."""
        key = f"{document['kind']} {object_key(document)}"
        had_any = bool(self._volcano)
        (self._volcano.add if is_there else self._volcano.discard)(key)
        for name in IMPLIED_QUEUES if had_any != bool(self._volcano) else ():
            self._update(name)

    def _update(self, name: str) -> None:
        first, second = self._objects.get((VOLCANO, name)), self._objects.get((KAI, name))
        found = first or second or (self._implied(name) if name in IMPLIED_QUEUES else None)
        if found is None:
            self._state.drop_queue(name)
        else:
            self._state.put_queue(found, namesake=second if first is not None else None)

    def _implied(self, name: str) -> Queue:
        return volcano.with_bounds(Queue(name)) if self._volcano else Queue(name)
