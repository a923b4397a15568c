"""Grove: its operator makes a PodGang for every set of pods that start together; a group follows it."""

from collections.abc import Iterator

from msgspec import field

from phalanx.controllers.controller import Key, View
from phalanx.controllers.grouper.grouping import TOPOLOGY, Count, GroupConstraint, Grouping, GroupPart, one_group, total
from phalanx.controllers.grouper.owners import OwnerChain, find, pods_under, read
from phalanx.controllers.objects import annotations_of, controller_of, key_of, labels_of, meta_of
from phalanx.dialects.cluster import describe
from phalanx.dialects.schema import Read
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document, kind_of

POD_GANG = kind_of({"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang"})
GANG_LABEL, CLIQUE_LABEL, TOPOLOGY_NAME = "grove.io/podgang", "grove.io/podclique", "grove.io/topology-name"


class PackConstraint(Read):
    """The topology level within which pods have to be."""

    required: str | None = None
    preferred: str | None = None


class GroveConstraint(Read):
    """Where pods have to be."""

    pack_constraint: PackConstraint | None = None


class PodReference(Read):
    """A pod."""

    namespace: str = ""
    name: str = ""


class CliqueGroup(Read):
    """The pods of one PodClique."""

    name: str
    min_replicas: Count
    pod_references: list[PodReference] | None = None
    topology_constraint: GroveConstraint | None = None


class ConstraintGroup(Read):
    """PodCliques that have to be near each other."""

    name: str
    pod_group_names: list[str] | None = None
    topology_constraint: GroveConstraint | None = None


class PodGangSpec(Read):
    """What a PodGang asks for."""

    podgroups: list[CliqueGroup] | None = None
    topology_constraint: GroveConstraint | None = None
    topology_constraint_group_configs: list[ConstraintGroup] | None = None
    priority_class_name: str | None = None


class PodGang(Read):
    """A PodGang."""

    spec: PodGangSpec = field(default_factory=PodGangSpec)


def pod_gang(chain: OwnerChain) -> Grouping:
    """Group the pods of a PodGang: a part for each PodClique."""
    gang = _gang_of(chain)
    spec = read(gang, PodGang).spec
    topology = annotations_of(gang).get(TOPOLOGY_NAME) or annotations_of(chain.head).get(TOPOLOGY, "")
    parts = _parts(gang, spec, topology)
    whole = one_group(chain, owner=gang)
    constraint = _constraint(spec.topology_constraint, topology) or whole.constraint
    return Grouping(whole.name, gang, total(parts), parts, _part_of(chain, spec), constraint, spec.priority_class_name or "")


def _gang_of(chain: OwnerChain) -> Document:
    name = labels_of(chain.pod).get(GANG_LABEL)
    where = f"{describe(chain.pod)}: metadata.labels[{GANG_LABEL!r}]"
    if not name:
        raise SnapshotError(f"{where}: missing; see that Grove's operator makes the pod, or write the name of its PodGang")
    gang = find(chain.view, POD_GANG, chain.pod, name)
    if gang is None:
        raise SnapshotError(f"{where}: there is no PodGang {name!r} yet; see that Grove's operator runs and makes it")
    return gang


def _parts(gang: Document, spec: PodGangSpec, topology: str) -> list[GroupPart]:
    """Return a part for each PodClique, below the one for those that have to be near each other."""
    parent_by_name = {
        name: above.name for above in spec.topology_constraint_group_configs or () for name in above.pod_group_names or ()
    }
    leaves = []
    for number, clique in enumerate(spec.podgroups or ()):
        if not clique.min_replicas:
            raise SnapshotError(f"{describe(gang)}: spec.podgroups[{number}].minReplicas: 0; write 1 or more")
        constraint = _constraint(clique.topology_constraint, topology)
        leaves.append(GroupPart(clique.name, clique.min_replicas, parent_by_name.get(clique.name, ""), constraint))
    if not leaves:
        raise SnapshotError(f"{describe(gang)}: spec.podgroups: empty; write one for each PodClique")
    return [*_parents(spec, leaves, topology), *leaves]


def _parents(spec: PodGangSpec, leaves: list[GroupPart], topology: str) -> Iterator[GroupPart]:
    for above in spec.topology_constraint_group_configs or ():
        below = [leaf.minimum for leaf in leaves if leaf.parent == above.name]
        if below:
            yield GroupPart(above.name, sum(below), constraint=_constraint(above.topology_constraint, topology))


def _part_of(chain: OwnerChain, spec: PodGangSpec) -> str:
    """Return the PodClique of a pod: the one that names it, or the one that it names."""
    name = meta_of(chain.pod)["name"]
    for clique in spec.podgroups or ():
        if any(reference.name == name for reference in clique.pod_references or ()):
            return clique.name
    label = labels_of(chain.pod).get(CLIQUE_LABEL, "")
    return label if any(clique.name == label for clique in spec.podgroups or ()) else ""


def _constraint(read_as: GroveConstraint | None, topology: str) -> GroupConstraint | None:
    pack = None if read_as is None else read_as.pack_constraint
    if pack is None or not (pack.required or pack.preferred):
        return None
    return GroupConstraint(topology, pack.required or "", pack.preferred or "")


def pods_of(view: View, gang: Document) -> Iterator[Key]:
    """Yield the pods that a PodGang names, and those of its set that name it: the operator enters them one by one."""
    yield from _pods_named(gang)
    owner, name = controller_of(gang), meta_of(gang).get("name")
    for pod in () if owner is None else pods_under(view, str(owner.get("uid", ""))):
        if labels_of(pod).get(GANG_LABEL) == name:
            yield key_of(pod)


def _pods_named(gang: Document) -> Iterator[Key]:
    try:
        spec = read(gang, PodGang).spec
    except SnapshotError:
        return
    for clique in spec.podgroups or ():
        for reference in clique.pod_references or ():
            yield Key(reference.namespace or str(meta_of(gang).get("namespace") or "default"), reference.name)
