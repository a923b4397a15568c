"""Groups and links in each dialect: what is created, and what is changed in those that exist."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from phalanx.controllers.controller import Create, Patch, Write
from phalanx.controllers.grouper.group_spec import WantedGroup
from phalanx.controllers.grouper.grouping import GroupConstraint, GroupPart
from phalanx.controllers.grouper.settings import GrouperSettings
from phalanx.controllers.objects import annotations_of, labels_of, meta_of
from phalanx.dialects.group_references import COSCHEDULING_GROUP, GROUP, KAI_GROUP, SIGS_GROUP
from phalanx.dialects.kai_subgroups import SUBGROUP
from phalanx.dialects.pods import ROLE
from phalanx.dialects.volcano import PREEMPTABLE
from phalanx.model.kinds import POD, Document, Kind, kind_of

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GroupDialect:
    """One dialect: its PodGroup, and how a pod is linked to one."""

    kind: Kind
    spec: Callable[[WantedGroup], Fields]
    """The fields of the spec; None for those that are to be absent."""
    annotations: Callable[[WantedGroup], Mapping[str, str]]
    link: Callable[[str, str], Fields]
    """Given the names of a group and a part: the labels and annotations of a member; empty where pods cannot be linked later."""
    is_fixed: bool = False
    """Its spec cannot be changed."""


# --- dialects ------------------------------------------------------------------------------------------------------------


def _kai_spec(group: WantedGroup) -> Fields:
    grouping = group.grouping
    parents = {part.parent for part in grouping.parts}
    return {
        "minMember": grouping.minimum, "queue": group.queue, "priorityClassName": group.priority_class.text,
        "preemptibility": group.preemptibility.text or None,
        "topologyConstraint": None if grouping.constraint is None else _constraint_fields(grouping.constraint),
        "subGroups": [_part_fields(part, has_pods=part.name not in parents) for part in grouping.parts] or None,
    }  # fmt: skip


def _part_fields(part: GroupPart, *, has_pods: bool) -> Fields:
    """Return a sub-group; one that holds others counts no pods, and without a number it needs all of them."""
    fields: Fields = {"name": part.name, **({"minMember": part.minimum} if has_pods else {})}
    if part.parent:
        fields["parent"] = part.parent
    if part.constraint is not None:
        fields["topologyConstraint"] = _constraint_fields(part.constraint)
    return fields


def _constraint_fields(constraint: GroupConstraint) -> Fields:
    levels = {"requiredTopologyLevel": constraint.required, "preferredTopologyLevel": constraint.preferred}
    return {"topology": constraint.topology, **{key: text for key, text in levels.items() if text}}


def _volcano_spec(group: WantedGroup) -> Fields:
    parents = {part.parent for part in group.grouping.parts}
    roles = {part.name: part.minimum for part in group.grouping.parts if part.name not in parents}
    fields = {"minMember": group.grouping.minimum, "minTaskMember": roles or None}
    return {**fields, "queue": group.queue, "priorityClassName": group.priority_class.text}


def _volcano_annotations(group: WantedGroup) -> Mapping[str, str]:
    value = group.preemptibility.text
    return {PREEMPTABLE: "true" if value == "preemptible" else "false"} if value else {}


def _sized_spec(group: WantedGroup) -> Fields:
    return {"minMember": group.grouping.minimum}


def _native_spec(group: WantedGroup) -> Fields:
    constraint = group.grouping.constraint
    topology = {"topology": [{"key": constraint.required}]} if constraint is not None and constraint.required else None
    fields = {"schedulingPolicy": {"gang": {"minCount": group.grouping.minimum}}, "schedulingConstraints": topology}
    return {**fields, "priorityClassName": group.priority_class.text}


def _annotated(key: str, part_key: str, *, part_is_label: bool) -> Callable[[str, str], Fields]:
    def link(name: str, part: str) -> Fields:
        parts = {part_key: part} if part else {}
        return {"annotations": {key: name, **({} if part_is_label else parts)}, "labels": parts if part_is_label else {}}

    return link


def _labelled(key: str) -> Callable[[str, str], Fields]:
    return lambda name, part: {"labels": {key: name}, "annotations": {}}


def _nothing(group: WantedGroup) -> Mapping[str, str]:
    return {}


def _groups(api_version: str) -> Kind:
    return kind_of({"apiVersion": api_version, "kind": "PodGroup"})


GROUP_DIALECTS: Mapping[str, GroupDialect] = {
    "kai": GroupDialect(
        _groups("scheduling.run.ai/v2alpha2"), _kai_spec, _nothing, _annotated(KAI_GROUP, SUBGROUP, part_is_label=True)
    ),
    "volcano": GroupDialect(
        _groups("scheduling.volcano.sh/v1beta1"), _volcano_spec, _volcano_annotations, _annotated(GROUP, ROLE, part_is_label=False)
    ),
    "coscheduling": GroupDialect(_groups("scheduling.x-k8s.io/v1alpha1"), _sized_spec, _nothing, _labelled(COSCHEDULING_GROUP)),
    "koordinator": GroupDialect(_groups("scheduling.sigs.k8s.io/v1alpha1"), _sized_spec, _nothing, _labelled(SIGS_GROUP)),
    "native": GroupDialect(
        _groups("scheduling.k8s.io/v1alpha2"), _native_spec, _nothing, lambda name, part: {"labels": {}, "annotations": {}},
        is_fixed=True,
    ),
}  # fmt: skip


# --- writes --------------------------------------------------------------------------------------------------------------


def group_writes(dialect: GroupDialect, settings: GrouperSettings, group: WantedGroup, old: Document | None) -> Iterator[Write]:
    """Yield the write that creates or updates a group; nothing when it is as it should be."""
    if old is None:
        yield Create(_document(dialect, group))
        return
    patch = _change(dialect, settings, group, old)
    if patch:
        yield Patch(dialect.kind, group.namespace, group.grouping.name, patch)


def _document(dialect: GroupDialect, group: WantedGroup) -> Document:
    owner = group.grouping.owner
    reference = {key: owner[key] for key in ("apiVersion", "kind")} | {key: meta_of(owner)[key] for key in ("name", "uid")}
    meta = {
        "name": group.grouping.name, "namespace": group.namespace, "labels": dict(group.labels),
        "annotations": {**group.annotations, **dialect.annotations(group)}, "ownerReferences": [reference],
    }  # fmt: skip
    spec = {key: value for key, value in dialect.spec(group).items() if value is not None}
    return {"apiVersion": dialect.kind.api_version, "kind": "PodGroup", "metadata": meta, "spec": spec}


def _change(dialect: GroupDialect, settings: GrouperSettings, group: WantedGroup, old: Document) -> Fields:
    """Return the merge patch of a group: never queue or node pool, and class and preemptibility only where an owner sets them."""
    left = {"queue", *(() if group.priority_class.is_from_owner else ("priorityClassName",))}
    left |= set() if group.preemptibility.is_from_owner else {"preemptibility"}
    wanted = {} if dialect.is_fixed else {key: value for key, value in dialect.spec(group).items() if key not in left}
    spec = _different(wanted, old.get("spec") or {})
    labels = {key: text for key, text in group.labels.items() if key not in (settings.queue_label, settings.node_pool_label)}
    own = dialect.annotations(group) if group.preemptibility.is_from_owner else {}
    annotations = _different({**group.annotations, **own}, annotations_of(old))
    meta = {"labels": _different(labels, labels_of(old)), "annotations": annotations}
    return _filled({"metadata": _filled(meta), "spec": spec})


def link_writes(dialect: GroupDialect, group: WantedGroup, pod: Document) -> Iterator[Write]:
    """Yield the write that links a pod to its group; nothing when it is linked."""
    link = dialect.link(group.grouping.name, group.grouping.part)
    labels, annotations = _different(link["labels"], labels_of(pod)), _different(link["annotations"], annotations_of(pod))
    if labels or annotations:
        patch = {"metadata": _filled({"labels": labels, "annotations": annotations})}
        yield Patch(POD, group.namespace, str(meta_of(pod)["name"]), patch)


def _different(wanted: Mapping[str, Any], old: Mapping[str, Any]) -> Fields:
    return {key: value for key, value in wanted.items() if old.get(key) != value}


def _filled(fields: Fields) -> Fields:
    return {key: value for key, value in fields.items() if value}
