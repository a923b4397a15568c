"""How long `explain` and the search for what would start a gang take in a large cluster, once it is loaded.

    python benchmarks/explain.py
    python benchmarks/explain.py --nodes 1000 --pods 5000

Every node has 8 GPUs and runs pods of two queues; one half of the cluster is tainted. The waiting gangs lack different things:
whole nodes, a toleration, quota, members, a label. The exit status is
1 if one of them takes longer than allowed. The time of the processor counts: the machine may be shared.
"""

import argparse
import gc
from collections.abc import Iterator
from time import process_time
from typing import Any

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.session.cycle import Profile
from phalanx.whatif.search import search
from phalanx.whatif.trial_cluster import TrialCluster

Document = dict[str, Any]
GPU, GROUP = "nvidia.com/gpu", "scheduling.k8s.io/group-name"
VOLCANO = "scheduling.volcano.sh/v1beta1"
MOST_EXPLAIN_SECONDS, MOST_SEARCH_SECONDS = 1.0, 5.0
GANG = 10
TOLERANT: dict[str, Any] = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
WAITING = 50


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


def load(nodes: int, pods: int) -> tuple[TrialCluster, dict[str, str]]:
    """Return the cluster, and a waiting gang for each lack."""
    gangs = list(waiting())
    documents = [*queues(), *map(node, range(nodes)), *running(nodes, pods), *(item for _, items in gangs for item in items)]
    cluster, policy = ObjectCluster(), policy_of_profile("phalanx")
    for document in documents:
        cluster.put(document)
    found = {lack: f"ml/{items[0]['metadata']['name']}" for lack, items in reversed(gangs)}
    return TrialCluster(documents, cluster, Profile(policy, catalogue_of(policy.catalogue)), 1_800_000_000.0), found


def main() -> int:
    """Measure every lack; the exit status is 1 if one takes too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000, metavar="N")
    parser.add_argument("--pods", type=int, default=50_000, metavar="N")
    asked = parser.parse_args()
    began = process_time()
    cluster, gangs = load(asked.nodes, asked.pods)
    cluster.decide()
    gc.freeze()  # as the commands do once they have read a cluster
    print(f"{asked.nodes:,} nodes, {asked.pods:,} running pods, {WAITING} waiting gangs; loaded in {process_time() - began:.1f} s")
    print(f"{'lack':<14} {'explain':>9} {'search':>9}  sessions  found")
    is_slow = False
    for lack, gang in gangs.items():
        began = process_time()
        trial = cluster.decide(traced=[gang])
        trial.explanation(gang)
        explained = process_time()
        found = search(cluster, gang, trial, clock=process_time, budget_seconds=MOST_SEARCH_SECONDS)
        ended = process_time()
        is_slow |= explained - began > MOST_EXPLAIN_SECONDS or ended - explained > MOST_SEARCH_SECONDS
        first = found.remedies[0].text if found.remedies else "nothing"
        print(
            f"{lack:<14} {explained - began:>7.2f} s {ended - explained:>7.2f} s  {found.tried:>8}  {len(found.remedies)}: {first}"
        )
    return int(is_slow)


if __name__ == "__main__":
    raise SystemExit(main())
