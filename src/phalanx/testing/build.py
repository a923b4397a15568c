"""Clusters, gangs and cycles in a few words, for tests and examples.

    cluster = build.cluster(nodes=3, gpus=1)
    cluster.submit(build.gang("train", tasks=4, min_member=4, gpus=1))
    decisions = cluster.run_cycle()
    assert decisions.binds == []

Everything is built as Kubernetes objects and read as such, so what holds here holds for the real thing. Names without a
namespace are in `default`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from phalanx.config.builtin import CATALOGUE, catalogue_of
from phalanx.config.volcano import read_policy
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.group_references import GROUP
from phalanx.dialects.pods import ROLE
from phalanx.explain.answer import answer
from phalanx.model.task import GangKey, TaskKey
from phalanx.session.cycle import run_cycle
from phalanx.session.decision import Decisions
from phalanx.session.policy import Policy
from phalanx.session.shards import seen_by
from phalanx.state.quorum import MINIMA, minima_text

Document: TypeAlias = dict[str, Any]  # a Kubernetes object: any JSON
Quantity: TypeAlias = str | int

TIERS = (
    ("priority", "gang", "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"),
)
ACTIONS = "enqueue, allocate, backfill"
VOLCANO = "scheduling.volcano.sh/v1beta1"
LONG_NAMES = {"gpus": "nvidia.com/gpu"}


def policy(tiers: Iterable[Iterable[str | Mapping[str, Any]]] = TIERS, actions: str = ACTIONS, **more: Any) -> Policy:
    """Return a policy; a plugin is a name, or a mapping with its switches and arguments as in a configuration file."""
    entries = [{"plugins": [{"name": entry} if isinstance(entry, str) else dict(entry) for entry in tier]} for tier in tiers]
    document = {"actions": actions, "tiers": entries, **more}
    return read_policy(document, actions=list(CATALOGUE.actions), plugins=list(CATALOGUE.plugins))


def resources(amounts: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Return a resource list; `gpus` is short for ``nvidia.com/gpu``."""
    return {LONG_NAMES.get(name, name): amount for name, amount in amounts.items()}


def node(name: str, *, labels: Mapping[str, str] | None = None, spec: Document | None = None, **offers: Quantity) -> Document:
    """Return a node that offers this; 8 cpu, 32Gi and 110 pods where nothing is said."""
    document = _node(name, offers)
    document["metadata"]["labels"].update(labels or {})
    document["spec"].update(spec or {})
    return document


def _node(name: str, offers: Mapping[str, Quantity]) -> Document:
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {},
        "status": {"allocatable": resources({"cpu": 8, "memory": "32Gi", "pods": 110, **offers})},
    }  # fmt: skip


def pod(name: str, *, group: str = "", on: str = "", spec: Document | None = None, **asks: Quantity) -> Document:
    """Return a pod that asks for this; it runs if `on` names a node. `spec` adds to its spec, or replaces parts of it."""
    document = _pod(name, group, asks)
    document["spec"].update(spec or {})
    if on:
        document["spec"]["nodeName"] = on
        document["status"] = {"phase": "Running"}
    return document


def _pod(name: str, group: str, asks: Mapping[str, Quantity]) -> Document:
    namespace, _, short = _long(name).partition("/")
    annotations = {GROUP: group} if group else {}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": short, "uid": name, "labels": {}, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "resources": {"requests": resources(asks)}}]}, "status": {"phase": "Pending"},
    }  # fmt: skip


def pod_group(name: str, *, min_member: int = 1, phase: str = "Pending", **spec: Any) -> Document:
    """Return a PodGroup; `spec` holds further fields by their names in the API, such as ``minResources``."""
    return {
        "apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"minMember": min_member, "queue": "default", **spec}, "status": {"phase": phase},
    }  # fmt: skip


def gang(name: str, *, tasks: int = 1, min_member: int | None = None, queue: str = "default", **asks: Quantity) -> list[Document]:
    """Return a PodGroup and its pods, called ``NAME-0``, ``NAME-1`` and so on; all of them are needed by default."""
    pods = [_pod(f"{name}-{number}", name, asks) for number in range(tasks)]
    return [pod_group(name, min_member=tasks if min_member is None else min_member, queue=queue), *pods]


def in_group(group: str, pod: Document, *, role: str = "") -> Document:
    """Make a pod a member of a gang, with a role if one is given."""
    pod["metadata"]["annotations"] = {**pod["metadata"]["annotations"], GROUP: group, **({ROLE: role} if role else {})}
    return pod


def bound_for(group: Document, *pods: Document) -> list[Document]:
    """Return a group and its pods; those that have a node say that they were bound when the group needed what it needs now."""
    cluster = ObjectCluster()
    cluster.put(group)
    (found,) = cluster.snapshot(0.0).gangs.values()
    for pod in (pod for pod in pods if pod["spec"].get("nodeName")):
        pod["metadata"].setdefault("annotations", {})[MINIMA] = minima_text(found)
    return [group, *pods]


def queue(name: str, *, weight: int = 1, **spec: Any) -> Document:
    """Return an open queue; `spec` holds further fields by their names in the API, such as ``capability``."""
    return {
        "apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": name, "uid": name}, "spec": {"weight": weight, **spec},
        "status": {"state": "Open"},
    }  # fmt: skip


