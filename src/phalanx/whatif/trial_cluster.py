"""A cluster made of objects on which changes are tried: each is entered, decided by one session, and taken back.

The state of the cluster is kept incrementally, so a change costs what it touches and a session, not another reading of all objects.
Gangs behind our scheduling gate are decided as `phalanx run` does it: by a session on the cluster as it would be without the gates.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_gates
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.gates import GangGates
from phalanx.errors import SnapshotError
from phalanx.explain.explanation import explanation, without_group
from phalanx.explain.gang_status import GangStatus, gang_status
from phalanx.explain.reading import Reading, reading_of
from phalanx.explain.tree import Explanation
from phalanx.model.gang import Gang
from phalanx.model.kinds import POD, Document, Kind, object_key
from phalanx.model.task import GangKey, Task
from phalanx.scheduling.gates import GatedGangs, GatePlanner
from phalanx.scheduling.shards import decide
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.state.snapshot import Snapshot
from phalanx.store.completion import known_kind
from phalanx.whatif.gang_owner import Find, owner_of

WHOLE_TRACE = 5


@dataclass(frozen=True, slots=True)
class Edit:
    """An object as it is and as it would be; None where it is not there."""

    before: Document | None
    after: Document | None

    @property
    def reverse(self) -> "Edit":
        """The edit that takes this one back."""
        return Edit(self.after, self.before)


class Change(Protocol):
    """Something that would be different."""

    @property
    def text(self) -> str:
        """The change as one types it."""
        ...

    def edits(self, cluster: "TrialCluster") -> list[Edit]:
        """Return the objects that it changes; raises where the cluster has nothing of the kind."""
        ...


@dataclass(frozen=True, slots=True)
class Trial:
    """What one session decided, and one behind our gates where they hold gangs back."""

    parts: list[ShardDecisions]
    policy: Policy
    find: Find
    """Returns an object of the cluster."""
    contested: Mapping[str, str]
    """Pods that name several gangs, each with what is wrong."""
    gated: GatedGangs | None = None

    def reading(self, gang: str) -> Reading | None:
        """Return what the session leaves of a gang; None where it is not known."""
        if self.gated is not None and gang in self.gated.gangs:
            behind = ShardDecisions("", self.gated.snapshot, self.gated.decisions)
            return reading_of([behind], gang, policy_of_gates(self.policy))
        return reading_of(self.parts, gang, self.policy)

    def explanation(self, gang: str) -> Explanation | None:
        """Explain a gang, also one that pods name and nobody describes; None where it is not known."""
        reading = self.reading(gang)
        if reading is None:
            return without_group([part.snapshot for part in self.parts], gang)
        return explanation(replace(reading, owner=owner_of(reading.gang, self.find), contested=self.contested))

    def starts(self, gang: str) -> bool:
        """Tell whether a gang has its minimum after the session, or gets it as a whole once others have left."""
        reading = self.reading(gang)
        return reading is not None and starts(reading)


def starts(reading: Reading) -> bool:
    """Tell whether a gang has its minimum after a session, or gets it as a whole once others have left."""
    status = gang_status(reading.gang)
    return status.has_minimum or (status is GangStatus.PIPELINED and reading.gang.is_pipelined)


class TrialCluster:
    """Objects, the cluster that they make, and who decides about it."""

    def __init__(self, documents: Iterable[Document], cluster: ObjectCluster, profile: Profile, now: float) -> None:
        """Take objects as an API server stores them, and the cluster in which they have been entered."""
        self._documents: dict[tuple[str, str], dict[str, Document]] = {}
        self._cluster, self.profile, self.now = cluster, profile, now
        cluster.attach = profile.policy.attach_rules
        self._gates = GangGates(profile.policy.flags.gates)
        behind = policy_of_gates(profile.policy)
        self._planner = GatePlanner(Profile(behind, catalogue_of(behind.catalogue)), self.everything)
        gated: Document | None = None
        for document in documents:
            self._table(document)[object_key(document)] = document
            if gated is None and document["kind"] == POD.kind and self._gates.of(document):
                gated = document
        if gated is not None:
            self._planner.notice(POD, gated, is_gone=False)

    def _table(self, document: Document) -> dict[str, Document]:
        group = str(document["apiVersion"]).rpartition("/")[0]
        return self._documents.setdefault((group, str(document["kind"])), {})

    def everything(self) -> Iterator[Document]:
        """Return all objects as they are now."""
        return (document for table in self._documents.values() for document in table.values())

    @property
    def objects(self) -> ObjectCluster:
        """The cluster that the objects make; whoever looks at it changes nothing."""
        return self._cluster

    # --- what is there -----------------------------------------------------------------------------------------------

    def document(self, group: str, kind: str, key: str) -> Document | None:
        """Return the object of an API group, a kind and a key as it is now."""
        return self._documents.get((group, kind), {}).get(key)

    def find(self, kind: Kind, key: str) -> Document | None:
        """Return an object as it is now; the key of one without namespace is its name."""
        return self.document(kind.group, kind.kind, key if kind.is_namespaced else f"default/{key}")

    def all_of(self, kind: Kind) -> Collection[Document]:
        """Return all objects of a kind."""
        return self._documents.get((kind.group, kind.kind), {}).values()

    def gang(self, key: str) -> Gang | None:
        """Return a gang as its objects describe it."""
        return self._cluster.state.gang(GangKey(key))

    @property
    def gangs(self) -> Collection[str]:
        """The keys of all gangs."""
        return self._cluster.state.gang_keys

    @property
    def resources(self) -> Collection[str]:
        """The names of all resources that nodes, pods or queues have."""
        return self.snapshot().space.row_by_name.keys()

    def members(self, gang: str) -> list[Task]:
        """Return the pods of a gang as tasks."""
        return list(self._cluster.state.members(GangKey(gang)).values())

    def on_node(self, name: str) -> list[Task]:
        """Return the pods that are on a node, as tasks."""
        return list(self._cluster.state.on_node(name).values())

    def pods_of(self, gang: str) -> list[Document]:
        """Return the pods of a gang."""
        found = (self.find(POD, task.key) for task in self.members(gang))
        return [pod for pod in found if pod is not None]

    def snapshot(self) -> Snapshot:
        """Return the cluster as a session sees it now."""
        return self._cluster.snapshot(self.now)

    def enter(self, edit: Edit) -> SnapshotError | None:
        """Make a change for good, as when an object has changed; return what is wrong with one that nobody can read."""
        return self._problem(edit)

    # --- trying ------------------------------------------------------------------------------------------------------

    def decide(self, *, traced: Collection[str] = ()) -> Trial:
        """Hold one session; the trace has every step about the gangs in `traced`."""
        level = WHOLE_TRACE if traced else 0
        parts = decide(self.snapshot(), self.profile, trace_level=level, traced_gangs=traced)
        gated = self._planner.look(self.now, trace_level=level, traced_gangs=traced)
        return Trial(parts, self.profile.policy, self.document, self._cluster.contested, gated)

    @contextmanager
    def with_changes(self, changes: Sequence[Change]) -> Iterator["TrialCluster"]:
        """Make changes one after the other, and take them back at the end of the block."""
        with ExitStack() as undo:
            for change in changes:
                undo.enter_context(self.changed(change.edits(self)))
            yield self

    def idle_changes(self, changes: Sequence[Change]) -> list[Change]:
        """Return the changes that leave every object as it is, made one after the other."""
        found = []
        with ExitStack() as undo:
            for change in changes:
                edits = change.edits(self)
                found += [change] if all(edit.before == edit.after for edit in edits) else []
                undo.enter_context(self.changed(edits))
        return found

    @contextmanager
    def changed(self, edits: Sequence[Edit]) -> Iterator["TrialCluster"]:
        """Enter edits, and take them back at the end of the block; an object that nobody could read is refused."""
        try:
            refused = self._enter_all(edits)
            if refused:
                raise refused[0]
            yield self
        finally:
            self._enter_all([edit.reverse for edit in reversed(edits)])

    def _enter_all(self, edits: Sequence[Edit]) -> list[SnapshotError]:
        """Enter edits; return what is wrong with those that cannot be read even when all others are there.

        Pods that describe their gang contradict each other while some of them have changed and others not yet.
        """
        first = [edit for edit in edits if self._problem(edit) is not None]
        return [problem for edit in first if (problem := self._problem(edit)) is not None]

    def _problem(self, edit: Edit) -> SnapshotError | None:
        try:
            self._enter(edit)
        except SnapshotError as problem:
            return problem
        return None

    def _enter(self, edit: Edit) -> None:
        document = edit.after if edit.after is not None else edit.before
        if document is None:
            return
        kind = known_kind(document)
        if kind is not None:
            self._planner.notice(kind, document, is_gone=edit.after is None)
        if edit.after is not None:
            self._table(document)[object_key(document)] = document
            self._cluster.put(document)
        else:
            self._table(document).pop(object_key(document), None)
            self._cluster.remove(document)
