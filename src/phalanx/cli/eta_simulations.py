"""The simulations behind expected starts, as `phalanx eta` and `phalanx get gangs -o wide` run them: bounded in time."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil
from typing import Self

from phalanx.cli.session_input import SessionInput
from phalanx.config.policies import policy_of_gates
from phalanx.config.schedulers import our_schedulers
from phalanx.controllers.builtin import ControllerSettings, standard_controllers
from phalanx.dev.worker_process import end_with_parent
from phalanx.explain.gang_rows import GangRow, all_rows
from phalanx.explain.gang_status import GangStatus
from phalanx.live.catalogue import connected
from phalanx.model.kinds import Document, object_key
from phalanx.scheduling.shards import decide
from phalanx.session.policy import Policy
from phalanx.sim.arrivals import Arrivals, arrivals_of
from phalanx.sim.eta import SOON_SECONDS, EtaQuestion, EtaRun, question_of, simulate_on
from phalanx.sim.gang_history import FinishedGang
from phalanx.sim.known_durations import Durations
from phalanx.sim.settings import FOREVER, Span
from phalanx.sim.sshkeys import pair_for
from phalanx.sim.world import World
from phalanx.state.snapshot import Snapshot
from phalanx.store.completion import known_kind

WAITING = (GangStatus.STARTS, GangStatus.PIPELINED, GangStatus.WAITS)
COUNTED_EVERY_SECONDS = 600.0
"""How often queues are counted in simulations."""
WORTH_PROCESSES_SECONDS = 3.0
"""Work of so many seconds is divided between processes; to start them takes a second."""
MOST_PROCESSES = 8
WITH_ARRIVALS = 0.25
"""Simulations with later submissions, for each without: they take two to three times as long."""


@dataclass(frozen=True, slots=True)
class EtaSettings:
    """What is known besides the cluster."""

    horizon: float
    history: tuple[FinishedGang, ...] = ()
    assumed: Span | None = None
    """Duration of gangs of which nothing is known."""
    has_arrivals: bool = True
    """Gangs like those of the last day are submitted later, if there were enough of them."""


@dataclass(frozen=True, slots=True)
class EtaInput:
    """What every simulation begins with."""

    question: EtaQuestion
    policy: Policy
    names: tuple[str, ...] = ()
    """Of schedulers; all that we know if there are none."""

    def run(self, seed: int, end: float, unknown: float = FOREVER) -> EtaRun:
        """Simulate with one seed, at most until the clock of this machine says `end`."""
        world = self._world(seed, unknown)
        return simulate_on(world, self.question, seed, lambda: time.monotonic() > end)

    def _world(self, seed: int, unknown: float) -> World:
        profile = connected(self.policy)
        usual = ControllerSettings(scheduler=(profile.policy, profile.catalogue), queue_status_seconds=COUNTED_EVERY_SECONDS)
        return World(
            profile, settings=self.question.settings(seed, unknown), seed=seed, start=self.question.now,
            controllers=standard_controllers(pair_for, usual, has_admission=self.policy.has_admission),
            gates=connected(policy_of_gates(self.policy)), schedulers=our_schedulers(self.names), isolates=True,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class EtaCluster:
    """A cluster at one moment: what a session says about its gangs, what is known about durations, and the question."""

    snapshot: Snapshot
    rows: Sequence[GangRow]
    durations: Durations
    input: EtaInput
    arrivals: Arrivals
    """What was submitted in the last day, whether or not it is enough to draw from."""


def eta_cluster(given: SessionInput, known: EtaSettings) -> EtaCluster:
    """Look at a cluster, and ask about every gang that waits."""
    by_name = {(item["apiVersion"].partition("/")[0], item["kind"], object_key(item)): item for item in given.documents}
    documents, snapshot = list(by_name.values()), given.snapshot()
    rows = all_rows(decide(snapshot, connected(given.policy)), refused=given.intake.refused_groups)
    durations = Durations(documents, snapshot, known.history, known.assumed)
    waiting = [row.gang for row in rows if row.status in WAITING and row.gang in snapshot.gangs]
    question = question_of(_served(documents), snapshot, waiting, durations, known.horizon)
    arrivals = arrivals_of(documents, snapshot, durations)
    if known.has_arrivals and arrivals.is_enough:
        question = replace(question, arrivals=arrivals)
    return EtaCluster(snapshot, rows, durations, EtaInput(question, given.policy, given.names), arrivals)


def _served(documents: Iterable[Document]) -> list[Document]:
    """Return the objects of kinds that the store in memory serves; the others decide nothing."""
    return [item for item in documents if known_kind(item) is not None]


# --- seeds -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """How many simulations to hold at most."""

    alone: int
    """Without later submissions."""
    crowded: int
    """With them."""

    @classmethod
    def of(cls, seeds: int) -> Self:
        """Plan as many as a user asks for without later submissions, and some with them."""
        return cls(seeds, ceil(seeds * WITH_ARRIVALS))


@dataclass(frozen=True, slots=True)
class EtaRuns:
    """The simulations that were held."""

    runs: tuple[EtaRun, ...]
    """Those without later submissions, and those with them."""
    hopeful: EtaRun | None = None
    """The one in which gangs of unknown duration end at once."""


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What simulations without and with later submissions begin with, and which of them to hold."""

    alone: EtaInput
    crowded: EtaInput | None = None

    def run(self, seed: int, end: float, *, is_crowded: bool) -> EtaRun:
        given = self.crowded if is_crowded and self.crowded is not None else self.alone
        return given.run(seed, end)

    @property
    def plan(self) -> list[tuple[int, bool]]:
        """Seed and kind of all simulations after the first, both kinds in turn: there are some of each when the time is over."""
        crowded = 0 if self.crowded is None else self.crowded.question.seeds
        alone = self.alone.question.seeds
        places = [(seed / alone, False, seed) for seed in range(1, alone)] + [
            (seed / crowded, True, seed) for seed in range(crowded)
        ]
        return [(seed, is_crowded) for _, is_crowded, seed in sorted(places)]


