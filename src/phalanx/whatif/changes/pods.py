"""Changes of single pods."""

from dataclasses import dataclass

from phalanx.model.kinds import POD
from phalanx.whatif.changes.object_change import ObjectChange, found_in
from phalanx.whatif.changes.pod_specs import POD_FIELDS, preemptable, priority_class, waits, with_priority
from phalanx.whatif.trial_cluster import Edit, TrialCluster


@dataclass(frozen=True, slots=True)
class PodChange(ObjectChange):
    """What would be different about a pod."""

    word = "pod"
    states = ("gone",)
    fields = {name: example for name, (example, _) in POD_FIELDS.items()} | {"priority": "100", "preemptable": "true"}

    def edits(self, cluster: TrialCluster) -> list[Edit]:
        """Return the objects that it changes."""
        pod = found_in(cluster, self, POD)
        if not self.field:
            return self.gone(pod)
        if self.field == "preemptable":
            return [Edit(pod, preemptable(pod, self))]
        if not waits(pod):
            raise self.refuse(
                f"the pod is on node {pod['spec']['nodeName']} already; only a pod that waits can ask for something else"
            )
        if self.field == "priority":
            chosen, made = priority_class(self, cluster)
            return [*made, Edit(pod, with_priority(pod, chosen))]
        return [Edit(pod, POD_FIELDS[self.field][1](pod, self))]
