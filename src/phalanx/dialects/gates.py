"""Gangs behind our scheduling gate, for clusters in which another scheduler binds the pods.

Pods carry the gate `phalanx.dev/gang`, or one that the configuration names. They are in the gang of their group object, of any
dialect, or of the label of the same name, where their annotations say how large it is. When a whole gang has room, a plan is
written on each of its pods: the node, and how many pods the plan is for. A plan counts only when all of its pods carry it. So a
controller that is restarted between two writes either finds a whole plan and carries it out, or finds a part of one and ignores
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import msgspec

from phalanx.dialects.field_values import integer, staleness_grace
from phalanx.dialects.reading import decode_as
from phalanx.errors import SnapshotError
from phalanx.model.duration import seconds_of
from phalanx.model.gang import Gang
from phalanx.model.kinds import Document
from phalanx.model.moment import moment_of, moment_text
from phalanx.model.task import GangKey, Task, TaskKey

GATE = "phalanx.dev/gang"
MIN_MEMBER = "phalanx.dev/min-member"
TIMEOUT, AFTERWARDS = "phalanx.dev/timeout", "phalanx.dev/on-timeout"
WAIT, DELETE = "wait", "delete"
PLAN = "phalanx.dev/plan"
LASTS_SECONDS = 60.0
"""A plan that has not begun is ignored after this time: the room may be taken by then."""
NODE_NAME, REQUIRED = "metadata.name", "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class GangGates:
    """The scheduling gates that are ours: our own, and those that the configuration names. All others are left alone."""

    more: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return (GATE, *self.more)

    def of(self, pod: Document) -> tuple[str, ...]:
        """Return those of a pod's gates that are ours."""
        return tuple(name for name in gates_of(pod) if name in self.names)

    def alone_hold(self, pod: Document) -> bool:
        """Tell whether a pod is held back, and by no gates but ours."""
        found = gates_of(pod)
        return bool(found) and all(name in self.names for name in found)

    def concern(self, pod: Document) -> bool:
        """Tell whether a pod has a gate of ours, or had one until its plan was carried out."""
        return bool(self.of(pod)) or plan_of(pod) is not None

    def foreseen(self, pod: Document) -> Document:
        """Return a pod as it will be once its gates are lifted: a candidate for a node, or on the node of its plan."""
        spec = pod.get("spec") or {}
        if self.alone_hold(pod):
            return {**pod, "spec": {key: value for key, value in spec.items() if key != "schedulingGates"}}
        return placed(pod) if not gates_of(pod) and not spec.get("nodeName") else pod

    def lifted(self, pod: Document, plan: "GatePlan") -> dict[str, Any]:
        """Return the patch that pins a pod to the node of its plan and removes our gates, both at once."""
        others = [gate for gate in pod["spec"].get("schedulingGates") or () if gate.get("name") not in self.names]
        affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        terms = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
        required = {"nodeSelectorTerms": [_on(term, plan.node) for term in terms]}
        spec = {"affinity": {"nodeAffinity": {REQUIRED: required}}, "schedulingGates": others}
        return {"metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]}, "spec": spec}


class GatePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The node of a pod, and how many pods are planned together."""

    id: str
    """The same for all pods of a plan, another one for another plan."""
    pods: int
    node: str
    made: str
    gates: tuple[str, ...] = (GATE,)
    """Those of our gates that the pod has: whoever makes it anew puts them there again."""

    def is_fresh(self, now: float) -> bool:
        """Tell whether the plan may still begin."""
        return (moment_of(self.made) or 0.0) + LASTS_SECONDS >= now


# --- reading -------------------------------------------------------------------------------------------------------------


def gang(task: Task) -> Gang | None:
    """Return the gang that a pod describes; None if it describes none."""
    minimum = minimum_of(task.annotations)
    timeout_of(task.annotations)
    if minimum is None:
        return None
    return Gang(
        key=GangKey(task.group), uid=task.uid, min_member=minimum, dialect="gates", follows_pods=True, keeps_phase=False,
        has_object=False, annotations=task.annotations, created=task.created,
        staleness_grace_seconds=staleness_grace(task.annotations),
    )  # fmt: skip


def minimum_of(annotations: Mapping[str, str]) -> int | None:
    """Return how many pods start together; None without the annotation."""
    text = annotations.get(MIN_MEMBER)
    if text is None:
        return None
    where = f"metadata.annotations[{MIN_MEMBER!r}]"
    minimum = integer(text, where=where)
    if minimum < 1:
        raise SnapshotError(f"{where}: {text!r} is too small; write how many pods start together, 1 or more")
    return minimum


def timeout_of(annotations: Mapping[str, str]) -> tuple[float | None, str]:
    """Return after how many seconds a gang has waited too long, and what happens then."""
    text, afterwards = annotations.get(TIMEOUT), annotations.get(AFTERWARDS, WAIT)
    limit = None if text is None else seconds_of(text)
    if text is not None and limit is None:
        raise SnapshotError(f"metadata.annotations[{TIMEOUT!r}]: {text!r} is not a duration; write for example '10m'")
    if afterwards not in (WAIT, DELETE):
        where = f"metadata.annotations[{AFTERWARDS!r}]"
        raise SnapshotError(f"{where}: {afterwards!r} is unknown; write {WAIT!r} or {DELETE!r}")
    return limit, afterwards


def gates_of(pod: Document) -> list[str]:
    """Return the names of a pod's gates."""
    return [str(gate.get("name", "")) for gate in (pod.get("spec") or {}).get("schedulingGates") or ()]


def plan_of(pod: Document) -> GatePlan | None:
    """Return the plan of a pod; one that cannot be read counts as none."""
    text = (pod["metadata"].get("annotations") or {}).get(PLAN)
    if text is None:
        return None
    try:
        return decode_as(text, GatePlan)
    except msgspec.DecodeError:
        return None


# --- planning ------------------------------------------------------------------------------------------------------------


def placed(pod: Document) -> Document:
    """Return a pod as it will be once its plan is carried out; one without a plan stays as it is."""
    plan = plan_of(pod)
    if plan is None:
        return pod
    spec = {key: value for key, value in pod["spec"].items() if key != "schedulingGates"}
    return {**pod, "spec": {**spec, "nodeName": plan.node}}


def plans(
    node_by_pod: Mapping[TaskKey, str], now: float, gates_by_pod: Mapping[TaskKey, tuple[str, ...]] = MappingProxyType({})
) -> dict[TaskKey, GatePlan]:  # fmt: skip
    """Return the plan of each pod of a gang; its gates are those of ours that it has, our own by default."""
    lines = "\n".join(f"{key} {node}" for key, node in sorted(node_by_pod.items()))
    name = sha256(lines.encode()).hexdigest()[:12]
    made = moment_text(int(now))
    return {key: GatePlan(name, len(node_by_pod), node, made, gates_by_pod.get(key, (GATE,))) for key, node in node_by_pod.items()}


def written(plan: GatePlan, version: str = "") -> dict[str, Any]:
    """Return the patch that puts a plan on a pod; with a version it is refused if the pod has changed since."""
    known = {"resourceVersion": version} if version else {}
    return {"metadata": {**known, "annotations": {PLAN: msgspec.json.encode(plan).decode()}}}


# --- lifting -------------------------------------------------------------------------------------------------------------


def _on(term: Document, node: str) -> dict[str, Any]:
    return {**term, "matchFields": [*(term.get("matchFields") or ()), _field(node)]}


def _field(node: str) -> dict[str, Any]:
    return {"key": NODE_NAME, "operator": "In", "values": [node]}


def as_made(pod: Document) -> Document:
    """Return a pod as it was before its plan: with our gates, and free to go to other nodes."""
    plan = plan_of(pod)
    if plan is None:
        return pod
    annotations = {key: text for key, text in pod["metadata"]["annotations"].items() if key != PLAN}
    gates = [{"name": name} for name in dict.fromkeys([*gates_of(pod), *plan.gates])]
    affinity = _unpinned(pod["spec"].get("affinity") or {}, plan.node)
    spec = {**pod["spec"], "schedulingGates": gates, "affinity": affinity}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}, "spec": spec}


def _unpinned(affinity: Document, node: str) -> dict[str, Any]:
    """Return an affinity without the pin, and without the parts that are empty then."""
    nodes = dict(affinity.get("nodeAffinity") or {})
    required = nodes.pop(REQUIRED, None) or {}
    terms = [left for term in required.get("nodeSelectorTerms") or () if (left := _without_pin(term, node))]
    if terms:
        nodes[REQUIRED] = {"nodeSelectorTerms": terms}
    others = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
    return {**others, "nodeAffinity": nodes} if nodes else others


def _without_pin(term: Document, node: str) -> dict[str, Any]:
    fields = [field for field in term.get("matchFields") or () if field != _field(node)]
    return {**{key: value for key, value in term.items() if key != "matchFields"}, **({"matchFields": fields} if fields else {})}
