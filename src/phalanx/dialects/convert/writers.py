"""How a gang is written in each dialect: its group objects, what its pods carry, and what the dialect has no field for."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import ceil
from typing import Any, ClassVar

from phalanx.dialects import gates, kai_subgroups, koordinator, kueue, native, schema, yunikorn
from phalanx.dialects import group_references as references
from phalanx.dialects.convert.neutral_gangs import GANG_GROUP_NAME, QUOTA, GangPod, Lost, NeutralGang, fields_besides, once_per_gang
from phalanx.dialects.convert.pods import PodPatch, bare, dialect_of, kept
from phalanx.dialects.convert.subgroups import kai_parts, kai_topology, volcano_parts, volcano_topology
from phalanx.dialects.kai_subgroups import SUBGROUP
from phalanx.dialects.kinds.kai import KaiPodGroupSpec
from phalanx.dialects.kinds.reader import reader_of
from phalanx.dialects.pod_defaults import with_implied_requests
from phalanx.dialects.pods import ROLE, TASK_GROUP, pod_request
from phalanx.dialects.reading import read_as
from phalanx.dialects.volcano import PREEMPTABLE
from phalanx.model.kinds import GROUP_BY_DIALECT
from phalanx.model.resources import Resources, quantity_text

Objects = list[dict[str, Any]]
ROLES, SUBGROUPS, TIERS, LEVELS = "roles", "sub-groups", "tiers", "levels"
QUEUE, MIN_RESOURCES, PREEMPTIBILITY, TIMEOUT, WHOLENESS = "queue", "minResources", "preemptability", "timeout", "wholeness"
OF_GROUP, OF_ONE_POD, OF_PODS = "group", "one pod", "pods"
"""Who has the priority class of a gang: the group object, the pod that describes the gang, or its highest pod."""


class GroupWriter:
    """Writes gangs in one dialect."""

    dialect: ClassVar[str]
    supports: ClassVar[frozenset[str]] = frozenset()
    """What it has fields for, besides a name and a minimum."""
    has_object: ClassVar[bool] = True
    """There is a group object; otherwise pods alone make the gang."""
    priority_is: ClassVar[str] = OF_PODS
    """Who has the priority class of a gang."""
    can_follow_pods: ClassVar[bool] = False
    """A group object without a priority class takes that of its pods."""
    least_minimum: ClassVar[int] = 1
    """The smallest minimum that can be written."""

    def objects(self, group: NeutralGang) -> Objects:
        """Return the group objects."""
        return []

    def pod_patch(self, group: NeutralGang, member: GangPod) -> PodPatch:
        """Return what a pod carries in this dialect."""
        raise NotImplementedError

    def ordered(self, group: NeutralGang) -> Iterable[GangPod]:
        """Return the members of a gang in the order in which they are written."""
        return group.members

    def leaves_out(self, group: NeutralGang, member: GangPod) -> bool:
        """Tell whether a pod cannot be in the gang."""
        return False

    def unsupported(self, group: NeutralGang) -> Iterator[Lost]:
        """Yield what is lost of this gang although the dialect has fields for the like."""
        return iter(())


def _object(writer: GroupWriter, api: str, group: NeutralGang, spec: dict[str, Any], **more: str) -> dict[str, Any]:
    """Return a group object; `more` are further annotations, besides those that the gang had before."""
    own = {key: text for key, text in kept(group, writer.dialect).items() if group.has_object or _is_of_gangs(key)}
    meta: dict[str, Any] = {"name": group.name, "namespace": group.namespace}
    meta |= {"annotations": {**own, **more}} if own or more else {}
    rest = fields_besides(group.source) if is_same_api(group, writer.dialect) else {}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": {**spec, **rest}}


def is_same_api(group: NeutralGang, dialect: str) -> bool:
    """Tell whether a gang comes from one object of the API in which it is written, so that fields unknown to the model stay."""
    return dialect in GROUP_BY_DIALECT and group.source.get("apiVersion") == GROUP_BY_DIALECT[dialect].api_version


def _is_of_gangs(key: str) -> bool:
    """Tell whether an annotation of a pod is about the gang that it makes, and does not only name it."""
    return bool(dialect_of(key)) and key not in {field.key for field in references.REFERENCE_FIELDS}


def _amounts(resources: Resources | None) -> dict[str, Any]:
    if resources is None:
        return {}
    return {"minResources": {name: quantity_text(name, amount) for name, amount in resources.items()}}


def _limit(group: NeutralGang) -> dict[str, Any]:
    """Return the time limit of a gang, in whole seconds: none is shorter than before."""
    return {} if group.timeout_seconds is None else {"scheduleTimeoutSeconds": ceil(group.timeout_seconds)}


def _lost_minimum(group: NeutralGang) -> Iterator[Lost]:
    """Yield that a minimum above the sum of the roles is lost, where only roles have one."""
    total = sum(group.roles.values())
    if group.roles and total != group.min_member:
        yield group.lost("minMember", f"{group.min_member} pods are needed; only the minima of roles can be said, together {total}")


class VolcanoWriter(GroupWriter):
    """Volcano's PodGroup."""

    dialect = "volcano"
    priority_is = OF_GROUP
    least_minimum = 0
    supports = frozenset({ROLES, SUBGROUPS, TIERS, QUEUE, MIN_RESOURCES, PREEMPTIBILITY})

    def objects(self, group: NeutralGang) -> Objects:
        spec: dict[str, Any] = {"minMember": group.min_member, "queue": group.queue, **_amounts(group.min_resources)}
        spec |= {"minTaskMember": dict(group.roles)} if group.roles else {}
        spec |= {"priorityClassName": group.priority_class} if group.priority_class else {}
        spec |= volcano_topology(group.topology) | volcano_parts(group)
        preemptable = {} if group.is_preemptable is None else {PREEMPTABLE: str(group.is_preemptable).lower()}
        return [_object(self, "scheduling.volcano.sh/v1beta1", group, spec, **preemptable)]

    def pod_patch(self, group: NeutralGang, member: GangPod) -> PodPatch:
        labels = member.document["metadata"].get("labels") or {}
        own = {SUBGROUP: labels[SUBGROUP]} if group.subgroups and SUBGROUP in labels else {}
        return PodPatch(own, {references.GROUP: group.name, **({ROLE: member.role} if member.role else {})})

    def unsupported(self, group: NeutralGang) -> Iterator[Lost]:
        if group.min_children is not None:
            yield group.lost("minSubGroup", "Volcano counts the sub-groups of each policy; here every one is needed")
        for part in group.subgroups:
            place = f"subGroups[{part.name}]"
            if part.min_children is not None:
                yield group.lost(f"{place}.minSubGroup", "Volcano counts the sub-groups of each policy; here every one is needed")
            if part.parent:
                yield group.lost(f"{place}.parent", "sub-groups of Volcano's are not inside each other")
            if part.topology is not None and not volcano_topology(part.topology):
                yield group.lost(f"{place}.topologyConstraint", "Volcano counts tiers of HyperNodes, not levels of node labels")


