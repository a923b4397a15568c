"""How each dialect says a gang: the objects that it makes, what it puts on pods, and what it has no word for."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import msgspec

from phalanx.dialects import gates, kai, koordinator, kueue, native, schema, yunikorn
from phalanx.dialects import group_references as links
from phalanx.dialects.convert.groups import BUNDLE, QUOTA, Group, Lost, Member
from phalanx.dialects.convert.pod_marks import Marks, bare, dialect_of, kept
from phalanx.dialects.convert.subgroups import kai_parts, kai_topology, volcano_parts, volcano_topology
from phalanx.dialects.pods import ROLE, TASK_GROUP, pod_request
from phalanx.dialects.volcano import PREEMPTABLE
from phalanx.model.resources import Resources, quantity_text

Objects = list[dict[str, Any]]
ROLES, SUBGROUPS, TIERS, LEVELS = "roles", "sub-groups", "tiers", "levels"
QUEUE, MIN_RESOURCES, PREEMPTIBILITY = "queue", "minResources", "preemptability"
OF_GROUP, OF_ONE_POD, OF_PODS = "group", "one pod", "pods"
"""Who says how important a gang is: the group object, the pod that describes the gang, or the most important pod."""


class Writer:
    """Says gangs in one dialect."""

    dialect: ClassVar[str]
    says: ClassVar[frozenset[str]] = frozenset()
    """What it has words for, besides a name and a minimum."""
    has_object: ClassVar[bool] = True
    """There is a group object; otherwise pods alone make the gang."""
    priority_is: ClassVar[str] = OF_PODS
    """Where it says how important a gang is."""

    def objects(self, group: Group) -> Objects:
        """Return the group objects."""
        return []

    def marks(self, group: Group, member: Member) -> Marks:
        """Return what goes on a pod."""
        raise NotImplementedError

    def ordered(self, group: Group) -> Iterable[Member]:
        """Return the members of a gang in the order in which they are written."""
        return group.members

    def leaves_out(self, group: Group, member: Member) -> bool:
        """Tell whether a pod cannot be in the gang."""
        return False

    def cannot(self, group: Group) -> Iterator[Lost]:
        """Yield what it cannot say of this gang although it has words for the like."""
        return iter(())


def _object(writer: Writer, api: str, group: Group, spec: dict[str, Any], **more: str) -> dict[str, Any]:
    """Return a group object; `more` are further annotations, besides those that the gang had before."""
    own = {key: text for key, text in kept(group, writer.dialect).items() if group.has_object or _is_of_gangs(key)}
    meta: dict[str, Any] = {"name": group.name, "namespace": group.namespace}
    meta |= {"annotations": {**own, **more}} if own or more else {}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec}


def _is_of_gangs(key: str) -> bool:
    """Tell whether an annotation of a pod is about the gang that it makes, and does not only name it."""
    return bool(dialect_of(key)) and key not in {mark.key for mark in links.MARKS}


def _amounts(resources: Resources | None) -> dict[str, Any]:
    if resources is None:
        return {}
    return {"minResources": {name: quantity_text(name, amount) for name, amount in resources.items()}}


def _unsaid_minimum(group: Group) -> Iterator[Lost]:
    """Yield that a minimum above the sum of the roles is lost, where only roles have one."""
    total = sum(group.roles.values())
    if group.roles and total != group.min_member:
        yield group.lost("minMember", f"{group.min_member} pods are needed; only the minima of roles can be said, together {total}")


class VolcanoWriter(Writer):
    """Volcano's PodGroup."""

    dialect = "volcano"
    priority_is = OF_GROUP
    says = frozenset({ROLES, SUBGROUPS, TIERS, QUEUE, MIN_RESOURCES, PREEMPTIBILITY})

    def objects(self, group: Group) -> Objects:
        spec: dict[str, Any] = {"minMember": group.min_member, "queue": group.queue, **_amounts(group.min_resources)}
        spec |= {"minTaskMember": dict(group.roles)} if group.roles else {}
        spec |= {"priorityClassName": group.priority_class} if group.priority_class else {}
        spec |= volcano_topology(group.topology) | volcano_parts(group)
        preemptable = {} if group.is_preemptable is None else {PREEMPTABLE: str(group.is_preemptable).lower()}
        return [_object(self, "scheduling.volcano.sh/v1beta1", group, spec, **preemptable)]

    def marks(self, group: Group, member: Member) -> Marks:
        labels = member.document["metadata"].get("labels") or {}
        own = {kai.SUBGROUP: labels[kai.SUBGROUP]} if group.subgroups and kai.SUBGROUP in labels else {}
        return Marks(own, {links.GROUP: group.name, **({ROLE: member.role} if member.role else {})})

    def cannot(self, group: Group) -> Iterator[Lost]:
        for part in group.subgroups:
            place = f"subGroups[{part.name}]"
            if part.parent:
                yield group.lost(f"{place}.parent", "sub-groups of Volcano's are not inside each other")
            if part.topology is not None and not volcano_topology(part.topology):
                yield group.lost(f"{place}.topologyConstraint", "Volcano counts tiers of HyperNodes, not levels of node labels")


