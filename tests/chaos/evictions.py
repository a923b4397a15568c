"""Evictions in vain: somebody had to go for a gang that had no place afterwards, although nothing went wrong any more.

Who was evicted for whom stands in the events of the pods; who got a place since then, the ledger knows.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any

from phalanx.explain.gang_status import gang_status
from phalanx.model.kinds import POD, Document
from phalanx.scheduling.eviction import PREEMPTED
from phalanx.testing.storm.invariants import Rest, Violation, evicted_in_vain
from tests.chaos.gangs import LABEL
from tests.chaos.recorder import Follower, Ledger
from tests.support.http_api import Connection

EVENTS = "/api/v1/namespaces/{}/events"
AFTER_TROUBLE_SECONDS = 10.0
"""For so long after faults or a change of the leader, somebody may still go who was chosen before."""
FOR_WHOM = re.compile(r"By \S+ for (.+?)(: |$)")


@dataclass(slots=True)
class Evictions:
    """Who was evicted for whom, and since when nothing goes wrong."""

    ledger: Ledger
    calm_since: float = inf
    _told: dict[str, tuple[float, str, str]] = field(default_factory=dict)
    """By the uid of the event: when the pod began to leave, its name, and for whom."""

    def note_event(self, type_: str, event: Mapping[str, Any]) -> None:
        """Take in an event of a pod."""
        found = FOR_WHOM.match(event["message"]) if event.get("reason") == PREEMPTED and type_ != "DELETED" else None
        if found is not None:
            pod = event["involvedObject"]
            moment = self.ledger.left_at.get(pod["uid"], self.ledger.clock())
            self._told.setdefault(event["metadata"]["uid"], (moment, pod["name"], found[1]))

    def of_calm_weather(self) -> list[tuple[float, str, str]]:
        """Return the evictions that nothing excuses which went wrong."""
        since = max(self.calm_since, self.ledger.leader_since) + AFTER_TROUBLE_SECONDS
        return [item for item in list(self._told.values()) if item[0] > since]

    def violations(self, rest: Rest) -> Iterator[Violation]:
        """Yield those that were in vain, once the cluster is at rest."""
        waiting = _waiting(rest)
        return evicted_in_vain(
            self.of_calm_weather(),
            lambda key, moment: key not in waiting or any(self._is_excused(pod, moment) for pod in waiting[key]),
        )

    def _is_excused(self, pod: Document, moment: float) -> bool:
        """Tell whether one of the gang of a pod had a place since, or somebody more important came and has one."""
        if self.ledger.bound_at.get(pod["metadata"].get("labels", {}).get(LABEL, ""), -inf) >= moment:
            return True
        return any(
            other["spec"].get("nodeName") and self.ledger.seen[uid] >= moment and _rank(other) > _rank(pod)
            for uid, other in list(self.ledger.pods.items())
        )


@contextmanager
def watched_evictions(connection: Connection, namespace: str, ledger: Ledger) -> Iterator[Evictions]:
    """Follow the events of a namespace beside the block."""
    found = Evictions(ledger)
    follower = Follower(connection, EVENTS.format(namespace), found.note_event)
    follower.start()
    yield found
    follower.is_over.set()


def _rank(pod: Mapping[str, Any]) -> int:
    return int(pod["spec"].get("priority") or 0)


def _waiting(rest: Rest) -> dict[str, list[Document]]:
    """Return the gangs without their minimum, each with its pods."""
    states = [outcome.state for outcome in rest.decisions.outcomes if not gang_status(outcome.state).has_minimum]
    return {str(state.key): [rest.documents[POD, str(task.task.key)] for task in state.tasks] for state in states}
