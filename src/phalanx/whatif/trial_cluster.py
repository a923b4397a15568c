"""A cluster made of objects on which changes are tried: each is entered, decided by one session, and taken back.

The state of the cluster is kept incrementally, so a change costs what it touches and a session, not another reading of all objects.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.explanation import explanation
from phalanx.explain.gang_status import GangStatus, gang_status
from phalanx.explain.reading import Reading, reading_of
from phalanx.explain.tree import Explanation
from phalanx.model.kinds import Document, object_key
from phalanx.scheduling.shards import decide
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.session.shard_decisions import ShardDecisions

WHOLE_TRACE = 5


@dataclass(frozen=True, slots=True)
class ObjectName:
    """Which object is meant."""

    group: str
    """The API group; empty for Kubernetes' first one."""
    kind: str
    key: str
    """Its name, behind its namespace and a slash if it has one."""

    @classmethod
    def of(cls, document: Document) -> "ObjectName":
        """Return the name of an object."""
        return cls(str(document["apiVersion"]).rpartition("/")[0], document["kind"], object_key(document))


@dataclass(frozen=True, slots=True)
class Edit:
    """An object as it is and as it would be; None where it is not there."""

    before: Document | None
    after: Document | None

    @property
    def reverse(self) -> "Edit":
        """The edit that takes this one back."""
        return Edit(self.after, self.before)


@dataclass(frozen=True, slots=True)
class Trial:
    """What one session decided."""

    parts: list[ShardDecisions]
    policy: Policy

    def reading(self, gang: str) -> Reading | None:
        """Return what the session leaves of a gang; None where it is not known."""
        return reading_of(self.parts, gang, self.policy)

    def explanation(self, gang: str) -> Explanation | None:
        """Explain a gang; None where it is not known."""
        reading = self.reading(gang)
        return None if reading is None else explanation(reading)

    def starts(self, gang: str) -> bool:
        """Tell whether a gang has its minimum after the session, or gets it as a whole once others have left."""
        reading = self.reading(gang)
        if reading is None:
            return False
        status = gang_status(reading.gang)
        return status.has_minimum or (status is GangStatus.PIPELINED and reading.gang.is_pipelined)


class TrialCluster:
    """Objects, the cluster that they make, and who decides about it."""

    def __init__(self, documents: Iterable[Document], cluster: ObjectCluster, profile: Profile, now: float) -> None:
        """Take objects as an API server stores them, and the cluster in which they have been entered."""
        self._documents = {ObjectName.of(document): document for document in documents}
        self._cluster, self._profile, self.now = cluster, profile, now

    def find(self, name: ObjectName) -> Document | None:
        """Return an object as it is now."""
        return self._documents.get(name)

    def named(self, group: str, kind: str) -> Iterator[Document]:
        """Return all objects of a kind."""
        return (document for name, document in self._documents.items() if (name.group, name.kind) == (group, kind))

    def decide(self, *, traced: Collection[str] = ()) -> Trial:
        """Hold one session; the trace has every step about the gangs in `traced`."""
        level = WHOLE_TRACE if traced else 0
        parts = decide(self._cluster.snapshot(self.now), self._profile, trace_level=level, traced_gangs=traced)
        return Trial(parts, self._profile.policy)

    @contextmanager
    def changed(self, edits: Sequence[Edit]) -> Iterator["TrialCluster"]:
        """Enter edits, and take them back at the end of the block."""
        done: list[Edit] = []
        try:
            for edit in edits:
                self._enter(edit)
                done.append(edit)
            yield self
        finally:
            for edit in reversed(done):
                self._enter(edit.reverse)

    def _enter(self, edit: Edit) -> None:
        if edit.after is not None:
            self._cluster.put(edit.after)
            self._documents[ObjectName.of(edit.after)] = edit.after
        elif edit.before is not None:
            self._cluster.remove(edit.before)
            self._documents.pop(ObjectName.of(edit.before), None)
