"""Changes of gangs, in whatever dialect they are described: of the group object, or of the pods that describe the gang."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from phalanx.dialects.pods import ROLE
from phalanx.model.kinds import GROUP_BY_DIALECT, Document, object_key
from phalanx.whatif.changes.group_fields import LEVEL, TIER, GangTrial, min_member, min_resources, priority, queue, topology
from phalanx.whatif.changes.nodes import waiting_again
from phalanx.whatif.changes.object_change import ObjectChange, close_to, edited, namespaced
from phalanx.whatif.changes.pod_specs import POD_FIELDS, preemptable, waits
from phalanx.whatif.trial_cluster import Edit, TrialCluster

MOST_PODS = 10_000


@dataclass(frozen=True, slots=True)
class GangChange(ObjectChange):
    """What would be different about a gang."""

    word = "gang"
    states = ("gone",)
    fields = {name: example for name, (example, _) in POD_FIELDS.items()} | {
        "minMember": "3", "minResources": "4", "priority": "100", "queue": "research", "preemptable": "true", "pods": "+2",
        TIER: "2", LEVEL: "zone", "topology": "none",
    }  # fmt: skip

    def edits(self, cluster: TrialCluster) -> list[Edit]:
        """Return the objects that it changes."""
        trial = self._trial(cluster)
        if self.field in GROUP_FIELDS:
            return GROUP_FIELDS[self.field](trial)
        if self.field in POD_FIELDS:
            return self._pods_changed(trial)
        return self.gone(*trial.pods, *trial.groups)

    def _trial(self, cluster: TrialCluster) -> GangTrial:
        key = namespaced(self.name)
        gang = cluster.gang(key)
        if gang is None:
            raise self.unknown(cluster.gangs)
        kind = GROUP_BY_DIALECT.get(gang.dialect)
        names = [str(piece.key) for piece in gang.pieces] or [key.partition("@")[0]]
        found = [cluster.find(kind, name) for name in names] if kind is not None else []
        return GangTrial(self, cluster, gang, [group for group in found if group is not None], cluster.pods_of(key))

    def _pods_changed(self, trial: GangTrial) -> list[Edit]:
        pods = [pod for pod in trial.pods if waits(pod)]
        if not pods:
            raise self.refuse("no pod of it waits, and only a pod that waits can ask for something else")
        problem = self.unknown_resource(trial.cluster) if self.field == "requests" else None
        if problem is not None:
            raise problem
        edit = POD_FIELDS[self.field][1]
        found = [Edit(pod, edit(pod, self)) for pod in pods]
        return [*found, *trial.with_requests(self)] if self.field == "requests" else found


def _preemptable(trial: GangTrial) -> list[Edit]:
    """Let others take the places of a gang, or not: its group says so in Volcano and KAI, and its pods everywhere else."""
    change, dialect = trial.change, trial.gang.dialect
    if dialect == "kai":
        word = "preemptible" if change.switch() else "non-preemptible"
        return [trial.edit("spec", "preemptibility", to=word)]
    found = [Edit(pod, preemptable(pod, change)) for pod in trial.pods]
    groups = [Edit(group, preemptable(group, change)) for group in trial.groups] if dialect == "volcano" else []
    return [*groups, *found]


def _more_pods(trial: GangTrial) -> list[Edit]:
    """Add pods like its own, of a role where the change names one."""
    change = trial.change
    count = change.value.removeprefix("+")
    if not change.value.startswith("+") or not count.isdecimal() or not 0 < int(count) <= MOST_PODS:
        raise change.refuse(f"how many more pods, {MOST_PODS} at most? write for example '+2'")
    like = _pod_like(trial)
    return [Edit(None, pod) for pod in _copies(like, int(count), {pod["metadata"]["name"] for pod in trial.pods})]


def _pod_like(trial: GangTrial) -> Document:
    role = trial.change.key
    roles = {str(task.key): task.role for task in trial.cluster.members(trial.gang.key)}
    alike = [pod for pod in trial.pods if not role or roles.get(object_key(pod)) == role]
    if not alike and not trial.pods:
        raise trial.change.refuse("it has no pod that others could be like")
    if not alike and role not in trial.gang.role_minima:
        known = {*trial.gang.role_minima, *filter(None, roles.values())}
        raise trial.change.refuse(f"it has no role {role!r}; {close_to(role, known, 'roles')}")
    waiting = sorted(alike or trial.pods, key=lambda pod: (not waits(pod), pod["metadata"]["name"]))
    return waiting[0] if alike else edited(waiting[0], "metadata", "annotations", ROLE, to=role)


def _copies(pod: Document, count: int, taken: set[str]) -> Iterator[Document]:
    number = 0
    while count:
        number += 1
        name = f"{pod['metadata']['name']}-more-{number}"
        if name not in taken:
            count -= 1
            yield _copy(pod, name)


def _copy(pod: Document, name: str) -> Document:
    found = waiting_again(pod)
    meta = {key: value for key, value in found["metadata"].items() if key != "uid"}
    return {**found, "metadata": {**meta, "name": name}}


def _topology(trial: GangTrial) -> list[Edit]:
    return topology(trial, part_of=trial.change.field)


GROUP_FIELDS: Mapping[str, Callable[[GangTrial], list[Edit]]] = {
    "minMember": min_member, "minResources": min_resources, "priority": priority, "queue": queue, "preemptable": _preemptable,
    "pods": _more_pods, TIER: _topology, LEVEL: _topology, "topology": _topology,
}  # fmt: skip
