"""How long `explain`, the search for what would start a gang, and `try` take in a large cluster, once it is loaded.

    python benchmarks/explain.py                               10,000 nodes, 50,000 pods; writes its section of RESULTS.md
    python benchmarks/explain.py --nodes 1000 --pods 5000      another size, printed only

Every node has 8 GPUs and runs pods of two queues; one half of the cluster is tainted. The waiting gangs lack different things:
whole nodes, a toleration, quota, members, a label. The exit status is 1 if one of them takes longer than allowed. The time of the
processor counts: the machine may be shared.
"""

import argparse
import gc
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

from phalanx.bench.results_page import write_section
from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.session.cycle import Profile
from phalanx.store.submission import submitted
from phalanx.whatif.search import search
from phalanx.whatif.submission_trial import try_submission
from phalanx.whatif.trial_cluster import TrialCluster

Document = dict[str, Any]
GPU, GROUP = "nvidia.com/gpu", "scheduling.k8s.io/group-name"
VOLCANO = "scheduling.volcano.sh/v1beta1"
MOST_EXPLAIN_SECONDS, MOST_SEARCH_SECONDS = 1.0, 5.0
GANG = 10
TOLERANT: dict[str, Any] = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
WAITING = 50
NODES, PODS = 10_000, 50_000
NOW = 1_800_000_000.0
PAGE = Path(__file__).with_name("RESULTS.md")


@dataclass(frozen=True, slots=True)
class Row:
    """A gang that waits: how long its explanation and the search took, and what was found."""

    lack: str
    explain_seconds: float
    search_seconds: float
    tried: int
    remedies: Sequence[str]

    @property
    def is_slow(self) -> bool:
        """Whether it took longer than allowed."""
        return self.explain_seconds > MOST_EXPLAIN_SECONDS or self.search_seconds > MOST_SEARCH_SECONDS

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        first = self.remedies[0].partition(" (--if")[0] if self.remedies else "-"
        return (
            self.lack,
            f"{self.explain_seconds:.2f}",
            f"{self.search_seconds:.2f}",
            str(self.tried),
            str(len(self.remedies)),
            first,
        )


def node(number: int) -> Document:
    """Return a node; every second one is tainted."""
    name = f"node-{number:05}"
    labels = {"kubernetes.io/hostname": name, "zone": f"zone-{number % 10}"}
    taints = [{"key": "dedicated", "value": "research", "effect": "NoSchedule"}] if number % 2 else []
    offered = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {"taints": taints},
        "status": {"allocatable": offered, "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


def group(name: str, members: int, queue: str, phase: str) -> Document:
    """Return a PodGroup."""
    status = {"phase": phase, "conditions": [{"type": "Scheduled", "status": "True"}] if phase == "Running" else []}
    return {
        "apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"namespace": "ml", "name": name, "uid": f"uid-{name}"},
        "spec": {"minMember": members, "queue": queue}, "status": status,
    }  # fmt: skip


def pod(name: str, gang: str, gpus: int, on: str = "", **spec: Any) -> Document:  # Any: fields of its spec
    """Return a pod, on a node or waiting."""
    meta = {"namespace": "ml", "name": name, "uid": f"uid-{name}", "labels": {"app": gang}, "annotations": {GROUP: gang}}
    requests = {"cpu": "4", "memory": "32Gi", GPU: str(gpus)}
    place = {"nodeName": on} if on else {}
    more = {"schedulerName": "phalanx", "containers": [{"name": "worker", "resources": {"requests": requests}}]}
    status = {"phase": "Running" if on else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**more, **place, **spec}, "status": status}


def running(nodes: int, pods: int) -> Iterator[Document]:
    """Yield gangs that run, five pods on a node, of which tainted nodes leave some GPUs free."""
    each = max(pods // nodes, 1)
    for number in range(0, pods, GANG):
        name = f"run-{number // GANG}"
        yield group(name, GANG, "blue" if number % (2 * GANG) else "green", "Running")
        for member in range(number, number + GANG):
            place = member // each % nodes
            gpus = 2 if member % each < 3 else 1
            tolerations = [{"key": "dedicated", "operator": "Exists"}]
            yield pod(
                f"{name}-{member}", name, gpus if place % 2 == 0 else min(gpus, 1), f"node-{place:05}", tolerations=tolerations
            )


def waiting() -> Iterator[tuple[str, list[Document]]]:
    """Yield gangs that wait, each with what it lacks."""
    kinds: tuple[tuple[str, int, dict[str, Any]], ...] = (
        ("whole nodes", 8, {}), ("a toleration", 3, {}), ("a label", 1, {**TOLERANT, "nodeSelector": {"zone": "nowhere"}}),
        ("members", 1, TOLERANT), ("quota", 3, TOLERANT),
    )  # fmt: skip
    for number in range(WAITING):
        lack, gpus, spec = kinds[number % len(kinds)]
        name, size = f"wait-{number}", 16
        there = size - 2 if lack == "members" else size
        queue = "small" if lack == "quota" else "blue"
        pods = [pod(f"{name}-{member}", name, gpus, **spec) for member in range(there)]
        yield lack, [group(name, size, queue, "Inqueue"), *pods]


def queues() -> list[Document]:
    """Return the queues."""
    capability = {"small": {GPU: "20"}}
    return [
        {
            "apiVersion": VOLCANO,
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1, "capability": capability.get(name)},
        }
        for name in ("blue", "green", "small")
    ]


