"""What evicting costs: a gang that needs room on full nodes, and queues far out of balance.

Timed is one cycle, from the snapshot to the decisions, by the clock of the processor. A row that leaves the gang without a
place is an error.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import process_time

from phalanx.bench.measure import peak_rss_bytes
from phalanx.bench.report import aligned, machine
from phalanx.bench.row_process import print_row, run_apart
from phalanx.config.builtin import catalogue_of
from phalanx.config.kai import read_kai_policy
from phalanx.config.volcano import read_policy
from phalanx.errors import PhalanxError
from phalanx.model.gang import Condition, Gang
from phalanx.model.node import Node
from phalanx.model.queue import Queue, QueueBounds
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.session.cycle import Catalogue, run_cycle
from phalanx.session.policy import Policy
from phalanx.state.cluster import ClusterState

GPU = "nvidia.com/gpu"
NOW = 1_000_000.0
MOST_SECONDS_PER_ROW = 600


@dataclass(frozen=True, slots=True)
class EvictRow:
    """What was measured."""

    scenario: str
    nodes: int
    running: int
    waiting: int
    seconds: float
    evictions: int
    placed: int
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class EvictScenario:
    """One row: how the cluster is built, which configuration decides, and how many tasks must get a place."""

    name: str
    nodes: int
    running: int
    waiting: int
    build: Callable[["EvictScenario"], ClusterState]
    config: dict[str, object]
    must_place: int
    profile: str = "volcano"

    def catalogue(self) -> Catalogue:
        """Return what the profile chooses from."""
        return catalogue_of(self.profile)

    def policy(self) -> Policy:
        """Return the configuration, read."""
        names = {"actions": list(self.catalogue().actions), "plugins": list(self.catalogue().plugins)}
        return read_kai_policy(self.config, **names) if self.profile == "kai" else read_policy(self.config, **names)


def measure(scenario: EvictScenario) -> EvictRow:
    """Run one row in this process."""
    state, policy = scenario.build(scenario), scenario.policy()
    gc.collect()
    started = process_time()
    decisions = run_cycle(state.snapshot(NOW), policy, scenario.catalogue())
    seconds = process_time() - started
    placed = len(decisions.pipelined) + len(decisions.binds)
    if placed < scenario.must_place:
        raise PhalanxError(f"{scenario.name}: {placed} of {scenario.must_place} tasks got a place")
    return EvictRow(
        scenario.name,
        scenario.nodes,
        scenario.running,
        scenario.waiting,
        seconds,
        len(decisions.evictions),
        placed,
        peak_rss_bytes(),
    )


def _full_nodes(scenario: EvictScenario) -> ClusterState:
    """Return nodes full of small pods, one gang each, and a gang of large pods that is more important."""
    state = ClusterState()
    state.put_queue(Queue("default"))
    state.put_priority("high", 1000)
    per_node = scenario.running // scenario.nodes
    for number in range(scenario.nodes):
        _put_node(state, number, {"cpu": per_node * 1000, "memory": 64 << 30, "pods": 110})
        _put_gang(state, f"run-{number}", {"cpu": 1000, "memory": 1 << 30}, [f"node-{number:05}"] * per_node, minimum=1)
    _put_gang(state, "urgent", {"cpu": 4000, "memory": 4 << 30}, [""] * scenario.waiting, minimum=scenario.waiting, priority="high")
    return state


def _out_of_balance(scenario: EvictScenario) -> ClusterState:
    """Return a cluster that one queue fills with single-GPU jobs while another has as many waiting."""
    state = ClusterState()
    total = scenario.nodes * 8
    deserved = {"cpu": total * 500, "memory": total << 30, GPU: total * 500}
    for name in ("root", "greedy", "patient"):
        state.put_queue(Queue(name, deserved={} if name == "root" else deserved))
    for number in range(scenario.nodes):
        _put_node(state, number, {"cpu": 64_000, "memory": 512 << 30, "pods": 110, GPU: 8000})
    for number in range(scenario.running):
        node = [f"node-{number % scenario.nodes:05}"]
        _put_gang(state, f"run-{number}", {"cpu": 1000, "memory": 1 << 30, GPU: 1000}, node, minimum=1, queue="greedy")
    for number in range(scenario.waiting):
        _put_gang(state, f"job-{number}", {"cpu": 1000, "memory": 1 << 30, GPU: 1000}, [""], minimum=1, queue="patient")
    return state


def _kai_out_of_balance(scenario: EvictScenario) -> ClusterState:
    """Return the same with KAI's queues and groups."""
    state = ClusterState()
    half = float(scenario.nodes * 4)
    for name, parent, quota in (("top", "", -1.0), ("greedy", "top", half), ("patient", "top", half)):
        state.put_queue(Queue(name, parent=parent, bounds=QueueBounds((-1.0, -1.0, quota), (-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))))
    for number in range(scenario.nodes):
        _put_node(state, number, {"cpu": 64_000, "memory": 512 << 30, "pods": 110, GPU: 8000})
    request = {"cpu": 1000, "memory": 1 << 30, GPU: 1000}
    for number in range(scenario.running):
        _put_gang(state, f"run-{number}", request, [f"node-{number % scenario.nodes:05}"], minimum=1, queue="greedy", dialect="kai")
    for number in range(scenario.waiting):
        _put_gang(state, f"job-{number}", request, [""], minimum=1, queue="patient", dialect="kai")
    return state


