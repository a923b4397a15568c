"""Changes of what bounds others: disruption budgets, and quotas of namespaces."""

from dataclasses import dataclass

from phalanx.model.kinds import BUDGET, RESOURCE_QUOTA
from phalanx.whatif.changes.object_change import ObjectChange, edited, found_in, part
from phalanx.whatif.trial_cluster import Edit, TrialCluster


@dataclass(frozen=True, slots=True)
class BudgetChange(ObjectChange):
    """What would be different about a PodDisruptionBudget."""

    word = "pdb"
    states = ("gone",)
    fields = {"disruptionsAllowed": "2"}  # noqa: RUF012  read only

    def edits(self, cluster: TrialCluster) -> list[Edit]:
        """Return the objects that it changes."""
        budget = found_in(cluster, self, BUDGET)
        if self.field:
            before = part(budget, "status", "disruptionsAllowed")
            return [Edit(budget, edited(budget, "status", "disruptionsAllowed", to=self.whole_number(before, least=0)))]
        return self.gone(budget)


@dataclass(frozen=True, slots=True)
class QuotaChange(ObjectChange):
    """What would be different about a ResourceQuota."""

    word = "quota"
    states = ("gone",)
    fields = {"hard": "+4"}  # noqa: RUF012  read only

    def edits(self, cluster: TrialCluster) -> list[Edit]:
        """Return the objects that it changes."""
        quota = found_in(cluster, self, RESOURCE_QUOTA)
        if not self.field:
            return self.gone(quota)
        place = "status" if part(quota, "status", "hard") else "spec"
        amount = self.bound(part(quota, place, "hard", self.key))
        return [Edit(quota, edited(quota, place, "hard", self.key, to=amount))]
