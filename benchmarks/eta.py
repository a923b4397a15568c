"""How good the expected starts of `phalanx eta` are, on loads of the simulator itself.

    python benchmarks/eta.py                                        all loads; writes its section of benchmarks/RESULTS.md
    python benchmarks/eta.py --load philly:traces/philly,nodes=100  another one, printed only

A load is simulated once: that is what really happens. At several moments on the way the cluster is looked at as it is then, every
gang that waits is estimated, and the estimate is compared with when it really started. What is known about durations differs:

    exact       an annotation says how long each gang runs
    history     gangs belong to families of similar length, which their names show, and a few of each have finished in earlier weeks
    same day    the same families, but only gangs that have finished since the load began are known: the long ones have not yet
    deadlines   only deadlines are known, from one to five times as long as the gangs run

Gangs that are submitted after the moment are never known, and in reality they come: p50 leaves them out, and p90 counts them, as in
`phalanx eta`. Each answer is compared twice: with what really happened; and, as far as it comes from the simulations without them,
with what would have happened if nothing else had been submitted. The other answers are those that need no simulation: the mean wait
so far, from now on or from the submission of the gang on.
"""

import argparse
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import exp, inf, log
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Any

from phalanx.bench.results_page import write_section
from phalanx.cli.eta_simulations import EtaSettings, SimulationPlan, eta_cluster, simulated
from phalanx.cli.session_input import cluster_for, input_of
from phalanx.config.policies import policy_of_profile
from phalanx.live.catalogue import connected
from phalanx.session.policy import Policy
from phalanx.sim.eta import estimates
from phalanx.sim.gang_history import FinishedGang
from phalanx.sim.metrics import percent_text, short_time
from phalanx.sim.named_workloads import read_workload
from phalanx.sim.recorder import GangRecord
from phalanx.sim.running_work import DURATION, duration_of
from phalanx.sim.settings import Settings
from phalanx.sim.setup import set_workload
from phalanx.sim.workload import Workload
from phalanx.sim.world import World
from phalanx.store.input_files import take_in
from phalanx.store.listed_cluster import ListedCluster

PAGE = Path(__file__).with_name("RESULTS.md")
HOUR, DAY = 3600.0, 86_400.0
EXACT, HISTORY, DEADLINES = "exact durations", "history of earlier weeks", "deadlines only"
SAME_DAY = "history of the same day"
SIMULATED = (EXACT, HISTORY, SAME_DAY, DEADLINES)
FROM_NOW, FROM_SUBMISSION = "mean wait so far, from now on", "mean wait so far, from submission on"
FAMILIES, FINISHED = 24, 8
"""Of similar length, and how many gangs of each have finished in earlier weeks."""
CROWDED = SimulationPlan.of(20).crowded
"""Simulations with later submissions, as by default."""
LOOSEST_DEADLINE = 5.0
HORIZON_SECONDS = 14 * DAY
SHORTEST_SECONDS = 60.0
"""Relative errors are relative to at least this: nobody minds a minute."""
TOLERANCE_SECONDS = 1.0
P50, P90 = 0.5, 0.9


@dataclass(frozen=True, slots=True)
class Load:
    """What is simulated, and by whose rules."""

    name: str
    work: str
    profile: str = "phalanx"
    moments: tuple[float, ...] = tuple(hour * HOUR for hour in (14, 21))


