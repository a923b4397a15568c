"""Respect PodDisruptionBudgets: nobody is evicted whose going would take more pods down than a budget allows.

Candidates are taken in their order while every budget that covers them has something left. What the session evicted before
counts too, so that several preemptors together do not overdraw a budget; Volcano starts from the object's status each time.

In shuffle this plugin does not only protect. Plugins of a tier add to each other there, so every task it lets go is evicted;
set ``enabledVictim: false`` unless that is what you want.
"""

from collections.abc import Sequence

from phalanx.model.disruption import DisruptionBudget
from phalanx.model.task import Task
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.state.gang_state import TaskState
from phalanx.state.verdict import Verdict

SPARES_UNLABELLED = True
"""Volcano passes over pods without labels, since no budget can match them, and so never evicts them. Kept so that the same
configuration evicts the same pods; ``pdb.spareUnlabelled: false`` treats them like any pod that no budget covers.
"""


class PdbPlugin:
    """Protects tasks that a disruption budget covers."""

    name = "pdb"
    protects = "a PodDisruptionBudget allows no more disruptions, or the pod has no labels"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read whether pods without labels are spared."""
        settings = Arguments(self.name, policy.arguments)
        self._spares_unlabelled = settings.switch("pdb.spareUnlabelled", SPARES_UNLABELLED)
        settings.done()
        self._budgets: dict[str, list[DisruptionBudget]] = {}
        self._left: dict[str, int] = {}

    def open(self, session: Session) -> None:
        """Take down what each budget allows."""
        for key, budget in sorted(session.snapshot.surroundings.disruption_budgets.items()):
            self._budgets.setdefault(budget.namespace, []).append(budget)
            self._left[key] = budget.allowed

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Charge evictions to the budgets."""
        if operation.kind is not OperationKind.EVICT:
            return
        for task in operation.tasks:
            for key in self._covering(task.task):
                self._left[key] += 1 if undone else -1

    def victim_tasks(self, session: Session, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name as many victims as the budgets allow, in the order of the candidates."""
        left = dict(self._left)
        return [task for task in candidates if self._may_go(task.task, left)]

    def preemptable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name victims for preempt as for shuffle."""
        return self.victim_tasks(session, candidates)

    reclaimable = preemptable

    def evictable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str) -> list[TaskState]:
        """Name victims for gang-aware actions as for shuffle."""
        return self.victim_tasks(session, candidates)

    def why_protected(self, session: Session, preemptor: TaskState, victim: TaskState) -> Verdict:
        """Name the budget of a task, and what it allows."""
        budgets = {budget.key: budget for budget in self._budgets.get(victim.task.namespace, ())}
        covering = sorted(self._covering(victim.task), key=lambda key: self._left[key])
        if not covering:
            return Verdict.refuse(self.name, "NoLabels", "has no labels (pdb.spareUnlabelled)")
        allowed = budgets[covering[0]].allowed
        text = f"is protected by PodDisruptionBudget {covering[0]}, which allows {allowed} disruption{'' if allowed == 1 else 's'}"
        return Verdict.refuse(self.name, "DisruptionBudget", text, budget=covering[0], allowed=allowed)

    def _may_go(self, task: Task, left: dict[str, int]) -> bool:
        if self._spares_unlabelled and not task.labels:
            return False
        covering = self._covering(task)
        if any(left[key] <= 0 for key in covering):
            return False
        for key in covering:
            left[key] -= 1
        return True

    def _covering(self, task: Task) -> list[str]:
        return [budget.key for budget in self._budgets.get(task.namespace, ()) if budget.counts(task)]
