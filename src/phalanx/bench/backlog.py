"""What a backlog costs: gangs of many sizes that wait on full nodes, and sessions in which none of them can be helped.

Timed, by the clock of the processor, is what the session loop does with one session: events, snapshot, leaving out gangs that no
session can help, and the cycle. The first session looks at everybody. After it nothing changes, then a gang arrives that fits, then
one ends. A row is an error in which somebody starts who should not, or the other way round.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median
from time import process_time

import msgspec

from phalanx.bench.measure import peak_rss_bytes
from phalanx.bench.report import aligned, machine
from phalanx.bench.row_process import print_row, run_apart
from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.errors import PhalanxError
from phalanx.model.gang import Condition, Gang
from phalanx.model.node import Node
from phalanx.model.queue import Queue, QueueBounds
from phalanx.model.resources import CPU, GPU, MEMORY, PODS
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.scheduling.unschedulable import UnschedulableGangs
from phalanx.session.cycle import Decider
from phalanx.session.decision import Decisions
from phalanx.state.cluster import ClusterState

GIB = 1 << 30
NODE = {CPU: 64_000, MEMORY: 512 * GIB, GPU: 8_000, PODS: 110}
NOW, BETWEEN_SECONDS = 1_000_000.0, 1.0
QUEUES, NODES_PER_GANG, LAPS = 4, 4, 5
SMALL_PER_NODE = 34
"""Pods without GPUs that run on every node of the rows that have some: 35 pods a node with the one that has the GPUs."""
LONGEST_WAIT = 60.0
CAME_SECONDS = 7200.0
"""Before the first session the first gang came: no gang has waited for so long that nodes would be drained for it."""
MOST_SECONDS_PER_ROW = 1800


@dataclass(frozen=True, slots=True)
class BacklogScenario:
    """One row."""

    profile: str
    nodes: int
    waiting: int
    has_small: bool = False
    """Many small pods run besides the gangs that hold the GPUs."""
    large_every: int = 4
    """One of so many waiting gangs is large and important: it needs an eighth of all nodes. Large clusters have fewer of them."""

    @property
    def name(self) -> str:
        """What the row is called."""
        return f"{self.profile}, {self.waiting:,} waiting"

    @property
    def pods(self) -> int:
        """How many pods run."""
        return self.nodes * (1 + SMALL_PER_NODE * self.has_small)


@dataclass(frozen=True, slots=True)
class BacklogRow:
    """What was measured, in seconds; medians but for the first session."""

    scenario: str
    nodes: int
    pods: int
    waiting: int
    first: float
    unchanged: float
    arrival: float
    end: float | None
    """None where it is not measured: the searches of profile kai for whom to move take minutes then."""
    peak_rss_bytes: int


class _Cluster:
    """Full nodes, and gangs that wait for what others hold."""

    def __init__(self, scenario: BacklogScenario) -> None:
        self._scenario, self.state = scenario, ClusterState()
        self._dialect = "kai" if scenario.profile == "kai" else "volcano"
        self._put_queues()
        self.state.put_priority("low", 10)
        self.state.put_priority("normal", 100)
        for number in range(scenario.nodes):
            name = _node_name(number)
            labels = {"kubernetes.io/hostname": name}
            self.state.put_node(Node(name, labels, allocatable=NODE, reported=NODE))
        for number in range(scenario.nodes // NODES_PER_GANG):
            self._put_running(number)
        for number in range(scenario.waiting):
            self._put_waiting(number)

    def _put_queues(self) -> None:
        gpus = self._scenario.nodes * 8 / QUEUES
        free = (-1.0, -1.0, -1.0)
        self.state.put_queue(Queue("root", bounds=QueueBounds(free, free, (1.0, 1.0, 1.0)) if self._dialect == "kai" else None))
        for number in range(QUEUES):
            bounds = QueueBounds((-1.0, -1.0, gpus), free, (1.0, 1.0, 1.0)) if self._dialect == "kai" else None
            deserved = {CPU: int(gpus * 8000), MEMORY: int(gpus) * 64 * GIB, GPU: int(gpus * 1000)}
            self.state.put_queue(Queue(f"queue-{number}", parent="root" if bounds else "", bounds=bounds, deserved=deserved))

    def _put_running(self, number: int) -> None:
        """Fill some nodes; a tenth of the gangs is less important than most that wait."""
        nodes = [_node_name(number * NODES_PER_GANG + place) for place in range(NODES_PER_GANG)]
        self.put(f"run-{number}", 8, nodes, "low" if number % 10 == 0 else "normal", number)
        if self._scenario.has_small:
            self.put(f"small-{number}", 0, nodes * SMALL_PER_NODE, "normal", number)

    def _put_waiting(self, number: int) -> None:
        """Let a gang wait: important ones need more than all that are less important hold, others are not important."""
        least = self._scenario.nodes // 8
        is_large = number % self._scenario.large_every == 0
        size, gpus, priority = (least + number % 48, 8, "normal") if is_large else (1 + number % 16, 1 << number % 4, "low")
        self.put(f"wait-{number}", gpus, [""] * size, priority, number // 4)

    def put(self, name: str, gpus: int, nodes: Sequence[str], priority: str, number: int) -> None:
        """Let a gang be there, running on nodes or waiting."""
        key, runs, created = GangKey(f"bench/{name}"), bool(nodes[0]), NOW - CAME_SECONDS + number
        self.state.put_gang(
            Gang(
                key, key, f"queue-{number % QUEUES}", len(nodes), priority_class=priority, created=created,
                phase="Running" if runs else "Inqueue", conditions=(Condition("Scheduled", "True"),) if runs else (),
                dialect=self._dialect,
            )
        )  # fmt: skip
        shape = _shape(name, gpus)
        for member, node in enumerate(nodes):
            task, status = TaskKey(f"{key}-{member}"), Status.RUNNING if runs else Status.PENDING
            self.state.put_task(
                Task(task, task, shape, key, self._dialect, status=status, node=node, created=created, started=created)
            )

    def end(self, name: str) -> None:
        """Let a gang that runs be gone."""
        key = GangKey(f"bench/{name}")
        for task in list(self.state.members(key)):
            self.state.drop_task(task)
        self.state.drop_gang(key)

    def start(self, decisions: Decisions) -> None:
        """Let pods run that were bound."""
        for key, node in decisions.binds.items():
            task = self.state.task(key)
            assert task is not None, "only pods that are there are bound"
            self.state.put_task(replace(task, status=Status.RUNNING, node=node))
            assert task.gang is not None, "every pod here is in a gang"
            gang = self.state.gang(task.gang)
            assert gang is not None, "and the gang is there"
            self.state.put_gang(replace(gang, phase="Running", conditions=(Condition("Scheduled", "True"),)))


def _node_name(number: int) -> str:
    return f"node-{number:05}"


def _shape(name: str, gpus: int) -> Shape:
    request = {CPU: gpus * 4_000 or 100, MEMORY: gpus * 16 * GIB or GIB, PODS: 1, **({GPU: gpus * 1000} if gpus else {})}
    scored = (request[CPU], request[MEMORY])
    return Shape("bench", {"app": name}, request, scoring_request=scored, booked_request=scored)


class _Sessions:
    """Sessions as the loop holds them."""

    def __init__(self, scenario: BacklogScenario, cluster: _Cluster) -> None:
        self._cluster, self._policy = cluster, policy_of_profile(scenario.profile)
        self._catalogue = catalogue_of("kai" if scenario.profile == "kai" else "volcano")
        self._decider, self._unschedulable = Decider(), UnschedulableGangs(LONGEST_WAIT)
        self._now = NOW

    def hold(self, events: Callable[[], None] = lambda: None) -> tuple[float, Decisions]:
        """Hold one after some events; return how long both took, and what was decided."""
        self._now += BETWEEN_SECONDS
        begun = process_time()
        events()
        snapshot = self._cluster.state.snapshot(self._now)
        if not self._policy.counts_all_gangs:
            snapshot = self._unschedulable.without(snapshot)
        decisions = self._decider.decide(snapshot, self._policy, self._catalogue)
        if not self._policy.counts_all_gangs:
            self._unschedulable.note(snapshot, decisions)
        return process_time() - begun, decisions


def measure(scenario: BacklogScenario) -> BacklogRow:
    """Run one row in this process."""
    cluster = _Cluster(scenario)
    sessions = _Sessions(scenario, cluster)
    gc.collect()
    gc.freeze()  # as the process does on a cluster: see live/garbage.py
    first = _timed(sessions, starts=0)
    unchanged = median(_timed(sessions, starts=0) for _ in range(LAPS))
    arrivals = [_arrival(sessions, cluster, number) for number in range(LAPS)]
    ends = [_end(sessions, cluster, number) for number in range(LAPS if scenario.profile != "kai" else 0)]
    end = median(ends) if ends else None
    return BacklogRow(
        scenario.name, scenario.nodes, scenario.pods, scenario.waiting, first, unchanged, median(arrivals), end, peak_rss_bytes()
    )


def _timed(sessions: _Sessions, *, starts: int) -> float:
    seconds, decisions = sessions.hold()
    if len(decisions.binds) != starts or decisions.evictions:
        raise PhalanxError(
            f"{len(decisions.binds)} pods start and {len(decisions.evictions)} go, where {starts} and 0 are expected"
        )
    return seconds


def _arrival(sessions: _Sessions, cluster: _Cluster, number: int) -> float:
    """Let a gang of eight pods without GPUs come, for which there is room."""
    seconds, decisions = sessions.hold(lambda: cluster.put(f"new-{number}", 0, [""] * 8, "normal", number))
    if len(decisions.binds) != 8:
        raise PhalanxError(f"{len(decisions.binds)} of 8 pods of a gang that fits start")
    cluster.start(decisions)
    sessions.hold()
    return seconds


def _end(sessions: _Sessions, cluster: _Cluster, number: int) -> float:
    """Let a gang that holds GPUs be gone; somebody takes its place."""
    seconds, decisions = sessions.hold(lambda: cluster.end(f"run-{QUEUES * number + 1}"))
    if not decisions.binds:
        raise PhalanxError("four nodes are free, and nobody starts there")
    cluster.start(decisions)
    sessions.hold()
    return seconds


def scenarios(*, is_full: bool = False) -> Iterator[BacklogScenario]:
    """Return the rows of the suite."""
    for profile in ("phalanx", "volcano", "kai"):
        yield BacklogScenario(profile, 500, 1_000)
    yield BacklogScenario("phalanx", 4_000, 2_000, has_small=True)
    if is_full:
        yield BacklogScenario("phalanx", 14_000, 10_000, has_small=True, large_every=40)
        yield BacklogScenario("phalanx", 50_000, 10_000, large_every=100)


def run(scenario: BacklogScenario) -> BacklogRow:
    """Run one row in a process of its own, so that its peak memory is the row's."""
    asked = msgspec.json.encode(scenario).decode()
    return run_apart("phalanx.bench.backlog", asked, name=scenario.name, row=BacklogRow, most_seconds=MOST_SECONDS_PER_ROW)


HEADER = ("profile and backlog", "nodes", "running", "first", "unchanged", "one arrives", "one ends", "peak MiB")


def table(rows: Sequence[BacklogRow]) -> str:
    """Return the rows in columns."""
    lines = [HEADER, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    return "\n".join(aligned(line, widths) for line in lines)


def _cells(row: BacklogRow) -> tuple[str, ...]:
    measured = (row.first, row.unchanged, row.arrival, row.end)
    times = ("" if seconds is None else f"{seconds * 1000:,.1f} ms" for seconds in measured)
    return row.scenario, f"{row.nodes:,}", f"{row.pods:,}", *times, f"{row.peak_rss_bytes / (1 << 20):,.0f}"


def section(rows: Sequence[BacklogRow]) -> str:
    """Return the results as Markdown, with the command and the machine."""
    text = f"Written by `phalanx bench backlog` on {datetime.now(UTC).date()}. Machine: {machine()}."
    return f"{text}\n\n```text\n{table(rows)}\n```\n"


if __name__ == "__main__":
    print_row(lambda: measure(msgspec.json.decode(sys.argv[1], type=BacklogScenario)))
