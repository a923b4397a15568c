"""Random clusters whose pods look at other pods: affinity, anti-affinity and spread of every kind. A seed repeats a cluster."""

from collections.abc import Sequence
from random import Random
from typing import Any

from phalanx.testing import build
from phalanx.testing.build import Document

REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
KEYS = (HOST, HOST, ZONE, ZONE, "rack", "nowhere")
APPS = ("web", "db", "cache")
MI = 1 << 20


def objects(chance: Random) -> list[Document]:
    """Return nodes, some without some labels, pods that run or leave, and gangs of tasks that are alike."""
    nodes = [_node(chance, number) for number in range(chance.randint(2, 14))]
    names = [node["metadata"]["name"] for node in nodes]
    found = [*nodes, build.queue("default"), *_namespaces(chance), *_services(chance)]
    for number in range(chance.randint(0, 6)):
        found.append(_running(chance, f"old-{number}", names))
    for number in range(chance.randint(1, 4)):
        found += _gang(chance, f"gang-{number}", names)
    return found


def policy_weights(chance: Random) -> dict[str, int]:
    """Return weights of scores, so that now room, now other pods decide."""
    names = ("leastrequested", "balancedresource", "nodeaffinity", "podaffinity", "tainttoleration", "podtopologyspread")
    return {f"{name}.weight": chance.choice((0, 1, 1, 5)) for name in names if chance.random() < 0.5}


def terms(chance: Random, app: str) -> Document:
    """Return parts of a pod's spec: up to three ways to look at other pods."""
    spec: Document = {}
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        if chance.random() < 0.35:
            spec.setdefault("topologySpreadConstraints", []).append(_spread(chance, app))
        else:
            kind = spec.setdefault("affinity", {}).setdefault(chance.choice(("podAffinity", "podAntiAffinity")), {})
            _add_term(chance, kind, _term(chance, app))
    return spec


def _add_term(chance: Random, kind: Document, term: Document) -> None:
    if chance.random() < 0.6:
        kind.setdefault(REQUIRED, []).append(term)
    else:
        kind.setdefault(PREFERRED, []).append({"weight": chance.choice((1, 10, 100)), "podAffinityTerm": term})


def _term(chance: Random, app: str) -> Document:
    term: Document = {"topologyKey": chance.choice(KEYS), "labelSelector": _selector(chance, app)}
    match chance.randint(0, 7):
        case 0:
            term["namespaces"] = chance.choice((["other"], ["default", "other"]))
        case 1:
            term["namespaceSelector"] = chance.choice(({}, {"matchLabels": {"team": "a"}}, _expression("team", "DoesNotExist")))
        case 2:
            del term["labelSelector"]
    return term


def _spread(chance: Random, app: str) -> Document:
    constraint: Document = {
        "topologyKey": chance.choice(KEYS), "maxSkew": chance.randint(1, 4), "labelSelector": _selector(chance, app),
        "whenUnsatisfiable": chance.choice(("DoNotSchedule", "ScheduleAnyway")),
    }  # fmt: skip
    if chance.random() < 0.2 and constraint["whenUnsatisfiable"] == "DoNotSchedule":
        constraint["minDomains"] = chance.randint(1, 4)
    if chance.random() < 0.3:
        constraint["nodeTaintsPolicy"] = "Honor"
    if chance.random() < 0.3:
        constraint["nodeAffinityPolicy"] = "Ignore"
    return constraint


def _selector(chance: Random, app: str) -> Document:
    chosen = app if chance.random() < 0.7 else chance.choice(APPS)
    match chance.randint(0, 9):
        case 0:
            return {}
        case 1:
            return _expression("app", "NotIn", chosen)
        case 2:
            return _expression("app", "In", *APPS[:2])
        case 3:
            return _expression("app", "Exists")
    return {"matchLabels": {"app": chosen}}


def _expression(key: str, operator: str, *values: str) -> Document:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


def _node(chance: Random, number: int) -> Document:
    name = f"n{number:02}"
    labels = {HOST: name} if chance.random() < 0.9 else {}
    if chance.random() < 0.05:
        labels[HOST] = "n00"
    if chance.random() < 0.85:
        labels[ZONE] = chance.choice("abc")
    if chance.random() < 0.7:
        labels["rack"] = chance.choice("pqrs")
    taints = [{"key": "noisy", "effect": "PreferNoSchedule"}] if chance.random() < 0.15 else []
    taints += [{"key": "closed", "effect": "NoSchedule"}] if chance.random() < 0.1 else []
    return build.node(
        name, labels=labels, spec={"taints": taints}, cpu=chance.choice((2, 4, 4, 8)),
        memory=chance.choice((2000, 8000)) * MI, pods=chance.choice((3, 110, 110)),
    )  # fmt: skip


def _namespaces(chance: Random) -> list[Document]:
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        for name, labels in (("default", {"team": "a"}), ("other", {"team": "b"}))
        if chance.random() < 0.7
    ]


def _services(chance: Random) -> list[Document]:
    metadata = {"namespace": "default", "name": "service"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": {"app": chance.choice(APPS)}}}
    return [service] if chance.random() < 0.2 else []


def _running(chance: Random, name: str, nodes: Sequence[str]) -> Document:
    app, namespace = chance.choice(APPS), chance.choice(("default", "default", "other"))
    spec = terms(chance, app) if chance.random() < 0.5 else {}
    pod = build.pod(f"{namespace}/{name}", on=chance.choice(nodes), spec=spec, cpu="500m", memory=100 * MI)
    pod["metadata"]["labels"] = {"app": app}
    if chance.random() < 0.3:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    return pod


def _gang(chance: Random, name: str, nodes: Sequence[str]) -> list[Document]:
    kinds = [_kind(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    roles = ["worker", "chief"] if chance.random() < 0.3 else [chance.choice(("", "worker", "worker"))]
    pods = []
    for number in range(chance.randint(1, 14)):
        labels, spec, asks = chance.choice(kinds) if chance.random() < 0.2 else kinds[0]
        pod = build.in_group(name, build.pod(f"{name}-{number:02}", spec=spec, **asks), role=chance.choice(roles))
        pod["metadata"]["labels"] = labels
        if chance.random() < 0.05:
            pod["spec"]["nodeName"], pod["status"] = chance.choice(nodes), {"phase": "Running"}
        elif chance.random() < 0.03:
            pod["status"]["nominatedNodeName"] = chance.choice(nodes)
        pods.append(pod)
    minimum = len(pods) if chance.random() < 0.6 else chance.randint(1, len(pods))
    spec = {"minTaskMember": {role: chance.randint(0, 3) for role in roles if role}} if chance.random() < 0.2 else {}
    return [build.pod_group(name, min_member=minimum, phase=chance.choice(("Pending", "Inqueue")), **spec), *pods]


def _kind(chance: Random) -> tuple[Document, Document, dict[str, Any]]:
    """Return labels, parts of a spec, and a request."""
    app = chance.choice(APPS)
    spec = terms(chance, app)
    if chance.random() < 0.2:
        spec["tolerations"] = [{"key": "closed", "operator": "Exists"}]
    if chance.random() < 0.15:
        spec["nodeSelector"] = {ZONE: chance.choice("abc")}
    if chance.random() < 0.15:
        expressions = [{"key": "rack", "operator": "In", "values": [chance.choice("pq")]}]
        preferred = [{"weight": 10, "preference": {"matchExpressions": expressions}}]
        spec.setdefault("affinity", {})["nodeAffinity"] = {PREFERRED: preferred}
    return {"app": app}, spec, {"cpu": chance.choice(("250m", "500m", "1")), "memory": chance.choice((100, 500)) * MI}
