"""Measure one row, in a process of its own so that its peak memory is the row's: `python -m phalanx.bench.measure '{...}'`.

Timed is one scheduling cycle: take a snapshot of the cluster, open a session, run the actions enqueue, allocate and
backfill, close. Building the cluster is timed apart, as `load`. All times are of the processor: a cycle has one thread and waits
for nothing, and other work on the machine does not count. Garbage is looked for as seldom as in the process on a cluster
(`live/garbage.py`). A row that does not place all its pods is an error.
"""

import cProfile
import gc
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

import msgspec

from phalanx.bench.clusters import Batch, arrival, build
from phalanx.bench.row_process import print_row
from phalanx.bench.scenarios import BenchKind, BenchScenario
from phalanx.config.builtin import CATALOGUE
from phalanx.errors import PhalanxError
from phalanx.live.garbage import look_seldom
from phalanx.session.cycle import run_cycle
from phalanx.session.decision import Decisions
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.state.cluster import ClusterState

ACTIONS = ("enqueue", "allocate", "backfill")
TIERS = (
    ("priority", "gang", "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"),
)
MOST_RUNS, ENOUGH_SECONDS = 5, 2.0
"""Short rows are repeated on a fresh cluster, until there are so many runs or so much time is spent."""
ARRIVALS = 9
MOST_MEMORY_BYTES = 12 << 30
"""A row that needs more fails, rather than the machine."""
NOW = 1_000_000.0

Profiler = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Lap:
    """One measured cycle."""

    events: float
    """Seconds for the events that come before the snapshot; only a steady state has some."""
    snapshot: float
    cycle: float

    @property
    def seconds(self) -> float:
        """All that is timed."""
        return self.events + self.snapshot + self.cycle


@dataclass(frozen=True, slots=True)
class CycleRow:
    """What was measured."""

    scenario: str
    kind: BenchKind
    nodes: int
    pods: int
    gang: int
    placed: int
    runs: int
    load_seconds: float
    seconds: float
    """The median of the runs; the next three are its parts."""
    events_seconds: float
    snapshot_seconds: float
    cycle_seconds: float
    pods_per_second: float
    peak_rss_bytes: int
    growth: float | None = None
    """Cost per pod relative to the row before in the same family."""


