"""`phalanx simulate`: gangs on a cluster, in virtual time."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from phalanx.cli import parallel_options, policy_options
from phalanx.cli.clock_speed import speed_of
from phalanx.cli.policy_options import PATH
from phalanx.cli.record_options import RecordOptions, record_options
from phalanx.cli.seeds import Seeds
from phalanx.cli.trace_options import GANG_HELP, LEVELS, VERBOSITY_HELP, refuse_gangs_without_trace

if TYPE_CHECKING:
    from phalanx.cli.simulate_run import SimulationOutcome
    from phalanx.cli.simulate_seeds import SeedsOutcome

SPEEDS = "1x, 10x or max"
EXAMPLES = """\b
Examples:
  phalanx simulate examples/deadlock --compare default-scheduler,phalanx
  phalanx simulate --workload generated:jobs=200,nodes=20 --until 7d --seeds 1..20 --compare volcano,phalanx

\b
Exit status:
  0    the simulation ended, also if some gang never started
  1    failed: the input, the scenario or the configuration is invalid
  2    invalid usage
  3    the outcome differs from what the scenario expects
  130  interrupted by Ctrl-C; partial results were printed
"""

NOT_AS_EXPECTED, INTERRUPTED = 3, 130
SOLO_PROFILE = "default-scheduler"


@click.command(epilog=EXAMPLES)
@click.argument("paths", type=PATH, nargs=-1, metavar="[PATH]...")
@click.option(
    "--scenario", type=click.Path(dir_okay=False), metavar="FILE", help="Scenario file; by default the one found in the paths."
)
@click.option("--workload", metavar="WORK", help="Generated work, as generated:jobs=1000,nodes=100, or a trace, as philly:PATH.")
@click.option("--until", metavar="DURATION", help="How long to simulate, such as 2h; by default until nothing more can happen.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Seed of the random numbers; 0 by default.")
@click.option("--seeds", type=Seeds(), metavar="A..B", help="Simulate with each of these seeds, and show means with intervals.")
@parallel_options.jitter
@parallel_options.processes
@parallel_options.on
@policy_options.config
@policy_options.profile
@policy_options.gates
@policy_options.scheduler_names
@click.option(
    "--compare",
    metavar="NAME,NAME...",
    help="Run the simulation with several profiles or configuration files and compare the results.",
)
@click.option(
    "--speed",
    default="max",
    show_default=True,
    metavar="FACTOR",
    help="Speed of the simulation: 1x is real time, 10x ten times as fast.",
)
@click.option(
    "--report", type=click.Path(dir_okay=False), metavar="FILE", help="Write a self-contained HTML page with charts to this file."
)
@click.option(
    "--results", type=click.Path(file_okay=False), metavar="DIR",
    help="Write the results to files in this folder, also while the simulation runs; 'phalanx ui --results' shows them.",
)  # fmt: skip
@record_options
@policy_options.form
@click.option("-v", "verbosity", type=click.Choice(LEVELS), help=VERBOSITY_HELP)
@click.option("--gang", "gangs", multiple=True, metavar="NAMESPACE/NAME", help=GANG_HELP)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Simulate how gangs run on a cluster: when they start, why they wait, which pods are evicted. No Kubernetes is needed.

    Reads manifests as 'phalanx schedule' does. A scenario in the same directory says when gangs arrive, how long they run, and
    which nodes and requests fail. The scheduler is the one of 'phalanx schedule'. The same input gives the same output.
    """
    asked = SimulateOptions(**options)
    asked.refuse_clashes()
    outcome = _simulated(asked)
    if outcome.is_interrupted:
        ctx.exit(INTERRUPTED)
    if outcome.complaints:
        ctx.exit(NOT_AS_EXPECTED)


def _simulated(asked: "SimulateOptions") -> "SimulationOutcome | SeedsOutcome":
    if asked.seeds is not None:
        from phalanx.cli.simulate_seeds import simulate_seeds

        return simulate_seeds(asked)
    from phalanx.cli.simulate_run import simulate

    return simulate(asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions(RecordOptions):
    """What was typed."""

    paths: tuple[str, ...]
    scenario: str | None
    workload: str | None
    until: str | None
    seed: int | None
    seeds: range | None
    jitter: float
    processes: int
    on: str | None
    config: str | None
    profile: str | None
    gates: tuple[str, ...]
    names: tuple[str, ...]
    compare: str | None
    speed: str
    report: str | None
    results: str | None
    form: str
    verbosity: str | None
    gangs: tuple[str, ...]

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together, before anything is simulated."""
        if not self.paths and not self.workload:
            raise click.UsageError(
                "nothing to simulate: name files or folders, or work with --workload generated:jobs=200,nodes=20"
            )
        if sum(option is not None for option in (self.config, self.profile, self.compare)) > 1:
            raise click.UsageError("--config, --profile and --compare exclude each other: all say who decides")
        if self.record and self.compare:
            raise click.UsageError("--record and --compare exclude each other: a recording holds one simulation")
        if self.record and self.profile == SOLO_PROFILE:
            raise click.UsageError(f"--record: {SOLO_PROFILE} schedules no gangs, and only sessions of gangs are recorded")
        self._refuse_one_only_options()
        parallel_options.refuse_jitter_of_work(self.jitter, self.workload)
        refuse_gangs_without_trace(self.gangs, is_traced=self.verbosity is not None)
        policy_options.refuse_stdin_twice(*self.paths, self.config)
        if self.report and not Path(self.report).absolute().parent.is_dir():
            raise click.UsageError(f"--report: there is no folder {str(Path(self.report).parent)!r}; make it first")
        if self.speed != "max":
            speed_of(self.speed, SPEEDS)

    def _refuse_one_only_options(self) -> None:
        """Refuse what goes with one simulation only, or with several only."""
        if self.seeds is None:
            if self.on:
                raise click.UsageError("--on: one simulation runs on this machine; several go with --seeds 1..20")
            return
        single = {
            "--seed": self.seed is not None, "--record": bool(self.record), "--results": bool(self.results),
            "-v": self.verbosity is not None,
            "--speed": self.factor is not None,
        }  # fmt: skip
        for option in (name for name, is_given in single.items() if is_given):
            raise click.UsageError(f"{option} goes with one simulation, and --seeds asks for several; leave out one of them")

    @property
    def factor(self) -> float | None:
        """How many seconds of the cluster pass in one; None: as many as can be."""
        return None if self.speed == "max" else speed_of(self.speed, SPEEDS)

    @property
    def seconds(self) -> float | None:
        """How long to simulate, if that was given."""
        return policy_options.until_seconds(self.until)