def job() -> Document:
    """Return a PyTorchJob that has room."""
    worker = {"name": "pytorch", "image": "registry.example/train:1", "resources": {"limits": {"cpu": "4", GPU: "1"}}}
    template = {"spec": {"schedulerName": "phalanx", "containers": [worker], **TOLERANT}}
    replicas = {role: {"replicas": count, "template": template} for role, count in (("Master", 1), ("Worker", GANG))}
    return {
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "tried", "namespace": "ml"},
        "spec": {"pytorchReplicaSpecs": replicas},
    }  # fmt: skip


def measure_try(cluster: TrialCluster) -> Row:
    """Return how long it takes to say what becomes of a job; its explanation is among that."""
    began = process_time()
    submission = submitted([job()], cluster.everything(), now=NOW)
    found = try_submission(cluster, submission, clock=process_time, budget_seconds=0.0)
    return Row("nothing: a PyTorchJob, tried", process_time() - began, 0.0, 0, ["starts" if found.starts else "waits"])


def load(nodes: int, pods: int) -> tuple[TrialCluster, dict[str, str]]:
    """Return the cluster, and a waiting gang for each lack."""
    gangs = list(waiting())
    documents = [*queues(), *map(node, range(nodes)), *running(nodes, pods), *(item for _, items in gangs for item in items)]
    cluster, policy = ObjectCluster(), policy_of_profile("phalanx")
    for document in documents:
        cluster.put(document)
    found = {lack: f"ml/{items[0]['metadata']['name']}" for lack, items in reversed(gangs)}
    return TrialCluster(documents, cluster, Profile(policy, catalogue_of(policy.catalogue)), NOW), found


def measure(cluster: TrialCluster, gangs: Mapping[str, str]) -> Iterator[Row]:
    """Yield a row for each lack."""
    for lack, gang in gangs.items():
        began = process_time()
        trial = cluster.decide(traced=[gang])
        trial.explanation(gang)
        explained = process_time()
        found = search(cluster, gang, trial, clock=process_time, budget_seconds=MOST_SEARCH_SECONDS)
        seconds = process_time() - explained
        yield Row(lack, explained - began, seconds, found.tried, [remedy.text for remedy in found.remedies])


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the table."""
    head = ("the gang lacks", "explain, seconds", "search, seconds", "changes tried", "remedies", "the first remedy")
    for cells in (head, ("---", "--:", "--:", "--:", "--:", "---"), *(row.cells() for row in rows)):
        yield f"| {' | '.join(cells)} |"


def section(size: str, rows: Sequence[Row]) -> str:
    """Return the section of the page of results."""
    where = f"{platform.system()}, CPython {platform.python_version()}, {os.cpu_count()} cores, {datetime.now(UTC):%Y-%m-%d}"
    lines = "\n".join(table(rows))
    return f"""By `python benchmarks/explain.py`; {where}.

{size}.
Seconds of the processor once the cluster is loaded: for a session and the explanation of one gang, or for a job that is tried, at
most {MOST_EXPLAIN_SECONDS:g} is allowed; for the search for changes that would start it, at most {MOST_SEARCH_SECONDS:g}.

{lines}
"""


def main() -> int:
    """Measure every lack; the exit status is 1 if one takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES, metavar="N")
    parser.add_argument("--pods", type=int, default=PODS, metavar="N")
    asked = parser.parse_args()
    began = process_time()
    cluster, gangs = load(asked.nodes, asked.pods)
    cluster.decide()
    gc.freeze()  # as the commands do once they have read a cluster
    loaded = f"loaded in {process_time() - began:.0f} s"
    size = f"{asked.nodes:,} nodes, {asked.pods:,} running pods and {WAITING} waiting gangs, {loaded}"
    rows = [*measure(cluster, gangs), measure_try(cluster)]
    print(size, *table(rows), sep="\n")
    if (asked.nodes, asked.pods) == (NODES, PODS):
        write_section(PAGE, "explain", section(size, rows))
    return int(any(row.is_slow for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
