"""Clusters for the page: one with everything that a person may ask about, and one as large as the page has to bear."""

from collections.abc import Iterator
from typing import Any

from phalanx.model.moment import moment_text
from phalanx.testing import build
from phalanx.testing.build import Document

NOW = 1_800_000_000.0
ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
GPUS = 8


def at(seconds_ago: float) -> str:
    """Return a moment so long before now."""
    return moment_text(int(NOW - seconds_ago))


def nodes(count: int, *, racks: int, zones: int) -> list[Document]:
    """Return nodes with 8 GPUs each, divided equally."""
    return [
        build.node(
            f"node-{number:05}", gpus=GPUS, cpu=96, memory="1024Gi",
            labels={ZONE: f"zone-{number * zones // count}", RACK: f"rack-{number * racks // count:03}"},
        )
        for number in range(count)
    ]  # fmt: skip


def running(name: str, places: list[str], *, queue: str, ago: float = 7200, **asks: Any) -> list[Document]:
    """Return a gang that runs on these nodes, one pod each."""
    group, *pods = build.gang(name, tasks=len(places), queue=queue, **asks)
    group["metadata"]["creationTimestamp"] = at(ago + 120)
    group["status"] = {"phase": "Running", "conditions": [_condition("Scheduled", ago)]}
    for pod, node in zip(pods, places, strict=True):
        _come(pod, ago + 115)
        pod["spec"]["nodeName"] = node
        pod["status"] = {
            "phase": "Running", "startTime": at(ago - 5),
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(ago)}],
        }  # fmt: skip
    return [group, *pods]


def waiting(name: str, tasks: int, *, queue: str, ago: float = 1800, spec: Document | None = None, **more: Any) -> list[Document]:
    """Return a gang that waits; `more` are amounts, and `group` is what its group says besides."""
    extra = more.pop("group", {})
    group, *pods = build.gang(name, tasks=tasks, queue=queue, **more)
    group["metadata"]["creationTimestamp"] = at(ago)
    group["spec"] |= extra
    for pod in pods:
        _come(pod, ago - 5)
        pod["spec"] |= spec or {}
    return [group, *pods]


def _come(pod: Document, ago: float) -> None:
    pod["metadata"]["creationTimestamp"] = at(ago)
    pod["metadata"]["uid"] = f"uid-of-{pod['metadata']['name']}"


def _condition(kind: str, ago: float) -> Document:
    return {"type": kind, "status": "True", "reason": "Scheduled", "message": "", "lastTransitionTime": at(ago)}


def place(documents: list[Document], namespace: str) -> list[Document]:
    """Move gangs to a namespace."""
    for document in documents:
        document["metadata"]["namespace"] = namespace
    return documents


def lively() -> list[Document]:
    """Return a cluster of 48 nodes in 6 racks and 2 zones, with queues that lend, gangs that wait for different reasons, events."""
    names = [f"node-{number:05}" for number in range(48)]
    made = [
        *nodes(48, racks=6, zones=2),
        build.queue("research", weight=2), build.queue("production", weight=3), build.queue("batch", weight=1),
        build.queue("interactive", weight=2, capability={"nvidia.com/gpu": 16}),
        *place(running("bert", names[0:8], queue="research", gpus=8, cpu=16), "research"),
        *place(running("whisper", names[8:16], queue="research", gpus=8, cpu=16, ago=5400), "research"),
        *place(running("llama", names[16:24], queue="batch", gpus=8, cpu=16, ago=3000), "batch"),
        *place(running("tokenize", names[24:30], queue="batch", gpus=4, cpu=16, ago=900), "batch"),
        *place(running("serve", names[30:34], queue="production", gpus=6, cpu=16, ago=86_400), "production"),
        *place(waiting("mixtral", 24, queue="research", gpus=8, cpu=16, ago=4200), "research"),
        *place(waiting("eval", 2, queue="research", gpus=8, cpu=16, ago=1200), "research"),
        *place(waiting("pretrain", 4, queue="batch", gpus=8, cpu=200, ago=9000), "batch"),
        *place(waiting("vision", 2, queue="interactive", gpus=16, ago=600), "interactive"),
        *place(waiting("arm-build", 2, queue="batch", gpus=1, ago=300, spec={"nodeSelector": {"arch": "arm64"}}), "batch"),
    ]  # fmt: skip
    made[5]["spec"]["unschedulable"] = True
    made[45]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    return [*made, *_events()]


def _events() -> Iterator[Document]:
    texts = [("FailedScheduling", "Warning", 4100, "0 of 24 tasks fit"), ("FailedScheduling", "Warning", 60, "13 of 24 tasks fit")]
    for number, (reason, type_, ago, message) in enumerate(texts):
        yield {
            "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "research", "name": f"mixtral.{number}"},
            "involvedObject": {"kind": "PodGroup", "name": "mixtral", "namespace": "research"}, "reason": reason, "type": type_,
            "message": message, "lastTimestamp": at(ago), "count": number + 1, "reportingComponent": "phalanx",
        }  # fmt: skip


LEFT = range(1690, 1699)
"""Nodes of one rack that nobody uses in a large cluster."""


def vast(count: int = 10_000, gangs: int = 5_000, size: int = 8) -> list[Document]:
    """Return a large cluster in which half of the gangs run and half of them wait."""
    queues = [build.queue(f"team-{number}", weight=1 + number % 3) for number in range(10)]
    found: list[Document] = [*queues, *nodes(count, racks=max(count // 40, 1), zones=4)]
    used = 0
    for number in range(gangs):
        queue, name = f"team-{number % 10}", f"job-{number:05}"
        if number % 2:
            found += waiting(name, size, queue=queue, gpus=GPUS, cpu=200, ago=60 + number)
        else:
            numbers = [(used + task) // 3 for task in range(size)]
            places = [f"node-{(number + len(LEFT) * (number >= LEFT.start)) % count:05}" for number in numbers]
            used += size
            found += running(name, places, queue=queue, gpus=2, cpu=4, ago=60 + number)
    return found


LONG_QUEUE, LONG_SPACE, LONG_GANG = "-".join(["queue"] * 42), "n" * 63, "x" * 250
"""Names as long as Kubernetes allows, of one word and of many."""


def long_names() -> list[Document]:
    """Return a gang that waits and whose name, namespace, queue and nodes are as long as they may be."""
    names = [f"{number}{'.node' * 49}" for number in range(3)]
    made = [build.node(name, gpus=GPUS, labels={RACK: "r" * 63}) for name in names]
    return [build.queue(LONG_QUEUE), *made, *place(waiting(LONG_GANG, 5, queue=LONG_QUEUE, gpus=GPUS), LONG_SPACE)]