def _put_node(state: ClusterState, number: int, offered: dict[str, int]) -> None:
    name = f"node-{number:05}"
    state.put_node(Node(name, {"kubernetes.io/hostname": name}, allocatable=offered, reported=offered))


def _put_gang(
    state: ClusterState,
    name: str,
    request: dict[str, int],
    nodes: list[str],
    *,
    minimum: int,
    priority: str = "",
    queue: str = "default",
    dialect: str = "volcano",
) -> None:
    runs = bool(nodes[0])
    conditions = (Condition("Scheduled", "True"),) if runs else ()
    key = GangKey(f"bench/{name}")
    created = float(len(name)) + (0.0 if runs else 1000.0)
    gang = Gang(
        key,
        key,
        queue,
        minimum,
        priority_class=priority,
        created=created,
        phase="Running" if runs else "Inqueue",
        conditions=conditions,
        dialect=dialect,
    )
    state.put_gang(gang)
    scored = (request["cpu"], request["memory"])
    shape = Shape("bench", {"app": name}, {**request, "pods": 1}, scoring_request=scored, booked_request=scored)
    for number, node in enumerate(nodes):
        task = TaskKey(f"bench/{name}-worker-{number}")
        status = Status.RUNNING if runs else Status.PENDING
        state.put_task(Task(task, task, shape, key, "worker", status=status, node=node, created=created))


def _config(actions: str, first: list[dict[str, object]], second: list[dict[str, object]], **more: object) -> dict[str, object]:
    return {"actions": actions, "tiers": [{"plugins": first}, {"plugins": second}], **more}


def _named(*names: str) -> list[dict[str, object]]:
    return [{"name": name} for name in names]


_GUARDED: list[dict[str, object]] = [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]
_SCORED = _named("predicates", "nodeorder", "binpack")
_FEWEST = {"victims": "fewest"}
_CAPACITY: dict[str, object] = {"name": "capacity", "arguments": {"preemptive": "all-dimensions"}}


def scenarios() -> Iterator[EvictScenario]:
    """Return the rows of the suite."""
    gang = (500, 4000, 200, _full_nodes)
    plain = _named("priority", "gang", "conformance")
    yield EvictScenario("gang of 200 by preempt", *gang, _config("allocate, preempt", _GUARDED, _SCORED), 200)
    yield EvictScenario("gang of 200 by gangpreempt, bundles", *gang, _config("allocate, gangpreempt", plain, _SCORED), 200)
    fewest = {"configurations": [{"name": "gangpreempt", "arguments": _FEWEST}], "victimRule": "all-agree"}
    yield EvictScenario(
        "gang of 200 by gangpreempt, fewest victims", *gang, _config("allocate, gangpreempt", plain, _SCORED, **fewest), 200
    )
    aware = {"configurations": [{"name": "preempt", "arguments": {"enableTopologyAwarePreemption": True}}]}
    large = (5000, 40_000, 10, _full_nodes)
    yield EvictScenario("topology-aware dry runs", *large, _config("allocate, preempt", _GUARDED, _SCORED, **aware), 10)
    storm = (500, 4000, 4000, _out_of_balance)
    queues = [*_named("predicates"), _CAPACITY, *_named("nodeorder")]
    yield EvictScenario(
        "reclaim storm by reclaim", *storm, _config("allocate, reclaim", _named("priority", "conformance"), queues), 2000
    )
    fewest = {"configurations": [{"name": "gangreclaim", "arguments": _FEWEST}], "victimRule": "all-agree"}
    yield EvictScenario(
        "reclaim storm by gangreclaim, fewest victims", *storm, _config("allocate, gangreclaim", plain, queues, **fewest), 2000
    )

    everything: dict[str, object] = {
        "profile": "kai", "actions": "allocate, consolidation, reclaim, preempt, stalegangeviction",
    }  # fmt: skip
    kai = (500, 4000, 4000, _kai_out_of_balance)
    yield EvictScenario("reclaim storm by all actions of the profile kai", *kai, everything, 2000, "kai")


def run(scenario: EvictScenario) -> EvictRow:
    """Run one row in a process of its own, so that its peak memory is the row's."""
    return run_apart("phalanx.bench.evict", scenario.name, name=scenario.name, row=EvictRow, most_seconds=MOST_SECONDS_PER_ROW)


def table(rows: Sequence[EvictRow]) -> str:
    """Return the rows in columns."""
    lines = [("scenario", "nodes", "running", "waiting", "seconds", "evictions", "placed", "peak MiB"), *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(aligned(line, widths) for line in lines)


def _cells(row: EvictRow) -> tuple[str, ...]:
    numbers = (
        f"{row.nodes:,}",
        f"{row.running:,}",
        f"{row.waiting:,}",
        f"{row.seconds:.3f}",
        f"{row.evictions:,}",
        f"{row.placed:,}",
    )
    return (row.scenario, *numbers, f"{row.peak_rss_bytes / (1 << 20):,.0f}")


def section(rows: Sequence[EvictRow]) -> str:
    """Return the results as Markdown, with the command and the machine."""
    text = f"Written by `phalanx bench evict` on {datetime.now(UTC).date()}. Machine: {machine()}."
    return f"{text}\n\n```text\n{table(rows)}\n```\n"


if __name__ == "__main__":
    print_row(lambda: measure(next(scenario for scenario in scenarios() if scenario.name == sys.argv[1])))
