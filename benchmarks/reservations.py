"""What reservations cost: sessions on full nodes with a backlog, with and without the plugin `reservation`, in one run.

    python benchmarks/reservations.py                                1,000 nodes, 500 gangs that wait
    python benchmarks/reservations.py --nodes 2000 --waiting 1000
    python benchmarks/reservations.py --allocate                     without evictions, which cost far more

Every gang says how long it runs. A tenth of the nodes is half free, so that some gangs behind the first in line could go ahead and
others have to be held back. Timed is the processor time of a whole session that looks at everybody; sessions alternate and the
median of each counts. The last line is the ratio.
"""

import argparse
import gc
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import median
from time import process_time

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_text
from phalanx.model.gang import Gang
from phalanx.model.node import Node
from phalanx.model.queue import Queue
from phalanx.model.resources import CPU, GPU, MEMORY, PODS
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.session.cycle import run_cycle
from phalanx.session.policy import Policy
from phalanx.state.cluster import ClusterState

CONFIG = Path(__file__).resolve().parents[1] / "examples" / "reserved-start" / "volcano-scheduler.conf"
"""The profile phalanx with reserved starts."""
GIB = 1 << 30
NODE = {CPU: 64_000, MEMORY: 512 * GIB, GPU: 8_000, PODS: 110}
NOW = 1_000_000.0


def put(state: ClusterState, name: str, gpus: int, nodes: list[str], duration: int, number: int) -> None:
    """Enter a gang with a task per node; an empty one is a task that waits."""
    key = GangKey(f"ml/{name}")
    annotations = {"phalanx.dev/duration": f"{duration}s"}
    phase = "Running" if nodes[0] else "Inqueue"
    state.put_gang(
        Gang(
            key,
            queue=f"queue-{number % 4}",
            min_member=len(nodes),
            created=NOW - 9000 + number,
            phase=phase,
            annotations=annotations,
        )
    )
    request = {CPU: gpus * 1000, MEMORY: gpus * GIB, GPU: gpus * 1000, PODS: 1}
    shape = Shape(namespace="ml", request=request)
    for place, node in enumerate(nodes):
        status = Status.RUNNING if node else Status.PENDING
        task = Task(TaskKey(f"{key}-{place}"), f"{key}-{place}", shape, gang=key, node=node, status=status, started=NOW - 600)
        state.put_task(replace(task, created=NOW - 9000 + number))


def cluster(nodes: int, waiting: int) -> ClusterState:
    """Return full nodes, a tenth of them half full, and gangs of many sizes that wait."""
    state, random = ClusterState(), Random(7)
    names = [f"node-{number:05}" for number in range(nodes)]
    for name in names:
        state.put_node(Node(name, {"kubernetes.io/hostname": name}, allocatable=NODE, reported=NODE))
    state.put_queue(Queue("root"))
    for number in range(4):
        state.put_queue(Queue(f"queue-{number}"))
    for number in range(0, nodes, 4):
        gpus = 4 if number % 40 == 0 else 8
        put(state, f"run-{number}", gpus, names[number : number + 4], random.randrange(1200, 90_000), number)
    for number in range(waiting):
        tasks, gpus = random.choice(((nodes // 8, 8), (16, 8), (8, 8), (2, 4), (1, 2)))
        put(state, f"wait-{number:05}", gpus, [""] * tasks, random.randrange(300, 90_000), number)
    return state


def without(policy: Policy) -> Policy:
    """Return a policy without reservations."""
    return replace(policy, tiers=tuple(tuple(each for each in tier if each.name != "reservation") for tier in policy.tiers))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--waiting", type=int, default=500)
    parser.add_argument("--laps", type=int, default=7)
    parser.add_argument("--allocate", action="store_true", help="without the actions that evict")
    given = parser.parse_args()
    snapshot = cluster(given.nodes, given.waiting).snapshot(NOW)
    policy = policy_of_text(CONFIG.read_bytes(), str(CONFIG))
    policy = replace(policy, actions=("allocate",)) if given.allocate else policy
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    for _ in range(given.laps):
        for name, chosen in (("without", without(policy)), ("with", policy)):
            gc.collect()
            begun = process_time()
            decisions = run_cycle(snapshot, chosen, CATALOGUE)
            seconds[name].append(process_time() - begun)
            held = sum(len(each.held_back) for each in decisions.reservations)
            print(f"{name:8} {seconds[name][-1] * 1000:8.1f} ms, {len(decisions.binds)} binds, "
                  f"{len(decisions.evictions)} evictions, {len(decisions.reservations)} reserved, {held} held back")  # fmt: skip
    middle = {name: median(values) * 1000 for name, values in seconds.items()}
    ratio = middle["with"] / middle["without"]
    print(f"without {middle['without']:.1f} ms, with {middle['with']:.1f} ms: {ratio:.2f} times")


if __name__ == "__main__":
    main()