class KaiWriter(Writer):
    """KAI's PodGroup."""

    dialect = "kai"
    priority_is = OF_GROUP
    says = frozenset({ROLES, SUBGROUPS, LEVELS, QUEUE, PREEMPTIBILITY})

    def objects(self, group: Group) -> Objects:
        parts = kai_parts(group)
        minimum = sum(group.roles.values()) or max(group.min_member, 1)
        spec: dict[str, Any] = {"minMember": minimum, "queue": group.queue}
        spec |= {"priorityClassName": group.priority_class} if group.priority_class else {}
        words = {True: "preemptible", False: "non-preemptible"}
        spec |= {} if group.is_preemptable is None else {"preemptibility": words[group.is_preemptable]}
        spec |= kai_topology(group.topology) | ({"subGroups": parts.entries} if parts.entries else {})
        return [_object(self, "scheduling.run.ai/v2alpha2", group, spec)]

    def marks(self, group: Group, member: Member) -> Marks:
        part = kai_parts(group).part_of(member)
        return Marks({kai.SUBGROUP: part} if part else {}, {links.KAI_GROUP: group.name})

    def cannot(self, group: Group) -> Iterator[Lost]:
        yield from _unsaid_minimum(group)
        yield from (group.lost(place, why) for place, why in kai_parts(group).lost)


class CoschedulingWriter(Writer):
    """The PodGroup of the Coscheduling plugin."""

    dialect = "coscheduling"
    says = frozenset({MIN_RESOURCES})

    def objects(self, group: Group) -> Objects:
        spec = {"minMember": max(group.min_member, 1), **_amounts(group.min_resources)}
        return [_object(self, "scheduling.x-k8s.io/v1alpha1", group, spec)]

    def marks(self, group: Group, member: Member) -> Marks:
        return Marks({links.COSCHEDULING_GROUP: group.name})


class KoordinatorWriter(Writer):
    """Koordinator's PodGroup; a gang with roles is a bundle of gangs, one for each."""

    dialect = "koordinator"
    says = frozenset({ROLES, QUEUE})

    def objects(self, group: Group) -> Objects:
        api = "scheduling.sigs.k8s.io/v1alpha1"
        if len(group.roles) < 2:
            return [_object(self, api, group, {"minMember": sum(group.roles.values()) or max(group.min_member, 1)})]
        names = {role: self._name(group, role) for role in sorted(group.roles)}
        more = {koordinator.GROUPS: json.dumps([f"{group.namespace}/{name}" for name in names.values()]), BUNDLE: group.name}
        return [
            _object(self, api, replace(group, name=name), {"minMember": group.roles[role]}, **more) for role, name in names.items()
        ]  # fmt: skip

    def _name(self, group: Group, role: str) -> str:
        return f"{group.name}-{role}" if len(group.roles) > 1 else group.name

    def marks(self, group: Group, member: Member) -> Marks:
        queue = {QUOTA: group.queue} if group.queue != "default" else {}
        if self.leaves_out(group, member):
            return Marks(queue)
        return Marks({links.SIGS_GROUP: self._name(group, member.role), **queue})

    def leaves_out(self, group: Group, member: Member) -> bool:
        return bool(group.roles) and member.role not in group.roles

    def cannot(self, group: Group) -> Iterator[Lost]:
        yield from _unsaid_minimum(group)
        if len(group.roles) == 1:
            yield group.lost("minTaskMember", "a bundle has two gangs or more; here only the pods of the role are the gang")
        strangers = [member for member in group.members if self.leaves_out(group, member)]
        if strangers:
            yield group.lost("members", f"{len(strangers)} pods play no role that has a minimum; they start for themselves")


class NativeWriter(Writer):
    """The PodGroup of Kubernetes 1.36."""

    dialect = "native"
    priority_is = OF_GROUP
    says = frozenset({LEVELS, QUEUE})

    def objects(self, group: Group) -> Objects:
        spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": max(group.min_member, 1)}}}
        if group.topology is not None and group.topology.required_level:
            spec["schedulingConstraints"] = {"topology": [{"key": group.topology.required_level}]}
        spec |= {"priorityClassName": group.priority_class} if group.priority_class else {}
        queue = {native.QUEUE: group.queue} if group.queue != "default" else {}
        return [_object(self, "scheduling.k8s.io/v1alpha2", group, spec, **queue)]

    def marks(self, group: Group, member: Member) -> Marks:
        return Marks(spec={"schedulingGroup": {"podGroupName": group.name}})

    def cannot(self, group: Group) -> Iterator[Lost]:
        if group.topology is not None and group.topology.preferred_level:
            yield group.lost("topologyConstraint.preferredTopologyLevel", "a topology is required there, or not said")
        if group.topology is not None and group.topology.required_level and group.topology.topology:
            yield group.lost("topologyConstraint.topology", "node labels are named there without the tree that they are levels of")


