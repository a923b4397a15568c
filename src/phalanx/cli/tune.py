"""`phalanx tune`: search settings by simulation."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import parallel_options, policy_options
from phalanx.cli.policy_options import PATH
from phalanx.cli.seeds import Seeds

EXAMPLES = """\b
Examples:
  phalanx tune --workload generated:jobs=100,nodes=8,days=0.5 --until 12h --minimise 'p90 wait' --subject-to 'fairness >= 0.8'
  phalanx tune work.yaml --jitter 0.1 --maximise 'goodput of capacity' --space settings.yaml --state search.json --to tuned.yaml

\b
Exit status:
  0    a configuration was found that is better on seeds that the search has not seen
  1    failed: the input, the goal or the configuration is invalid
  2    invalid usage
  3    no such configuration was found; none is written
  130  interrupted by Ctrl-C; with --state, the same command continues
"""
NOT_BETTER, INTERRUPTED = 3, 130


@click.command(epilog=EXAMPLES)
@click.argument("paths", type=PATH, nargs=-1, metavar="[PATH]...")
@click.option(
    "--scenario", type=click.Path(dir_okay=False), metavar="FILE", help="Scenario file; by default the one found in the paths."
)
@click.option("--workload", metavar="WORK", help="Generated work, as generated:jobs=1000,nodes=100, or a trace, as philly:PATH.")
@click.option("--until", metavar="DURATION", help="How long to simulate, such as 2h; by default until nothing more can happen.")
@click.option("--minimise", "--minimize", "minimise", metavar="METRIC", help="Goal: as little of this metric as possible.")
@click.option("--maximise", "--maximize", "maximise", metavar="METRIC", help="Goal: as much of this metric as possible.")
@click.option(
    "--subject-to", "bounds", multiple=True, metavar="BOUND", help="Bound to keep, such as 'fairness >= 0.95'; may be repeated."
)
@policy_options.config
@policy_options.profile
@policy_options.scheduler_names
@click.option(
    "--space", type=click.Path(dir_okay=False), metavar="FILE",
    help="Settings to search; by default all numbers and durations of the configuration.",
)  # fmt: skip
@click.option(
    "--trials", type=click.IntRange(1, 100_000), default=48, show_default=True, metavar="N", help="Configurations to try."
)
@click.option(
    "--batch", type=click.IntRange(1, 1000), default=8, show_default=True, metavar="N",
    help="Configurations to choose at a time; part of the search, wherever it runs.",
)  # fmt: skip
@click.option("--seeds", type=Seeds(), default="1..4", show_default=True, metavar="A..B", help="Seeds of the search.")
@click.option(
    "--held-out", type=Seeds(), default="1001..1010", show_default=True, metavar="A..B",
    help="Other seeds, on which the best configuration is compared with the present one.",
)  # fmt: skip
@click.option("--search-seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Seed of the optimizer.")
@parallel_options.jitter
@parallel_options.processes
@parallel_options.on
@click.option(
    "--state", type=click.Path(dir_okay=False), metavar="FILE", help="Keep all simulations in this file, and continue from it."
)
@click.option(
    "--to", type=click.Path(dir_okay=False), default="tuned.yaml", show_default=True, metavar="FILE",
    help="Write the configuration to this file.",
)  # fmt: skip
@click.option(
    "--queues-to",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Search weights of queues as well; write them to this file.",
)
@policy_options.form
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Search settings by simulation: weights and arguments of plugins and actions, on request weights of queues.

    Tries configurations on a load and keeps the one that serves a goal best. What it gains and what it costs is measured on seeds
    that the search has not seen. The same command finds the same configuration on any machine and any cluster.
    """
    asked = TuneOptions(**options)
    asked.refuse_clashes()
    from phalanx.cli.tune_run import tune

    outcome = tune(asked)
    if outcome.is_interrupted:
        ctx.exit(INTERRUPTED)
    if not outcome.is_better:
        ctx.exit(NOT_BETTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """What was typed."""

    paths: tuple[str, ...]
    scenario: str | None
    workload: str | None
    until: str | None
    minimise: str | None
    maximise: str | None
    bounds: tuple[str, ...]
    config: str | None
    profile: str | None
    names: tuple[str, ...]
    space: str | None
    trials: int
    batch: int
    seeds: range
    held_out: range
    search_seed: int
    jitter: float
    processes: int
    on: str | None
    state: str | None
    to: str
    queues_to: str | None
    form: str

    @property
    def seed(self) -> int | None:
        """Of the load, before any of the search is simulated."""
        return self.seeds[0]

    @property
    def seconds(self) -> float | None:
        """How long to simulate, if that was given."""
        return policy_options.until_seconds(self.until)

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together, before anything is simulated."""
        if not self.paths and not self.workload:
            raise click.UsageError("nothing to simulate: name files or folders, or work with --workload generated:jobs=100,nodes=8")
        if (self.minimise is None) == (self.maximise is None):
            raise click.UsageError("a search has one goal: write --minimise 'p90 wait', or --maximise 'goodput of capacity'")
        parallel_options.refuse_jitter_of_work(self.jitter, self.workload)
        policy_options.refuse_two_policies(self.config, self.profile)
        policy_options.refuse_stdin_twice(*self.paths, self.config)
        if set(self.seeds) & set(self.held_out):
            raise click.UsageError("--held-out: the search must not have seen these seeds; choose others than those of --seeds")
        if len(self.held_out) < 2:
            raise click.UsageError("--held-out: two seeds at least, so that chance can be told from a difference")
