"""Convert objects to another dialect: gangs are read into the model and written from it; all other objects stay as they are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from phalanx.dialects.cluster import describe
from phalanx.dialects.convert.jobs import written_out
from phalanx.dialects.convert.neutral_gangs import Lost, NeutralGang, fields_besides, sort_out
from phalanx.dialects.convert.pods import MODELLED, bare, dialect_of, kept, lost_metadata, patched
from phalanx.dialects.convert.writers import (
    LEVELS,
    MIN_RESOURCES,
    OF_GROUP,
    OF_ONE_POD,
    OF_PODS,
    PREEMPTIBILITY,
    QUEUE,
    ROLES,
    SUBGROUPS,
    TIERS,
    TIMEOUT,
    WHOLENESS,
    WRITERS,
    GroupWriter,
    is_same_api,
)
from phalanx.dialects.volcano import PREEMPTABLE
from phalanx.model.kinds import Document

DIALECTS = tuple(WRITERS)


@dataclass(frozen=True, slots=True)
class Converted:
    """The converted objects, and what was lost."""

    objects: list[dict[str, Any]]
    lost: list[Lost]


def converted(documents: Iterable[Document], dialect: str) -> Converted:
    """Return the objects in another dialect; an object that cannot be read raises."""
    found, lost = written_out(documents)
    parts, writer = sort_out(found), WRITERS[dialect]
    objects = [dict(item) for item in parts.others]
    objects += [pod for group in parts.groups for pod in _pods(group, writer, are_left_out=True)]
    for group in parts.groups:
        objects += [*writer.objects(group), *_pods(group, writer)]
        lost += [
            *_unsupported(group, writer),
            *_priority(group, writer),
            *writer.unsupported(group),
            *lost_metadata(group, dialect),
            *_annotations(group, dialect),
        ]
    kept_whole = {id(group.source) for group in parts.groups if is_same_api(group, dialect)}
    for item in parts.objects:
        lost += _fields(item) if id(item) not in kept_whole else ()
    lost += [
        Lost(describe(item), "kind", "no reader for this group; it stays as it is") for item in parts.others if _is_group(item)
    ]
    return Converted(objects, list(dict.fromkeys(lost)))


def _pods(group: NeutralGang, writer: GroupWriter, *, are_left_out: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the pods of the gang, or those that are left out; where they alone make it, each gets what its group object said."""
    moved = kept(group, writer.dialect) if group.has_object and not writer.has_object else {}
    for member in (member for member in writer.ordered(group) if writer.leaves_out(group, member) == are_left_out):
        patch = writer.pod_patch(group, member)
        patch = replace(patch, annotations={**moved, **patch.annotations})
        yield patched(bare(member.document, writer.dialect), patch, group, writer.dialect)


def _is_group(document: Document) -> bool:
    return str(document["kind"]) == "PodGroup"


def _unsupported(group: NeutralGang, writer: GroupWriter) -> Iterator[Lost]:
    """Yield what a gang has and the dialect has no field for."""
    where, topology = f"{writer.dialect} has no field for it", group.topology
    has_tiers = topology is not None and bool(topology.highest_tier is not None or topology.highest_tier_name)
    has_levels = topology is not None and bool(topology.required_level or topology.preferred_level)
    features = {
        ROLES: ("minTaskMember", bool(group.roles)), SUBGROUPS: ("subGroups", bool(group.subgroups)),
        TIERS: ("networkTopology", has_tiers), LEVELS: ("topologyConstraint", has_levels),
        QUEUE: ("queue", group.queue != "default"), MIN_RESOURCES: ("minResources", group.min_resources is not None),
        PREEMPTIBILITY: ("preemptability", group.is_preemptable is not None),
        TIMEOUT: ("scheduleTimeoutSeconds", group.timeout_seconds is not None),
        WHOLENESS: ("disruptionMode", group.goes_whole),
    }  # fmt: skip
    if group.min_member < writer.least_minimum:
        yield group.lost("minMember", f"{group.min_member}; {writer.dialect} needs at least one pod")
    if group.several_quotas:
        yield group.lost("queue", "its pods use several quotas")
    for feature, (field, is_said) in features.items():
        if is_said and feature not in writer.supports:
            yield group.lost(field, where)


def _priority(group: NeutralGang, writer: GroupWriter) -> Iterator[Lost]:
    """Yield that the priority of a gang changes, where its pods have other classes than the gang, or not all the same."""
    if group.dialect == writer.dialect or group.classes <= {group.priority_class}:
        return
    named = ", ".join(sorted(name or "none" for name in group.classes))
    if writer.priority_is == OF_ONE_POD or (writer.priority_is == OF_GROUP and group.follows_pods and not writer.can_follow_pods):
        yield group.lost("priorityClassName", f"its pods name {named}, and {writer.dialect} takes one for the gang")
    elif not group.follows_pods and (writer.priority_is == OF_PODS or (writer.can_follow_pods and not group.priority_class)):
        yield group.lost("priorityClassName", f"{writer.dialect} takes that of the pods, and they name {named}")


def _annotations(group: NeutralGang, dialect: str) -> Iterator[Lost]:
    """Yield the annotations of a group object that mean something in its own dialect alone."""
    if not group.has_object:
        return
    for key in group.annotations:
        if key not in (*MODELLED, PREEMPTABLE) and dialect_of(key) not in ("", dialect):
            yield group.lost(f"metadata.annotations[{key!r}]", f"only {dialect_of(key)} knows it")


def _fields(document: Document) -> Iterator[Lost]:
    """Yield the fields of a group object that the model does not hold."""
    for key in fields_besides(document):
        yield Lost(describe(document), f"spec.{key}", "it is not carried over")
