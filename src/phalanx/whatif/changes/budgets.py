"""Changes of what bounds others: disruption budgets, and quotas of namespaces."""

from dataclasses import dataclass

from phalanx.model.kinds import BUDGET, Document, Kind, kind_of, object_key
from phalanx.whatif.changes.object_change import ObjectChange, edited, part
from phalanx.whatif.trial_cluster import Edit, TrialCluster

QUOTA = kind_of({"apiVersion": "v1", "kind": "ResourceQuota"})


def namespaced(name: str) -> str:
    """Return a name with its namespace, `default` where there is none."""
    return name if "/" in name else f"default/{name}"


def found_in(cluster: TrialCluster, change: ObjectChange, kind: Kind) -> Document:
    """Return the object that a change is about."""
    found = cluster.find(kind, namespaced(change.name))
    if found is None:
        raise change.unknown(map(object_key, cluster.all_of(kind)))
    return found


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
        if self.value != "gone":
            raise self.unknown_state()
        return [Edit(budget, None)]


@dataclass(frozen=True, slots=True)
class QuotaChange(ObjectChange):
    """What would be different about a ResourceQuota."""

    word = "quota"
    states = ("gone",)
    fields = {"hard": "+4"}  # noqa: RUF012  read only

    def edits(self, cluster: TrialCluster) -> list[Edit]:
        """Return the objects that it changes."""
        quota = found_in(cluster, self, QUOTA)
        if not self.field:
            if self.value != "gone":
                raise self.unknown_state()
            return [Edit(quota, None)]
        place = "status" if part(quota, "status", "hard") else "spec"
        amount = self.bound(part(quota, place, "hard", self.key))
        return [Edit(quota, edited(quota, place, "hard", self.key, to=amount))]