def hypernode(name: str, *, tier: int, members: Sequence[str], of: str = "Node", tier_name: str = "") -> Document:
    """Return a HyperNode over nodes, or over smaller HyperNodes with ``of="HyperNode"``."""
    lines = [{"type": of, "selector": {"exactMatch": {"name": member}}} for member in members]
    spec = {"tier": tier, "tierName": tier_name, "members": lines}
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one cycle decided."""

    decisions: Decisions
    answer: Mapping[str, Any]
    """The same as `phalanx schedule` answers."""

    @property
    def binds(self) -> list[tuple[str, str]]:
        """Pods and the nodes they are bound to, in the order of their keys."""
        return [(_short(key), node) for key, node in self.answer["binds"].items()]

    @property
    def pipelined(self) -> list[tuple[str, str]]:
        """Pods and the nodes they are pipelined onto."""
        return [(_short(key), node) for key, node in self.answer["pipelined"].items()]

    def why(self, gang: str) -> str:
        """Return why a gang waits; empty when it does not."""
        return str(self._group(gang)["why"])

    def phase(self, gang: str) -> str:
        """Return the phase of a gang's group after the cycle."""
        return str(self._group(gang)["phase"])

    def condition(self, gang: str, kind: str) -> str | None:
        """Return the message of a condition of the group, or None when it has no such condition."""
        return next((str(entry["message"]) for entry in self._group(gang)["conditions"] if entry["type"] == kind), None)

    def status(self, pod: str) -> str:
        """Return the status of a pod in the session."""
        return str(self.answer["tasks"][_long(pod)]["status"])

    def _group(self, gang: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.answer["groups"][_long(gang)]
        return found


class Cluster:
    """A cluster to submit to and to run cycles on. Decisions are not carried out until `carry_out`."""

    def __init__(self, policy: Policy) -> None:
        """Start with the queues `default` and `root`."""
        self.policy = policy
        self.objects = ObjectCluster(attach=policy.attach_rules)
        self._documents: dict[tuple[str, str], Document] = {}
        self._last: Cycle | None = None

    def submit(self, *parts: Document | Iterable[Document]) -> "Cluster":
        """Add objects, or replace those of the same name."""
        for part in parts:
            for document in [part] if isinstance(part, dict) else part:
                if not self.objects.put(document):
                    raise ValueError(f"{document.get('kind')}: not a kind that Phalanx reads")
                self._documents[document["kind"], _key(document)] = document
        return self

    def remove(self, kind: str, name: str) -> "Cluster":
        """Take an object away."""
        self.objects.remove(self._documents.pop((kind, name if (kind, name) in self._documents else _long(name))))
        return self

    def document(self, kind: str, key: str) -> Document:
        """Return an object as it was last submitted."""
        return self._documents[kind, key]

    def run_cycle(self, *, now: float = 0.0, reserved: tuple[GangKey, ...] = ()) -> Cycle:
        """Decide one cycle; `reserved` had a reserved start in the one before."""
        snapshot = seen_by(self.policy, replace(self.objects.snapshot(now), reserved=reserved))
        decisions = run_cycle(snapshot, self.policy, catalogue_of(self.policy.catalogue))
        self._last = Cycle(decisions, answer(snapshot, decisions))
        return self._last

    def why(self, gang: str) -> str:
        """Return why a gang waited in the last cycle."""
        assert self._last is not None, "run a cycle first"
        return self._last.why(gang)

    def carry_out(self, cycle: Cycle) -> "Cluster":
        """Let bound pods run, evicted ones go, and groups have their new phase."""
        for key, node in cycle.answer["binds"].items():
            document = _annotated(self._documents["Pod", key], cycle.decisions.annotations.get(TaskKey(key), {}))
            self.submit({**document, "spec": {**document["spec"], "nodeName": node}, "status": {"phase": "Running"}})
        for key in cycle.answer["evictions"]:
            self.remove("Pod", key)
        for key, group in cycle.answer["groups"].items():
            status = {"phase": group["phase"], "conditions": group["conditions"]}
            self.submit({**_annotated(self._documents["PodGroup", key], group.get("annotations", {})), "status": status})
        return self


def _annotated(document: Document, texts: Mapping[str, str | None]) -> Document:
    """Return an object with annotations written, and with None removed."""
    meta = document["metadata"]
    annotations = {**meta.get("annotations", {}), **texts}
    kept = {key: text for key, text in annotations.items() if text is not None}
    return {**document, "metadata": {**meta, "annotations": kept}}


def cluster(*, nodes: int = 3, policy: Policy | None = None, **offers: Quantity) -> Cluster:
    """Return a cluster of equal nodes, called ``node-0``, ``node-1`` and so on."""
    found = Cluster(policy or _DEFAULT)
    return found.submit(_node(f"node-{number}", offers) for number in range(nodes))


def _key(document: Document) -> str:
    meta = document["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def _short(key: str) -> str:
    return key.removeprefix("default/")


def _long(name: str) -> str:
    return name if "/" in name else f"default/{name}"


_DEFAULT = policy()