class KaiWriter(GroupWriter):
    """KAI's PodGroup."""

    dialect = "kai"
    priority_is = OF_GROUP
    supports = frozenset({ROLES, SUBGROUPS, LEVELS, QUEUE, PREEMPTIBILITY})

    def objects(self, group: NeutralGang) -> Objects:
        parts = kai_parts(group)
        minimum = sum(group.roles.values()) or max(group.min_member, 1)
        some = {"minMember": minimum} if group.min_children is None else {"minSubGroup": group.min_children}
        spec: dict[str, Any] = {**some, "queue": group.queue}
        spec |= {"priorityClassName": group.priority_class} if group.priority_class else {}
        values = {True: "preemptible", False: "non-preemptible"}
        spec |= {} if group.is_preemptable is None else {"preemptibility": values[group.is_preemptable]}
        spec |= kai_topology(group.topology) | ({"subGroups": parts.entries} if parts.entries else {})
        return [_object(self, "scheduling.run.ai/v2alpha2", group, spec)]

    def pod_patch(self, group: NeutralGang, member: GangPod) -> PodPatch:
        part = kai_parts(group).part_of(member)
        return PodPatch({SUBGROUP: part} if part else {}, {references.KAI_GROUP: group.name})

    def unsupported(self, group: NeutralGang) -> Iterator[Lost]:
        yield from _lost_minimum(group)
        if group.topology is not None and group.topology.required_level and not group.topology.topology:
            yield group.lost("topologyConstraint.topology", "KAI looks for levels in a Topology; create one and name it here")
        yield from (group.lost(place, why) for place, why in kai_parts(group).lost)
        yield from self._lost_total(group)

    def _lost_total(self, group: NeutralGang) -> Iterator[Lost]:
        """Name the minimum of the whole gang where its sub-groups need less: KAI counts by sub-groups alone."""
        (document,) = self.objects(group)
        spec = read_as(document["spec"], reader_of(KaiPodGroupSpec))
        if not spec.sub_groups or group.roles:
            return
        needed = kai_subgroups.min_member(spec, kai_subgroups.subgroups(spec))
        if needed < group.min_member:
            yield group.lost("minMember", f"{group.min_member} pods are needed, and KAI counts by sub-groups, which need {needed}")


