"""The simulations behind expected starts, as `phalanx eta` and `phalanx get gangs -o wide` run them: bounded in time."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace

from phalanx.cli.session_input import SessionInput
from phalanx.config.policies import policy_of_gates
from phalanx.config.schedulers import our_schedulers
from phalanx.controllers.builtin import ControllerSettings, standard_controllers
from phalanx.explain.gang_rows import GangRow, all_rows
from phalanx.explain.gang_status import GangStatus
from phalanx.live.catalogue import connected
from phalanx.model.kinds import Document, object_key
from phalanx.scheduling.shards import decide
from phalanx.session.policy import Policy
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


@dataclass(frozen=True, slots=True)
class EtaSettings:
    """What is known besides the cluster."""

    horizon: float
    history: tuple[FinishedGang, ...] = ()
    assumed: Span | None = None
    """Duration of gangs of which nothing is known."""


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


def eta_cluster(given: SessionInput, known: EtaSettings) -> EtaCluster:
    """Look at a cluster, and ask about every gang that waits."""
    by_name = {(item["apiVersion"].partition("/")[0], item["kind"], object_key(item)): item for item in given.documents}
    documents, snapshot = list(by_name.values()), given.snapshot()
    rows = all_rows(decide(snapshot, connected(given.policy)), refused=given.intake.refused_groups)
    durations = Durations(documents, snapshot, known.history, known.assumed)
    waiting = [row.gang for row in rows if row.status in WAITING and row.gang in snapshot.gangs]
    question = question_of(_served(documents), snapshot, waiting, durations, known.horizon)
    return EtaCluster(snapshot, rows, durations, EtaInput(question, given.policy, given.names))


def _served(documents: Iterable[Document]) -> list[Document]:
    """Return the objects of kinds that the store in memory serves; the others decide nothing."""
    return [item for item in documents if known_kind(item) is not None]


# --- seeds -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EtaRuns:
    """The simulations that were held."""

    runs: tuple[EtaRun, ...]
    hopeful: EtaRun | None = None
    """The one in which gangs of unknown duration end at once."""


def simulated(
    given: EtaInput, seeds: int, end: float, show: Callable[[int], None] = lambda done: None, *, divides: bool = True
) -> EtaRuns:  # fmt: skip
    """Simulate with up to so many seeds until the clock says `end`; a run that was stopped counts only if there is no other.

    With `divides`, much work is divided between processes. `show` is called with the number of runs that are done.
    """
    given = replace(given, question=replace(given.question, seeds=seeds))
    begun = time.monotonic()
    first = given.run(0, end)
    seconds = time.monotonic() - begun
    show(1)
    hopeful = given.run(0, end, SOON_SECONDS) if given.question.endless and len(first.starts) < len(given.question.gangs) else None
    is_worth_it = divides and seconds * (seeds - 1) > WORTH_PROCESSES_SECONDS and _processes() > 1
    runs = [first]
    for run in (_in_processes if is_worth_it else _one_by_one)(given, range(1, seeds), end):
        runs.append(run)
        show(len(runs))
    whole = tuple(run for run in runs if run.is_whole)
    return EtaRuns(whole or (first,), hopeful)


def _one_by_one(given: EtaInput, seeds: Iterable[int], end: float) -> Iterator[EtaRun]:
    for seed in seeds:
        if time.monotonic() > end:
            return
        yield given.run(seed, end)


def _processes() -> int:
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST_PROCESSES)


def _in_processes(given: EtaInput, seeds: Iterable[int], end: float) -> Iterator[EtaRun]:
    with ProcessPoolExecutor(_processes(), initializer=_begin_process, initargs=(given,)) as pool:
        futures = [pool.submit(_run_in_process, seed, end) for seed in seeds]
        with suppress(TimeoutError):
            for future in as_completed(futures, timeout=max(end - time.monotonic(), 0.0)):
                yield future.result()
        pool.shutdown(cancel_futures=True)  # those that run stop by themselves, as their time is over


_given: list[EtaInput] = []
"""What this process simulates, if it is one of several."""


def _begin_process(given: EtaInput) -> None:
    _given[:] = [given]


def _run_in_process(seed: int, end: float) -> EtaRun:
    return _given[0].run(seed, end)
