"""What a waiting gang lacks, as the session that refused it says: what candidates for a remedy are made from."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phalanx.dialects.status import placeable
from phalanx.explain.gang_status import minimum_of
from phalanx.explain.reading import Reading
from phalanx.kubernetes.nodeselection import allowed_nodes
from phalanx.kubernetes.taints import closed_by_cordon, closed_by_taint, untolerated
from phalanx.model.shape import Shape, Taint
from phalanx.model.task_status import Status
from phalanx.placement import Amounts, Counts, Mask
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError, Verdict, lacked_resource
from phalanx.whatif.trial_cluster import TrialCluster


@dataclass
class Question:
    """A waiting gang after a session, and the cluster in which it waits."""

    cluster: TrialCluster
    reading: Reading

    @property
    def key(self) -> str:
        """The gang."""
        return self.gang.key

    @property
    def gang(self) -> GangState:
        """The gang as the session left it."""
        return self.reading.gang

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as its scheduler sees it."""
        return self.reading.outcome.seen or self.reading.snapshot

    @cached_property
    def waiting(self) -> list[TaskState]:
        """Members that have no place."""
        return [task for task in self.gang.tasks if task.status is Status.PENDING]

    @cached_property
    def shapes(self) -> list[Shape]:
        """What the members that wait ask for, the most frequent first."""
        counts = Counter(id(task.task.shape) for task in self.waiting)
        by_id = {id(task.task.shape): task.task.shape for task in self.waiting}
        return [by_id[number] for number, _ in counts.most_common()]

    @property
    def verdicts(self) -> list[Verdict]:
        """What plugins refused."""
        refusals = [task.refusal for task in self.gang.tasks if task.refusal is not None]
        return [*self.gang.verdicts, *refusals]

    def refused(self, *reasons: str) -> Iterator[Verdict]:
        """Return the refusals with one of these codes, each once."""
        seen = set()
        for verdict in self.verdicts:
            if verdict.reason in reasons and (mark := (verdict.reason, verdict.message)) not in seen:
                seen.add(mark)
                yield verdict

    @cached_property
    def obstacles(self) -> Counter[str]:
        """How many nodes gave which reason, over all members without a place."""
        errors = (task.error for task in self.gang.tasks if isinstance(task.error, FitError))
        return sum((Counter(error.counts) for error in errors), Counter())

    @property
    def lacking(self) -> list[str]:
        """Resources of which nodes or queues have too little."""
        of_nodes = (lacked_resource(reason) for reason in self.obstacles)
        of_queues = (str(verdict.numbers.get("resource", "")) for verdict in self.verdicts)
        return [name for name in dict.fromkeys((*of_nodes, *of_queues)) if name]

    @property
    def minimum(self) -> int:
        """How many members start together."""
        return minimum_of(self.gang)

    @property
    def fitting(self) -> int:
        """How many members found a place, or nearly did."""
        return placeable(self.gang)

    @property
    def missing(self) -> int:
        """How many places are needed that were not found, at least one."""
        return max(min(self.minimum or len(self.gang.tasks), len(self.gang.tasks)) - self.fitting, 1)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def idle_of(self, nodes: list[int]) -> Amounts:
        """Return what is free on some nodes; the caller may change it."""
        return self.idle[:, nodes].copy()

    @cached_property
    def idle(self) -> Amounts:
        """What is free on each node, by resource; what leaves counts as free."""
        snapshot = self.snapshot
        return snapshot.nodes.allocatable - snapshot.used + snapshot.releasing

    def taken_by(self, shape: Shape) -> Mask:
        """Mark the nodes that labels and taints allow to a shape, whatever room they have."""
        table = self.snapshot.nodes
        return allowed_nodes(shape, table) & ~closed_by_cordon(shape, table) & ~closed_by_taint(shape, table)

    def places(self, shape: Shape, idle: Amounts) -> Counts:
        """Return how many members of a shape each node has room for."""
        rows = self.snapshot.space.row_by_name
        counts = [idle[rows[name]] // amount for name, amount in shape.request.items() if amount and name in rows]
        if not counts or any(amount and name not in rows for name, amount in shape.request.items()):
            return np.zeros(idle.shape[1], dtype=np.int64)
        found: Counts = np.maximum(np.minimum.reduce(counts), 0)
        return found

    def repelling(self) -> list[Taint]:
        """Return the taints that keep members away, those of most nodes first."""
        counts: Counter[Taint] = Counter()
        for node in self.snapshot.nodes.nodes:
            counts.update(taint for taint in node.taints if any(untolerated(shape, (taint,)) for shape in self.shapes))
        return [taint for taint, _ in counts.most_common()]