class CoschedulingWriter(GroupWriter):
    """The PodGroup of the Coscheduling plugin."""

    dialect = "coscheduling"
    supports = frozenset({MIN_RESOURCES, TIMEOUT})

    def objects(self, group: NeutralGang) -> Objects:
        spec = {"minMember": max(group.min_member, 1), **_amounts(group.min_resources), **_limit(group)}
        return [_object(self, "scheduling.x-k8s.io/v1alpha1", group, spec)]

    def pod_patch(self, group: NeutralGang, member: GangPod) -> PodPatch:
        return PodPatch({references.COSCHEDULING_GROUP: group.name})


class KoordinatorWriter(GroupWriter):
    """Koordinator's PodGroup, and Coscheduling's older one; a gang with roles becomes a gang group, with a PodGroup for each.

    What a gang group needs in total is written on the first of its PodGroups: the sum of all of them counts.
    """

    dialect = "koordinator"
    supports = frozenset({ROLES, QUEUE, MIN_RESOURCES, TIMEOUT})

    def objects(self, group: NeutralGang) -> Objects:
        api = "scheduling.sigs.k8s.io/v1alpha1"
        limit, amounts = _limit(group), _amounts(group.min_resources)
        if len(group.roles) < 2:
            minimum = sum(group.roles.values()) or max(group.min_member, 1)
            return [_object(self, api, group, {"minMember": minimum, **amounts, **limit})]
        names = {role: self._name(group, role) for role in sorted(group.roles)}
        more = {
            koordinator.GROUPS: json.dumps([f"{group.namespace}/{name}" for name in names.values()]),
            GANG_GROUP_NAME: group.name,
        }
        return [
            _object(
                self, api, replace(group, name=name), {"minMember": group.roles[role], **(limit if number else amounts | limit)},
                **more,
            )
            for number, (role, name) in enumerate(names.items())
        ]  # fmt: skip

    def _name(self, group: NeutralGang, role: str) -> str:
        return f"{group.name}-{role}" if len(group.roles) > 1 else group.name

    def pod_patch(self, group: NeutralGang, member: GangPod) -> PodPatch:
        queue = {QUOTA: group.queue} if group.queue != "default" else {}
        if self.leaves_out(group, member):
            return PodPatch(queue)
        return PodPatch({references.SIGS_GROUP: self._name(group, member.role), **queue})

    def leaves_out(self, group: NeutralGang, member: GangPod) -> bool:
        return bool(group.roles) and member.role not in group.roles

    def unsupported(self, group: NeutralGang) -> Iterator[Lost]:
        yield from _lost_minimum(group)
        if len(group.roles) == 1:
            yield group.lost("minTaskMember", "a gang group has two gangs or more; here only the pods of the role are the gang")
        strangers = [member for member in group.members if self.leaves_out(group, member)]
        if strangers:
            yield group.lost("members", f"{len(strangers)} pods play no role that has a minimum; they start for themselves")


class NativeWriter(GroupWriter):
    """The PodGroup of Kubernetes 1.36."""

    dialect = "native"
    priority_is = OF_GROUP
    can_follow_pods = True
    supports = frozenset({LEVELS, QUEUE, WHOLENESS})

    def objects(self, group: NeutralGang) -> Objects:
        spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": max(group.min_member, 1)}}}
        if group.topology is not None and group.topology.required_level:
            spec["schedulingConstraints"] = {"topology": [{"key": group.topology.required_level}]}
        spec |= {"priorityClassName": group.priority_class} if group.priority_class else {}
        spec |= {"disruptionMode": native.WHOLE[0]} if group.goes_whole else {}
        queue = {native.QUEUE: group.queue} if group.queue != "default" else {}
        return [_object(self, "scheduling.k8s.io/v1alpha2", group, spec, **queue)]

    def pod_patch(self, group: NeutralGang, member: GangPod) -> PodPatch:
        return PodPatch(spec={"schedulingGroup": {"podGroupName": group.name}})

    def unsupported(self, group: NeutralGang) -> Iterator[Lost]:
        if group.topology is not None and group.topology.preferred_level:
            yield group.lost("topologyConstraint.preferredTopologyLevel", "a topology is required there, or not said")
        yield from _lost_tree(group)


def _lost_tree(group: NeutralGang) -> Iterator[Lost]:
    """Yield that the name of a tree of node labels is lost, where a level is named without it."""
    found = group.topology
    if found is not None and found.topology and (found.required_level or found.preferred_level):
        yield group.lost("topologyConstraint.topology", "node labels are named there without the tree that they are levels of")