def measure(scenario: BenchScenario, profiler: Profiler = nullcontext) -> CycleRow:
    """Run a row in this process."""
    _reject_sizes_that_do_not_fit(scenario)
    policy = policy_of(scenario.kind)
    measured = _measure_arrivals if scenario.kind is BenchKind.STEADY else _measure_backlog
    load_seconds, laps = measured(scenario, policy, profiler)
    lap = sorted(laps, key=lambda lap: lap.seconds)[len(laps) // 2]
    return CycleRow(
        scenario.title, scenario.kind, scenario.nodes, scenario.pods, scenario.gang, scenario.arriving, len(laps), load_seconds,
        lap.seconds, lap.events, lap.snapshot, lap.cycle, scenario.arriving / lap.seconds, peak_rss_bytes(),
    )  # fmt: skip


def _reject_sizes_that_do_not_fit(scenario: BenchScenario) -> None:
    if min(scenario.nodes, scenario.pods, scenario.gang) < 1 or scenario.pods % scenario.gang:
        raise PhalanxError("pods must be a whole number of gangs; choose --pods as a multiple of --gang")


def policy_of(kind: BenchKind) -> Policy:
    """Return the policy of a row: the profile volcano, with network topology where the row has HyperNodes."""
    tiers = [tuple(map(PluginPolicy, names)) for names in TIERS]
    if kind in (BenchKind.TOPOLOGY_SOFT, BenchKind.TOPOLOGY_HARD, BenchKind.SUBGROUPS):
        tiers[-1] += (PluginPolicy("network-topology-aware"),)
    return Policy(ACTIONS, tuple(tiers))


def _measure_backlog(scenario: BenchScenario, policy: Policy, profiler: Profiler) -> tuple[float, list[Lap]]:
    """Place everything in one cycle, from a cluster that no cycle has seen."""
    loads, laps, spent = list[float](), list[Lap](), 0.0
    while len(laps) < MOST_RUNS and spent < ENOUGH_SECONDS:
        load_seconds, lap = _fresh_lap(scenario, policy, profiler)
        loads.append(load_seconds)
        laps.append(lap)
        spent += load_seconds + lap.seconds
    return median(loads), laps


def _fresh_lap(scenario: BenchScenario, policy: Policy, profiler: Profiler) -> tuple[float, Lap]:
    """Build the cluster and place everything; nothing of it stays in memory for the next lap."""
    gc.collect()
    started = process_time()
    state = build(scenario)
    load_seconds = process_time() - started
    gc.collect()
    lap, decisions = _timed_cycle(state, policy, profiler)
    _check(scenario, decisions)
    return load_seconds, lap


def _measure_arrivals(scenario: BenchScenario, policy: Policy, profiler: Profiler) -> tuple[float, list[Lap]]:
    """Let one gang after the other arrive in a cluster where all others run; each runs before the next one comes."""
    started = process_time()
    state = build(scenario)
    load_seconds = process_time() - started
    run_cycle(state.snapshot(NOW), policy, CATALOGUE)
    _check_quiet(state)
    gc.collect()
    laps = []
    for number in range(ARRIVALS):
        batch = arrival(scenario, scenario.pods // scenario.gang + number)
        lap, decisions = _timed_cycle(state, policy, profiler, batch)
        _check(scenario, decisions)
        batch.running(decisions.binds[task.key] for task in batch.tasks).put_into(state)
        laps.append(lap)
    return load_seconds, laps


def _timed_cycle(state: ClusterState, policy: Policy, profiler: Profiler, batch: Batch | None = None) -> tuple[Lap, Decisions]:
    with _garbage_as_on_a_cluster(), profiler():
        started = process_time()
        if batch is not None:
            batch.put_into(state)
        arrived = process_time()
        snapshot = state.snapshot(NOW)
        taken = process_time()
        decisions = run_cycle(snapshot, policy, CATALOGUE)
        decided = process_time()
    return Lap(arrived - started, taken - arrived, decided - taken), decisions


@contextmanager
def _garbage_as_on_a_cluster() -> Iterator[None]:
    """Leave out of the search for garbage what is there now, and search as seldom as the process on a cluster does."""
    threshold = gc.get_threshold()
    look_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()


def _check(scenario: BenchScenario, decisions: Decisions) -> None:
    bound = len(decisions.binds)
    if bound != scenario.arriving or decisions.faults:
        fault = _first_refusal(decisions)
        raise PhalanxError(f"{bound} of {scenario.arriving} pods were placed; {fault}")


def _first_refusal(decisions: Decisions) -> str:
    """Say something about a gang that was not placed."""
    for outcome in decisions.outcomes:
        errors = [str(getattr(task.error, "text", task.error)) for task in outcome.state.tasks if task.error]
        sentences = errors or [verdict.message for verdict in outcome.state.verdicts]
        if sentences:
            return f"gang {outcome.state.key}: {sentences[0]}"
    return "no gang says why"


def _check_quiet(state: ClusterState) -> None:
    active = state.snapshot(NOW).active
    if active:
        raise PhalanxError(f"{len(active)} gangs still wait before the arrival, first {active[0]!r}")


def peak_rss_bytes() -> int:
    """Return the most memory this process had.

    Linux counts the parent's memory before `exec` into getrusage, so its own figure for this program is read if there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _limit_memory(most_bytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes if hard == resource.RLIM_INFINITY else min(most_bytes, hard), hard))


def measure_limited(request: str, profile: str = "") -> CycleRow:
    """Measure the row that the request describes with a limit on memory; with `profile`, write a cProfile dump there."""
    _limit_memory(MOST_MEMORY_BYTES)
    profile_of_row = cProfile.Profile()
    try:
        row = measure(msgspec.json.decode(request, type=BenchScenario), (lambda: profile_of_row) if profile else nullcontext)
    except MemoryError:
        raise PhalanxError(f"needs more than {MOST_MEMORY_BYTES >> 30} GiB of memory") from None
    if profile:
        profile_of_row.dump_stats(profile)
    return row


if __name__ == "__main__":
    print_row(lambda: measure_limited(*sys.argv[1:]))