def simulated(
    given: EtaInput, plan: SimulationPlan, end: float, show: Callable[[int, int], None] = lambda done, all_runs: None, *,
    divides: bool = True,
) -> EtaRuns:  # fmt: skip
    """Simulate as planned until the clock says `end`; a run that was stopped counts only if there is no other.

    With `divides`, much work is divided between processes. `show` is called with the number of runs that are done and that of all.
    """
    alone = replace(given, question=given.question.without_arrivals(plan.alone))
    begun = time.monotonic()
    first = alone.run(0, end)
    seconds = time.monotonic() - begun
    hopeful = alone.run(0, end, SOON_SECONDS) if given.question.endless and len(first.starts) < len(given.question.gangs) else None
    inputs = _Inputs(alone, _crowded(given, plan.crowded, first))
    show(1, len(inputs.plan) + 1)
    is_worth_it = divides and seconds * len(inputs.plan) > WORTH_PROCESSES_SECONDS and _processes() > 1
    runs = [first]
    for run in (_in_processes if is_worth_it else _one_by_one)(inputs, end):
        runs.append(run)
        show(len(runs), len(inputs.plan) + 1)
    return EtaRuns(tuple(run for run in runs if run.is_whole) or (first,), hopeful)


def _crowded(given: EtaInput, seeds: int, first: EtaRun) -> EtaInput | None:
    """Return what simulations with later submissions begin with; None if there are none, or nobody starts whom they could delay."""
    if given.question.arrivals is None or not first.starts:
        return None
    return replace(given, question=given.question.with_arrivals(seeds, first))


def _one_by_one(inputs: _Inputs, end: float) -> Iterator[EtaRun]:
    for seed, is_crowded in inputs.plan:
        if time.monotonic() > end:
            return
        yield inputs.run(seed, end, is_crowded=is_crowded)


def _processes() -> int:
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST_PROCESSES)


def _in_processes(inputs: _Inputs, end: float) -> Iterator[EtaRun]:
    with ProcessPoolExecutor(_processes(), initializer=_begin_process, initargs=(inputs,)) as pool:
        futures = [pool.submit(_run_in_process, seed, end, is_crowded) for seed, is_crowded in inputs.plan]
        with suppress(TimeoutError):
            for future in as_completed(futures, timeout=max(end - time.monotonic(), 0.0)):
                yield future.result()
        pool.shutdown(cancel_futures=True)  # those that run stop by themselves, as their time is over


_inputs: list[_Inputs] = []
"""What this process simulates, if it is one of several."""


def _begin_process(inputs: _Inputs) -> None:
    end_with_parent()
    _inputs[:] = [inputs]


def _run_in_process(seed: int, end: float, is_crowded: bool) -> EtaRun:
    return _inputs[0].run(seed, end, is_crowded=is_crowded)
