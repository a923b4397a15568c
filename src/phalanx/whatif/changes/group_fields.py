"""What a gang says of itself as a whole, changed where its dialect says it: on its group object, or on pods that describe it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from phalanx.dialects import gates, koordinator, kueue, native, yunikorn
from phalanx.dialects.group_references import SIGS_GROUP_NAME
from phalanx.errors import ConfigError
from phalanx.model.gang import Gang
from phalanx.model.kinds import Document
from phalanx.model.resources import amount_of, quantity_text
from phalanx.whatif.changes.object_change import NONE, ObjectChange, edited, part
from phalanx.whatif.changes.pod_specs import priority_class, waits, with_priority
from phalanx.whatif.trial_cluster import Edit, TrialCluster

TIER, LEVEL = "highestTierAllowed", "requiredTopologyLevel"


@dataclass(frozen=True, slots=True)
class GangTrial:
    """A gang that is to change: its group objects, if it has any, and its pods."""

    change: ObjectChange
    cluster: TrialCluster
    gang: Gang
    groups: Sequence[Document]
    pods: Sequence[Document]

    @property
    def group(self) -> Document:
        """The only group object; a gang of several groups has none of its own."""
        if len(self.groups) > 1:
            names = ", ".join(str(group["metadata"]["name"]) for group in self.groups)
            raise self.change.refuse(f"several PodGroups start together ({names}), and each has its own")
        return self.groups[0]

    def edit(self, *path: str, to: Any) -> Edit:  # Any: a part of an object
        """Return the group object with one field changed."""
        return Edit(self.group, edited(self.group, *path, to=to))

    def on_pods(self, *path: str, to: str) -> list[Edit]:
        """Return all pods with one field changed."""
        return [Edit(pod, edited(pod, *path, to=to)) for pod in self.pods]

    def cannot(self, what: str) -> ConfigError:
        """Say that the dialect has no place for it."""
        return self.change.refuse(f"gangs of the dialect {self.gang.dialect} have no {what}")

    @property
    def _is_owned(self) -> bool:
        """Tell whether a controller made the group object; it writes minResources again when the owner changes."""
        return any(owner.get("controller") for owner in self.group["metadata"].get("ownerReferences") or ())

    def scaled(self, group: Document, factor: Fraction, *names: str) -> Document:
        """Return a group whose minResources follow, as its controller would write them; what a user wrote stays."""
        found = part(group, "spec", "minResources")
        if not found or not self._is_owned:
            return group
        amounts = {name: ceil(amount_of(name, text) * factor) for name, text in found.items() if not names or name in names}
        texts = {name: quantity_text(name, amount) for name, amount in amounts.items()}
        return edited(group, "spec", "minResources", to={**found, **texts})

    def with_requests(self, change: ObjectChange) -> list[Edit]:
        """Return the group with minResources that follow a change of what its pods ask for."""
        if len(self.groups) != 1 or not self.pods:
            return []
        task = next((task for task in self.cluster.members(self.gang.key) if task.shape.request.get(change.key)), None)
        before = task.shape.request[change.key] if task is not None else 0
        after = change.quantity(quantity_text(change.key, before))
        if not before or after is None:
            return []
        group = self.scaled(self.group, Fraction(amount_of(change.key, after), before), change.key)
        return [] if group is self.group else [Edit(self.group, group)]


# --- members -------------------------------------------------------------------------------------------------------------


def min_member(trial: GangTrial) -> list[Edit]:
    """Change how many members start together."""
    count, dialect = trial.change.whole_number(trial.gang.min_member, least=0), trial.gang.dialect
    if trial.groups:
        return [_group_minimum(trial, count)]
    match dialect:
        case "koordinator" if any((pod["metadata"].get("labels") or {}).get(SIGS_GROUP_NAME) for pod in trial.pods):
            return trial.on_pods("metadata", "labels", koordinator.SIGS_MIN_AVAILABLE, to=str(count))
        case "koordinator":
            return trial.on_pods("metadata", "annotations", koordinator.MIN_AVAILABLE, to=str(count))
        case "gates":
            return trial.on_pods("metadata", "annotations", gates.MIN_MEMBER, to=str(count))
        case "kueue":
            return trial.on_pods("metadata", "annotations", kueue.TOTAL_COUNT, to=str(count))
        case "yunikorn":
            return _task_group_minimum(trial, count)
    raise trial.cannot("minMember")


def _group_minimum(trial: GangTrial, count: int) -> Edit:
    group = trial.group
    if trial.gang.dialect == "native":
        if part(group, "spec", "schedulingPolicy", "gang") is None:
            raise trial.change.refuse("its PodGroup has the policy 'basic', by which pods start one by one")
        return trial.edit("spec", "schedulingPolicy", "gang", "minCount", to=count)
    if trial.gang.dialect == "kai" and part(group, "spec", "subGroups"):
        raise trial.change.refuse("its sub-groups say how many members it needs, and minMember has no effect beside them")
    before = int(part(group, "spec", "minMember") or 0)
    scaled = trial.scaled(group, Fraction(count, before)) if before else group
    return Edit(group, edited(scaled, "spec", "minMember", to=count))


def _task_group_minimum(trial: GangTrial, count: int) -> list[Edit]:
    """Change the minimum of the only task group, which the originator describes; or of the one that the change names."""
    first = next((pod for pod in trial.pods if yunikorn.TASK_GROUPS in (pod["metadata"].get("annotations") or {})), None)
    if first is None:
        raise trial.change.refuse("no pod of it describes task groups; its pods start one by one")
    entries = json.loads(first["metadata"]["annotations"][yunikorn.TASK_GROUPS])
    names = [entry["name"] for entry in entries]
    name = trial.change.key or (names[0] if len(names) == 1 else "")
    if name not in names:
        raise trial.change.refuse(f"which task group? write .minMember.NAME; it has: {', '.join(names)}")
    text = json.dumps([{**entry, "minMember": count} if entry["name"] == name else entry for entry in entries])
    return [Edit(first, edited(first, "metadata", "annotations", yunikorn.TASK_GROUPS, to=text))]


def min_resources(trial: GangTrial) -> list[Edit]:
    """Change what the group says it needs in total."""
    if not trial.groups or trial.gang.dialect not in ("volcano", "coscheduling", "koordinator"):
        raise trial.cannot("minResources")
    if trial.change.value == NONE and not trial.change.key:
        return [trial.edit("spec", "minResources", to=None)]
    amount = trial.change.quantity(part(trial.group, "spec", "minResources", trial.change.key))
    return [trial.edit("spec", "minResources", trial.change.key, to=amount)]


# --- queue and priority --------------------------------------------------------------------------------------------------


def queue(trial: GangTrial) -> list[Edit]:
    """Put a gang into another queue."""
    name = trial.change.value
    match trial.gang.dialect:
        case "volcano" | "kai":
            return [trial.edit("spec", "queue", to=name)]
        case "native":
            return [trial.edit("metadata", "annotations", native.QUEUE, to=name)]
        case "kueue":
            return trial.on_pods("metadata", "labels", kueue.QUEUE, to=name)
        case "yunikorn":
            return trial.on_pods("metadata", "labels", yunikorn.QUEUE, to=f"{yunikorn.ROOT}{name}")
    raise trial.cannot("queue; they are in the queue 'default'")


def priority(trial: GangTrial) -> list[Edit]:
    """Give a gang another priority: its group where that says it, and its pods that wait."""
    chosen, made = priority_class(trial.change, trial.cluster)
    name, found = chosen["metadata"]["name"], [Edit(pod, with_priority(pod, chosen)) for pod in trial.pods if waits(pod)]
    if trial.groups and trial.gang.dialect in ("volcano", "kai", "native"):
        group = edited(trial.group, "spec", "priorityClassName", to=name)
        if trial.gang.dialect == "native":
            group = edited(group, "spec", "priority", to=chosen["value"])
        found.append(Edit(trial.group, group))
    return [*made, *found]


# --- topology ------------------------------------------------------------------------------------------------------------


def topology(trial: GangTrial, *, part_of: str) -> list[Edit]:
    """Let members be farther apart: within a wider tier or level, or anywhere."""
    change = trial.change
    if part_of == "topology":
        if change.value != NONE:
            raise change.refuse("a topology constraint can only be dropped; write 'none'")
        return _without_topology(trial)
    if part_of == TIER:
        if trial.gang.dialect != "volcano":
            raise trial.cannot("tiers of HyperNodes")
        found = part(trial.group, "spec", "networkTopology") or {}
        wider = {**found, TIER: change.whole_number(found.get(TIER), least=0)}
        return [
            trial.edit("spec", "networkTopology", to={name: value for name, value in wider.items() if name != "highestTierName"})
        ]
    match trial.gang.dialect:
        case "kai":
            return [trial.edit("spec", "topologyConstraint", LEVEL, to=change.value)]
        case "native":
            return [trial.edit("spec", "schedulingConstraints", "topology", to=[{"key": change.value}])]
        case "kueue":
            return trial.on_pods("metadata", "annotations", kueue.REQUIRED_TOPOLOGY, to=change.value)
    raise trial.cannot("levels of node labels")


def _without_topology(trial: GangTrial) -> list[Edit]:
    fields = {"volcano": "networkTopology", "kai": "topologyConstraint", "native": "schedulingConstraints"}
    if trial.gang.dialect in fields:
        return [trial.edit("spec", fields[trial.gang.dialect], to=None)]
    if trial.gang.dialect == "kueue":
        return [Edit(pod, edited(pod, "metadata", "annotations", kueue.REQUIRED_TOPOLOGY, to=None)) for pod in trial.pods]
    raise trial.cannot("topology constraint")
