"""How many of some pods may be down at once."""

from dataclasses import dataclass

from phalanx.model.selectors import LabelSelector
from phalanx.model.task import Task


@dataclass(frozen=True, slots=True, eq=False)
class DisruptionBudget:
    """How many more of the pods that a selector matches may be taken down now."""

    key: str
    selector: LabelSelector | None = None
    allowed: int = 0
    disrupted: frozenset[str] = frozenset()
    """Names of pods whose eviction is under way and counted already."""

    @property
    def namespace(self) -> str:
        """The namespace of its pods."""
        return self.key.partition("/")[0]

    def counts(self, task: Task) -> bool:
        """Tell whether taking the task down uses some of the budget.

        A selector that asks for nothing covers nobody, as in kube-scheduler.
        """
        if self.selector is None or self.selector.is_empty or task.namespace != self.namespace:
            return False
        return task.name not in self.disrupted and self.selector.matches(task.labels)