LOADS = (
    Load("mixed sizes", "generated:jobs=150,nodes=5,days=1,load=1.1,seed=1"),
    Load("many sweeps", "generated:jobs=150,nodes=5,days=1,load=1.1,sweeps=0.5,seed=2", "volcano"),
    Load("fair shares", "generated:jobs=150,nodes=5,days=1,load=1.1,queues=6,seed=3", "kai"),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One estimate, and what really happened; seconds from the moment of the question."""

    knowledge: str
    p50: float | None
    p90: float | None
    actual: float
    quiet: float | None
    """When it would have started if nothing else had been submitted: what is simulated with exact durations."""
    alone: float | None = None
    """p90 of the simulations in which nothing is submitted later."""


# --- what really happens ---------------------------------------------------------------------------------------------------


def with_families(workload: Workload, count: int = FAMILIES) -> Workload:
    """Name gangs after families of similar length: kind-a-17."""
    ordered = sorted(workload.gangs, key=lambda gang: gang.duration)
    size = -(-len(ordered) // count)
    family = {gang.name: chr(ord("a") + place // size) for place, gang in enumerate(ordered)}
    gangs = tuple(replace(gang, name=f"kind-{family[gang.name]}-{number}") for number, gang in enumerate(workload.gangs))
    return replace(workload, gangs=gangs)


def reality(workload: Workload, policy: Policy) -> World:
    """Return a world in which the load will come."""
    world = World(connected(policy), settings=Settings(settling=60.0, parks_up_to=1800.0, heartbeat=600.0))
    set_workload(world, workload, policy.dialect)
    return world


# --- what is known at a moment ---------------------------------------------------------------------------------------------


def known_by(knowledge: str, world: World) -> list[dict[str, Any]]:
    """Return the objects of the cluster as somebody with this knowledge sees them."""
    documents = [dict(item) for item in world.store.everything()]
    if knowledge == EXACT:
        return documents
    seconds = {_key(item): duration_of(_duration(item)).low for item in documents if _duration(item)}
    silent = [_without_duration(item) for item in documents]
    return [_with_deadline(item, seconds) for item in silent] if knowledge == DEADLINES else silent


def history_of(workload: Workload) -> tuple[FinishedGang, ...]:
    """Return gangs of every family that have finished in earlier weeks: not those that come, but of the same range."""
    families: dict[str, list[float]] = {}
    for gang in workload.gangs:
        families.setdefault(gang.name.rpartition("-")[0], []).append(gang.duration)
    return tuple(
        FinishedGang(f"default/{name}-{number}", exp(Random(f"{name} {number}").uniform(log(min(known)), log(max(known)))))
        for name, known in families.items()
        for number in range(FINISHED)
    )


def _key(item: dict[str, Any]) -> str:
    return f"{item['metadata'].get('namespace')}/{item['metadata']['name']}"


def _duration(item: dict[str, Any]) -> str:
    return str((item["metadata"].get("annotations") or {}).get(DURATION, ""))


def _without_duration(item: dict[str, Any]) -> dict[str, Any]:
    annotations = {key: text for key, text in (item["metadata"].get("annotations") or {}).items() if key != DURATION}
    return {**item, "metadata": {**item["metadata"], "annotations": annotations}}


def _gang(pod: dict[str, Any]) -> str:
    """Return the gang of a pod by its name, such as kind-a-17-worker-0."""
    return _key(pod).rsplit("-", 2)[0]


def _with_deadline(item: dict[str, Any], seconds: dict[str, float]) -> dict[str, Any]:
    """Give a pod the deadline that the user of its gang has chosen, who does not know its duration well. Nobody has finished."""
    if item["kind"] != "Pod":
        return item
    factor = Random(_gang(item)).uniform(1.0, LOOSEST_DEADLINE)
    status = {key: value for key, value in item["status"].items() if key != "containerStatuses"}
    return {**item, "spec": {**item["spec"], "activeDeadlineSeconds": int(seconds[_gang(item)] * factor) + 1}, "status": status}


# --- asking ----------------------------------------------------------------------------------------------------------------


Answers = dict[str, tuple[float | None, float | None, float | None]]
"""p50, p90, and p90 without later submissions, by what is known."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers at one moment, for each gang that waits."""

    moment: float
    answers: dict[str, Answers]


def ask(world: World, policy: Policy, history: tuple[FinishedGang, ...], seeds: int, *, divides: bool) -> Asked:
    """Estimate every gang that waits now, in several processes if `divides`."""
    moment, records = world.now - world.start, world.recorder.gangs
    waiting = {str(key): record for key, record in records.items() if record.started is None}
    answers = {name: _naive(record, records.values(), moment) for name, record in waiting.items()}
    for knowledge in SIMULATED:
        listed = ListedCluster("simulated", world.now, known_by(knowledge, world))
        intake = take_in((), cluster_for(policy, ()), goes_on=True, live=listed)
        known = EtaSettings(HORIZON_SECONDS, history if knowledge == HISTORY else ())
        given = eta_cluster(input_of(intake, policy, (), world.now), known).input
        plan = SimulationPlan(1 if knowledge == EXACT else seeds, CROWDED)
        found = simulated(given, plan, time.monotonic() + DAY, divides=divides)
        for estimate in estimates(given.question, found.runs):
            if estimate.gang in answers:
                answers[estimate.gang][knowledge] = (estimate.p50, estimate.p90, replace(estimate, delayed=()).p90)
    return Asked(moment, answers)


def _naive(record: GangRecord, others: Iterable[GangRecord], moment: float) -> Answers:
    """Answer without a simulation: by the waits of those that have started, their mean and nine tenths of them."""
    waits = sorted(other.wait for other in others if other.wait is not None) or [0.0]
    usual, long = mean(waits), waits[int(P90 * (len(waits) - 1))]
    waited = moment - record.submitted
    shorter = max(long - waited, 0.0)
    return {FROM_NOW: (usual, long, long), FROM_SUBMISSION: (max(usual - waited, 0.0), shorter, shorter)}


def measure(load: Load, seeds: int = 6, *, divides: bool = True) -> list[Sample]:
    """Simulate a load, ask on the way, and compare with what came."""
    policy, workload = policy_of_profile(load.profile), with_families(read_workload(load.work, 0).workload)
    world, history = reality(workload, policy), history_of(workload)
    asked = []
    for moment in load.moments:
        world.advance(world.start + moment)
        asked.append(ask(world, policy, history, seeds, divides=divides))
    world.advance(world.start + load.moments[-1] + HORIZON_SECONDS)
    return [sample for one in asked for sample in _samples(one, world)]


def _samples(asked: Asked, world: World) -> Iterator[Sample]:
    starts = {str(key): record.started for key, record in world.recorder.gangs.items()}
    for gang, answers in asked.answers.items():
        started = starts[gang]
        if started is not None:
            real, (quiet, *_) = started - asked.moment, answers.get(EXACT, (None, None, None))
            yield from (Sample(knowledge, p50, p90, real, quiet, alone) for knowledge, (p50, p90, alone) in answers.items())


# --- results ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the answers with one knowledge are: the median errors of p50, and how often the start came by p90."""

    questions: int
    silent: int
    """Questions without an answer."""
    error: float
    relative: float
    by_p90: float
    by_alone: float
    """How often the start came by the p90 of simulations without later submissions."""
    slack: float
    """By how much p90 is later than the start, in the median; negative if it is earlier."""


def quality(samples: Sequence[Sample], knowledge: str, *, is_quiet: bool = False) -> Quality:
    """Sum up the samples with this knowledge against what happened, or against what would have without later work."""
    known = [sample for sample in samples if sample.knowledge == knowledge]
    judged = [(sample, start) for sample in known if (start := sample.quiet if is_quiet else sample.actual) is not None]
    errors = [(abs(sample.p50 - start), start) for sample, start in judged if sample.p50 is not None]
    relative = [error / max(start, SHORTEST_SECONDS) for error, start in errors]
    by_p90, by_alone = (mean(_is_by(p90, start) for p90, start in pairs) for pairs in (
        [(sample.p90, start) for sample, start in judged], [(sample.alone, start) for sample, start in judged]
    ))  # fmt: skip
    slack = _median(sample.p90 - start for sample, start in judged if sample.p90 is not None)
    error = _median(error for error, _ in errors)
    return Quality(len(judged), len(judged) - len(errors), error, _median(relative), by_p90, by_alone, slack)


def _is_by(p90: float | None, start: float) -> bool:
    return p90 is not None and start <= p90 + TOLERANCE_SECONDS


def _median(values: Iterable[float]) -> float:
    found = list(values)
    return median(found) if found else inf


def table(results: dict[str, list[Sample]], *, is_quiet: bool = False) -> list[str]:
    """Return the results as lines of Markdown."""
    headers = ["load", "known", "questions", "without answer", "median error", "median relative error"]
    headers += ["start by p90"] if is_quiet else ["start by p90", "p90 after the start", "start by p90 without arrivals"]
    lines = [f"| {' | '.join(headers)} |", f"| --- | --- |{' --: |' * (len(headers) - 2)}"]
    for name, samples in results.items():
        for knowledge in SIMULATED[1:] if is_quiet else (*SIMULATED, FROM_NOW, FROM_SUBMISSION):
            cells = _cells(quality(samples, knowledge, is_quiet=is_quiet), is_quiet=is_quiet)
            lines.append(f"| {name} | {knowledge} | {' | '.join(cells)} |")
    return lines


def _cells(found: Quality, *, is_quiet: bool) -> list[str]:
    errors = [short_time(found.error), percent_text(found.relative)] if found.error < inf else ["-", "-"]
    cells = [str(found.questions), str(found.silent), *errors]
    if is_quiet:
        return [*cells, percent_text(found.by_alone)]
    sign = "-" if found.slack < 0 else ""
    slack = sign + short_time(abs(found.slack)) if found.slack < inf else "-"
    return [*cells, percent_text(found.by_p90), slack, percent_text(found.by_alone)]


def section(results: dict[str, list[Sample]], loads: Iterable[Load], seeds: int) -> str:
    """Return the section of the page of results."""
    date, machine = datetime.now(UTC).date(), f"{platform.system()}, CPython {platform.python_version()}"
    about = "\n".join(f"- {load.name}: `{load.work}`, profile `{load.profile}`" for load in loads)
    return f"""Written by `python benchmarks/eta.py` on {date}. {machine}. {seeds} simulations without later submissions for each
p50, of which exact durations need one, and {CROWDED} with them for each p90, as many as `phalanx eta` runs by default.

Each load is simulated once, with all its gangs. At {len(LOADS[0].moments)} moments every waiting gang is estimated from the state
of the cluster at that moment, and the estimate is compared with when the gang really started. The error is that of p50.

{about}

### With all work that was submitted later

Gangs that are submitted later are not known when the question is asked, but they come, and small ones or those of other queues go
first. p50 leaves them out, and p90 counts gangs like those since the load began. "p90 after the start" is the median of how much
later p90 is than the start; the last column is what p90 would be worth without arrivals. The loads end after a day, and the
questions of one moment are not independent: one gang that goes ahead delays all behind it.

The history of earlier weeks is drawn from the range of each family, so it is as good as a history can be. In that of the same day
long gangs are missing, as they still run. The last two rows of each load are what somebody would say without a simulation.

{chr(10).join(table(results))}

### Without later work

The answers of the simulations without arrivals against the starts if nothing else had been submitted. Here only the durations are
uncertain, and nine of ten starts should come by p90.

{chr(10).join(table(results, is_quiet=True))}
"""


def main() -> None:
    """Measure the loads and write the section, or print the table of another load."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", help="a workload as `phalanx simulate --workload` takes it")
    parser.add_argument("--profile", default="phalanx", help="by whose rules")
    parser.add_argument("--seeds", type=int, default=6, help="simulations for each answer")
    asked = parser.parse_args()
    loads = (Load("given", asked.load, asked.profile),) if asked.load else LOADS
    results = {}
    for load in loads:
        results[load.name] = measure(load, asked.seeds)
        print("\n".join(table({load.name: results[load.name]})), flush=True)
        if not asked.load:
            write_section(PAGE, "eta", section(results, loads[: len(results)], asked.seeds))


if __name__ == "__main__":
    main()
