"""Changes of what a pod asks for, on pods that wait: each takes a pod and returns the changed one."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from phalanx.dialects.gates import REQUIRED
from phalanx.dialects.pods import PREEMPTABLE
from phalanx.model.kinds import PRIORITY, Document
from phalanx.model.resources import amount_of, quantity_text
from phalanx.whatif.changes.object_change import EFFECTS, NONE, ObjectChange, close_to, edited, part
from phalanx.whatif.trial_cluster import Edit, TrialCluster

TOLERATION = re.compile(r"(?P<key>[^=:]+)(?:=(?P<value>[^:]*))?(?::(?P<effect>\w+))?")
CONTAINERS, INIT_CONTAINERS = "containers", "initContainers"
PodEdit = Callable[[Document, ObjectChange], Document]
MOST_PRIORITY = 1_000_000_000
"""The highest value of a PriorityClass that users may create."""


def waits(pod: Document) -> bool:
    """Tell whether a pod has no node yet; what others ask for cannot change any more."""
    return not part(pod, "spec", "nodeName")


def _tolerations(pod: Document, change: ObjectChange) -> Document:
    """Tolerate one taint more: KEY=VALUE:EFFECT, KEY:EFFECT or KEY; everything for an asterisk, nothing for `none`."""
    own = part(pod, "spec", "tolerations") or []
    if change.value == "*":
        return edited(pod, "spec", "tolerations", to=[*own, {"operator": "Exists"}])
    if change.value == NONE:
        return edited(pod, "spec", "tolerations", to=None)
    found = TOLERATION.fullmatch(change.value)
    if found is None or (found["effect"] and found["effect"] not in EFFECTS):
        raise change.refuse(
            f"expected KEY=VALUE:EFFECT, KEY:EFFECT or KEY, such as 'dedicated=research:NoSchedule'; effects: {', '.join(EFFECTS)}"
        )
    rule = {"operator": "Exists"} if found["value"] is None else {"operator": "Equal", "value": found["value"]}
    effect = {"effect": found["effect"]} if found["effect"] else {}
    return edited(pod, "spec", "tolerations", to=[*own, {"key": found["key"], **rule, **effect}])


def _node_selector(pod: Document, change: ObjectChange) -> Document:
    if not change.key and change.value == NONE:
        return edited(pod, "spec", "nodeSelector", to=None)
    if not change.key:
        raise change.refuse("which label? write .nodeSelector.KEY=VALUE")
    return edited(pod, "spec", "nodeSelector", change.key, to=None if change.value == NONE else change.value)


def _dropped(*path: str) -> PodEdit:
    def drop(pod: Document, change: ObjectChange) -> Document:
        _refuse_all_but_none(change)
        return edited(pod, *path, to=None)

    return drop


def _refuse_all_but_none(change: ObjectChange) -> None:
    if change.value != NONE:
        raise change.refuse("it can only be dropped; write 'none'")


def _affinity(pod: Document, change: ObjectChange) -> Document:
    """Drop what is required of nodes or of other pods: all of it, or only one of the three kinds."""
    _refuse_all_but_none(change)
    kinds = ("nodeAffinity", "podAffinity", "podAntiAffinity")
    if change.key and change.key not in kinds:
        raise change.refuse(f"no kind of affinity {change.key!r}; {close_to(change.key, kinds, 'kinds')}")
    for kind in (change.key,) if change.key else kinds:
        if part(pod, "spec", "affinity", kind):
            pod = edited(pod, "spec", "affinity", kind, REQUIRED, to=None)
    return pod


def _host_port(pod: Document, change: ObjectChange) -> Document:
    _refuse_all_but_none(change)
    own = part(pod, "spec", CONTAINERS) or ()
    return edited(pod, "spec", CONTAINERS, to=[_without_host_ports(item) for item in own])


def _without_host_ports(container: Document) -> Document:
    if not container.get("ports"):
        return container
    ports = [{key: value for key, value in port.items() if key != "hostPort"} for port in container["ports"]]
    return {**container, "ports": [port for port in ports if port.get("containerPort")]}


def _scheduler(pod: Document, change: ObjectChange) -> Document:
    return edited(pod, "spec", "schedulerName", to=change.value)


def _preemption_policy(pod: Document, change: ObjectChange) -> Document:
    if change.value not in ("Never", "PreemptLowerPriority"):
        raise change.refuse("write 'Never' or 'PreemptLowerPriority'")
    return edited(pod, "spec", "preemptionPolicy", to=change.value)


def preemptable(pod: Document, change: ObjectChange) -> Document:
    """Let others take the place of a pod, or not; the same annotation says so on a group of Volcano."""
    return edited(pod, "metadata", "annotations", PREEMPTABLE, to=str(change.switch()).lower())


# --- requests ------------------------------------------------------------------------------------------------------------


def _requests(pod: Document, change: ObjectChange) -> Document:
    """Let the whole pod ask for an amount: of several containers the one that asks for most asks for less or more."""
    own = part(pod, "spec", CONTAINERS) or []
    held = [_asked(container, change.key) for container in own]
    wanted = change.quantity(quantity_text(change.key, sum(held)) if change.key else "0")
    amount = amount_of(change.key, wanted) if wanted is not None else 0
    largest = held.index(max(held, default=0)) if held else 0
    rest = sum(held) - (held[largest] if held else 0)
    if amount < rest:
        raise change.refuse(f"its other containers ask for {quantity_text(change.key, rest)} already")
    containers = [_asking(item, change.key, amount - rest) if number == largest else item for number, item in enumerate(own)]
    found = edited(pod, "spec", CONTAINERS, to=containers)
    return _with_smaller_parts(found, change.key, amount)


def _with_smaller_parts(pod: Document, name: str, amount: int) -> Document:
    """Let init containers, and the pod as a whole, ask for no more than that."""
    first = part(pod, "spec", INIT_CONTAINERS) or []
    if any(_asked(item, name) > amount for item in first):
        smaller = [_asking(item, name, min(_asked(item, name), amount)) for item in first]
        pod = edited(pod, "spec", INIT_CONTAINERS, to=smaller)
    if part(pod, "spec", "resources", "requests", name) is not None:
        pod = edited(pod, "spec", "resources", "requests", name, to=quantity_text(name, amount))
    return pod


def _asked(container: Document, name: str) -> int:
    return amount_of(name, part(container, "resources", "requests", name) or 0)


def _asking(container: Document, name: str, amount: int) -> dict[str, Any]:
    """Return a container with another request; a limit that would be below it, or of devices, goes along."""
    text = quantity_text(name, amount)
    found = edited(container, "resources", "requests", name, to=text)
    limit = part(container, "resources", "limits", name)
    is_bound = limit is not None and (amount_of(name, limit) < amount or amount_of(name, limit) == _asked(container, name))
    return edited(found, "resources", "limits", name, to=text) if is_bound else found


# --- priority ------------------------------------------------------------------------------------------------------------


def priority_class(change: ObjectChange, cluster: TrialCluster) -> tuple[Document, list[Edit]]:
    """Return the PriorityClass that a change means: by its name, or one with that value, which is made where there is none."""
    known = {str(item["metadata"]["name"]): item for item in cluster.all_of(PRIORITY)}
    if change.value in known:
        return known[change.value], []
    try:
        value = int(change.value)
    except ValueError:
        value = MOST_PRIORITY + 1
    if change.value.startswith("+") or abs(value) > MOST_PRIORITY:
        hint = close_to(change.value, known, "there are")
        raise change.refuse(f"there is no PriorityClass {change.value!r}; write a number up to {MOST_PRIORITY}, or a class; {hint}")
    same = sorted((item for item in known.values() if item.get("value") == value), key=lambda item: str(item["metadata"]["name"]))
    if same:
        return same[0], []
    made = {"apiVersion": PRIORITY.api_version, "kind": PRIORITY.kind, "metadata": {"name": f"priority-{value}"}, "value": value}
    return made, [Edit(None, made)]


def with_priority(pod: Document, chosen: Document) -> Document:
    """Return a pod of a PriorityClass; a class that says nothing of preemption leaves the pod's own policy."""
    found = edited(pod, "spec", "priorityClassName", to=chosen["metadata"]["name"])
    found = edited(found, "spec", "priority", to=chosen["value"])
    policy = chosen.get("preemptionPolicy")
    return edited(found, "spec", "preemptionPolicy", to=policy) if policy else found


POD_FIELDS: Mapping[str, tuple[str, PodEdit]] = {
    "tolerations": ("dedicated=research:NoSchedule", _tolerations),
    "nodeSelector": ("east", _node_selector),
    "affinity": (NONE, _affinity),
    "topologySpreadConstraints": (NONE, _dropped("spec", "topologySpreadConstraints")),
    "requests": ("4", _requests),
    "gates": (NONE, _dropped("spec", "schedulingGates")),
    "hostPort": (NONE, _host_port),
    "schedulerName": ("phalanx", _scheduler),
    "preemptionPolicy": ("PreemptLowerPriority", _preemption_policy),
}
"""Fields of pods that wait, each with an example of a value."""