class YuniKornWriter(Writer):
    """YuniKorn's application with task groups, which the first pod that is in one of them describes."""

    dialect = "yunikorn"
    priority_is = OF_ONE_POD
    says = frozenset({ROLES, QUEUE})
    has_object = False

    def marks(self, group: Group, member: Member) -> Marks:
        labels = {links.YUNIKORN_APP: group.name, yunikorn.QUEUE: f"{yunikorn.ROOT}{group.queue}"}
        if group.min_member <= 1 and not group.roles:
            return Marks(labels)
        role = member.role if group.roles else group.name
        annotations = {TASK_GROUP: role} if role else {}
        if member is self._originator(group):
            annotations[yunikorn.TASK_GROUPS] = json.dumps(list(self._task_groups(group)))
        return Marks(labels, annotations)

    def ordered(self, group: Group) -> Iterable[Member]:
        return sorted(group.members, key=lambda member: member is not self._originator(group))

    def _originator(self, group: Group) -> Member:
        return next((member for member in group.members if member.role in group.roles), group.members[0])

    def _task_groups(self, group: Group) -> Iterator[dict[str, Any]]:
        for role, minimum in (group.roles or {group.name: group.min_member}).items():
            members = [member for member in group.members if not group.roles or member.role == role]
            yield {"name": role, "minMember": minimum, "minResource": _largest(members)}

    def cannot(self, group: Group) -> Iterator[Lost]:
        yield from _unsaid_minimum(group)
        if not group.members:
            yield group.lost("metadata.name", "pods alone make an application, and this gang has none")


def _largest(members: list[Member]) -> dict[str, str]:
    """Return what the largest of some pods asks for."""
    found: dict[str, int] = {}
    for member in members:
        for name, amount in pod_request(msgspec.convert(member.document["spec"], schema.ShapeSpec)).items():
            found[name] = max(found.get(name, 0), amount)
    return {name: quantity_text(name, amount) for name, amount in sorted(found.items())}


class KueueWriter(Writer):
    """Kueue's plain pod group."""

    dialect = "kueue"
    priority_is = OF_ONE_POD
    says = frozenset({LEVELS, QUEUE})
    has_object = False

    def marks(self, group: Group, member: Member) -> Marks:
        queue = {kueue.QUEUE: group.queue} if group.queue != "default" else {}
        count = {kueue.TOTAL_COUNT: str(self._count(group)), **self._topology(group)}
        return Marks({links.KUEUE_GROUP: group.name, **queue}, count)

    def _count(self, group: Group) -> int:
        return max(group.min_member, len(group.members))

    def _topology(self, group: Group) -> dict[str, str]:
        found = group.topology
        if found is not None and found.required_level:
            return {"kueue.x-k8s.io/podset-required-topology": found.required_level}
        level = found.preferred_level if found is not None else ""
        return {"kueue.x-k8s.io/podset-preferred-topology": level} if level else {}

    def cannot(self, group: Group) -> Iterator[Lost]:
        count = self._count(group)
        if count > group.min_member:
            yield group.lost(
                "minMember", f"{group.min_member} of {count} pods are needed; Kueue's groups start with all, or lose the others"
            )
        if not group.members:
            yield group.lost("metadata.name", "pods alone make a group, and this gang has none")


class GatesWriter(Writer):
    """Pods behind a scheduling gate of Phalanx's."""

    dialect = "gates"
    has_object = False

    def marks(self, group: Group, member: Member) -> Marks:
        others = bare(member.document, self.dialect)["spec"].get("schedulingGates") or ()
        spec = {"schedulingGates": [*others, {"name": gates.GATE}]}
        return Marks({gates.GATE: group.name}, {gates.MIN_MEMBER: str(max(group.min_member, 1))}, spec)

    def cannot(self, group: Group) -> Iterator[Lost]:
        if not group.members:
            yield group.lost("metadata.name", "pods alone make a gang, and this one has none")


WRITERS: dict[str, Writer] = {
    writer.dialect: writer
    for writer in (
        VolcanoWriter(), KaiWriter(), CoschedulingWriter(), KoordinatorWriter(), NativeWriter(), YuniKornWriter(), KueueWriter(),
        GatesWriter(),
    )
}  # fmt: skip
"""By dialect."""