class YuniKornWriter(GroupWriter):
    """YuniKorn's application with task groups, which the first pod that is in one of them describes."""

    dialect = "yunikorn"
    priority_is = OF_ONE_POD
    supports = frozenset({ROLES, QUEUE})
    has_object = False

    def pod_patch(self, group: NeutralGang, member: GangPod) -> PodPatch:
        labels = {references.YUNIKORN_APP: group.name, yunikorn.QUEUE: f"{yunikorn.ROOT}{group.queue}"}
        if group.min_member <= 1 and not group.roles:
            return PodPatch(labels)
        role = member.role if group.roles else group.name
        annotations = {TASK_GROUP: role} if role else {}
        if member is self._originator(group):
            annotations[yunikorn.TASK_GROUPS] = json.dumps(list(self._task_groups(group)))
        return PodPatch(labels, annotations)

    def ordered(self, group: NeutralGang) -> Iterable[GangPod]:
        first = self._originator(group) if group.members else None
        return sorted(group.members, key=lambda member: member is not first)

    def _originator(self, group: NeutralGang) -> GangPod:
        return _first_in_role(group)

    def _task_groups(self, group: NeutralGang) -> Iterator[dict[str, Any]]:
        for role, minimum in (group.roles or {group.name: group.min_member}).items():
            members = [member for member in group.members if not group.roles or member.role == role]
            yield {"name": role, "minMember": minimum, "minResource": _largest(members)}

    def unsupported(self, group: NeutralGang) -> Iterator[Lost]:
        yield from _lost_minimum(group)
        if not group.members:
            yield group.lost("metadata.name", "pods alone make an application, and this gang has none")


@once_per_gang
def _first_in_role(group: NeutralGang) -> GangPod:
    return next((member for member in group.members if member.role in group.roles), group.members[0])


def _largest(members: list[GangPod]) -> dict[str, str]:
    """Return what the largest of some pods asks for."""
    found: dict[str, int] = {}
    for member in members:
        for name, amount in pod_request(read_as(with_implied_requests(member.document["spec"]), schema.ShapeSpec)).items():
            found[name] = max(found.get(name, 0), amount)
    return {name: quantity_text(name, amount) for name, amount in sorted(found.items())}


class KueueWriter(GroupWriter):
    """Kueue's plain pod group."""

    dialect = "kueue"
    priority_is = OF_ONE_POD
    supports = frozenset({LEVELS, QUEUE})
    has_object = False

    def pod_patch(self, group: NeutralGang, member: GangPod) -> PodPatch:
        queue = {kueue.QUEUE: group.queue} if group.queue != "default" else {}
        count = {kueue.TOTAL_COUNT: str(self._count(group)), **self._topology(group)}
        return PodPatch({references.KUEUE_GROUP: group.name, **queue}, count)

    def _count(self, group: NeutralGang) -> int:
        return max(group.min_member, len(group.members))

    def _topology(self, group: NeutralGang) -> dict[str, str]:
        found = group.topology
        if found is not None and found.required_level:
            return {kueue.REQUIRED_TOPOLOGY: found.required_level}
        level = found.preferred_level if found is not None else ""
        return {kueue.PREFERRED_TOPOLOGY: level} if level else {}

    def unsupported(self, group: NeutralGang) -> Iterator[Lost]:
        count = self._count(group)
        if count > group.min_member:
            yield group.lost(
                "minMember", f"{group.min_member} of {count} pods are needed; Kueue's groups start with all, or lose the others"
            )
        if group.topology is not None and group.topology.required_level and group.topology.preferred_level:
            yield group.lost("topologyConstraint.preferredTopologyLevel", "a topology is required or preferred there, not both")
        yield from _lost_tree(group)
        if not group.members:
            yield group.lost("metadata.name", "pods alone make a group, and this gang has none")


class GatesWriter(GroupWriter):
    """Pods behind a scheduling gate of Phalanx's."""

    dialect = "gates"
    has_object = False

    def pod_patch(self, group: NeutralGang, member: GangPod) -> PodPatch:
        others = bare(member.document, self.dialect)["spec"].get("schedulingGates") or ()
        spec = {"schedulingGates": [*others, {"name": gates.GATE}]}
        return PodPatch({gates.GATE: group.name}, {gates.MIN_MEMBER: str(max(group.min_member, 1))}, spec)

    def unsupported(self, group: NeutralGang) -> Iterator[Lost]:
        if not group.members:
            yield group.lost("metadata.name", "pods alone make a gang, and this one has none")


WRITERS: dict[str, GroupWriter] = {
    writer.dialect: writer
    for writer in (
        VolcanoWriter(), KaiWriter(), CoschedulingWriter(), KoordinatorWriter(), NativeWriter(), YuniKornWriter(), KueueWriter(),
        GatesWriter(),
    )
}  # fmt: skip
"""By dialect."""
