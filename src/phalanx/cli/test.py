"""`phalanx test`: tests of the scheduler itself that anybody can run."""

import sys
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from phalanx.cli.progress import clear_progress, show_progress
from phalanx.cli.seeds import seeds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phalanx.testing.storm.plan import Plan
    from phalanx.testing.storm.storm import Outcome

EXAMPLES = """\b
Examples:
  phalanx test storm --seeds 1..200
  phalanx test storm --seeds 17 --trace
"""
MONTH_EXAMPLES = """\b
Examples:
  phalanx test month
  phalanx test month --days 3 --seed 7
"""
SHOWN_LINES, BROKEN = 40, "VIOLATION"


@click.group()
def command() -> None:
    """Test the scheduler itself."""


@dataclass(frozen=True, slots=True)
class StormOptions:
    """What was typed."""

    seeds: str
    only: str | None
    processes: int
    is_traced: bool
    shrinks: bool

    def numbers(self) -> range:
        """Return the seeds."""
        try:
            return seeds_of(self.seeds)
        except ValueError as problem:
            raise click.UsageError(f"--seeds: {problem}") from None

    def plans(self) -> "list[Plan]":
        """Return the storms with a choice of their incidents."""
        from phalanx.testing.storm.plan import plan_of

        kept = self.kept()
        return [plan_of(seed) if kept is None else plan_of(seed).only(kept) for seed in self.numbers()]

    def kept(self) -> frozenset[int] | None:
        """Return the numbers of the incidents to play; None for all."""
        if self.only is None:
            return None
        parts = [part.strip() for part in self.only.split(",") if part.strip()]
        if not all(part.isdigit() for part in parts):
            raise click.UsageError(f"--incidents: {self.only!r} are no numbers; write for example 0,3,4")
        return frozenset(map(int, parts))


@command.command("storm", epilog=EXAMPLES)
@click.option("--seeds", default="1..100", show_default=True, metavar="A..B", help="Seeds of the storms to play.")
@click.option("--incidents", "only", metavar="NUMBERS", help="Play only these incidents of each storm, such as 0,3,4.")
@click.option("--processes", type=click.IntRange(1, 64), default=2, show_default=True, metavar="N", help="Processes to use.")
@click.option("--trace", "is_traced", is_flag=True, help="Show everything that happens.")
@click.option("--shrink/--no-shrink", "shrinks", default=True, show_default=True, help="Look for the shortest storm that fails.")
def storm(**options: Any) -> None:  # Any: as click read them
    """Play storms: schedulers, nodes and jobs in virtual time, where everything that can go wrong does.

    Several replicas of `phalanx run` schedule a small cluster while requests fail or come late, watches break, processes
    freeze and crash, nodes die, and owners scale and delete. During the storm and after it, invariants are checked: no node is
    over-committed, no gang is left partly bound, nothing that could start waits. The same seed gives the same storm. Exits with 1
    if an invariant was broken.
    """
    asked = StormOptions(**options)
    broken = _play(asked)
    sys.exit(1 if broken else 0)


@command.command("month", epilog=MONTH_EXAMPLES)
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True, metavar="N", help="Days to live through.")
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="Seed of what happens.")
@click.option("--workloads", type=click.IntRange(0, 10_000), default=100, show_default=True, metavar="N", help="Gangs per day.")
@click.option("--incidents", type=click.IntRange(0, 10_000), default=60, show_default=True, metavar="N", help="Incidents per day.")
@click.option("--trace", "is_traced", is_flag=True, help="Show the last things that happened.")
def month(*, is_traced: bool, **options: int) -> None:
    """Let a cluster live for a month of virtual time under storm, and look whether its scheduler grows.

    Every night the cluster comes to rest, the invariants are checked, and everything leaves; then memory, open files, tasks
    and the sizes of all containers of a scheduler that has run since the first day are measured. From the twelfth night on,
    when caches are full, nothing may grow. Exits with 1 if something does, or if an invariant was broken.
    """
    from phalanx.testing.storm.month import Life, live_through

    life = Life(**options)
    found = live_through(life, lambda day, growth, broken: click.echo(f"day {day:3}: {growth.line()}, {broken} violations"))
    for line in found.lines if is_traced else ():
        click.echo(line)
    for violation in found.violations:
        click.echo(f"  {violation}")
    click.echo(f"{found.sessions:,} sessions, {found.cpu_seconds:.0f} s of processor time", err=True)
    click.echo(f"month: {life.days} days, {len(found.violations)} violations")
    sys.exit(1 if found.violations else 0)


def _play(asked: StormOptions) -> int:
    from phalanx.testing.storm.campaign import play_all
    from phalanx.testing.storm.storm import play

    numbers, begun, broken, requests = asked.numbers(), perf_counter(), 0, 0
    found = map(play, asked.plans()) if asked.only is not None else play_all(numbers, processes=min(asked.processes, len(numbers)))
    for count, outcome in enumerate(found, start=1):
        requests += outcome.requests
        broken += len(outcome.violations)
        _show(asked, outcome)
        if sys.stderr.isatty():
            show_progress(f"{count} of {len(numbers)} storms, {broken} violations")
    if sys.stderr.isatty():
        clear_progress()
    click.echo(f"{requests:,} requests, {perf_counter() - begun:.0f} s", err=True)
    click.echo(f"storm: {len(numbers)} seeds, {broken} violations")
    return broken


def _show(asked: StormOptions, outcome: "Outcome") -> None:
    if asked.is_traced:
        click.echo("\n".join(outcome.lines))
    if not outcome.violations:
        return
    shortest, kept = _shortest(asked, outcome)
    click.echo(f"seed {outcome.plan.seed}: {len(outcome.violations)} violations")
    for violation in shortest.violations:
        click.echo(f"  {violation}")
    click.echo("  incidents:")
    for incident in shortest.plan.incidents:
        click.echo(f"    {incident}")
    for line in () if asked.is_traced else _last_lines(shortest):
        click.echo(f"    {line}")
    numbers = ",".join(map(str, sorted(kept)))
    click.echo(f"  replay: phalanx test storm --seeds {outcome.plan.seed} --incidents '{numbers}' --trace")


def _last_lines(outcome: "Outcome") -> "Sequence[str]":
    """Return what happened last before the first violation; what comes after it explains nothing."""
    end = next((number for number, line in enumerate(outcome.lines, start=1) if BROKEN in line), len(outcome.lines))
    return outcome.lines[max(end - SHOWN_LINES, 0) : end]


def _shortest(asked: StormOptions, outcome: "Outcome") -> "tuple[Outcome, frozenset[int]]":
    from phalanx.testing.storm.shrink import shrunk

    if not asked.shrinks or asked.only is not None:
        return outcome, asked.kept() or frozenset(range(len(outcome.plan.incidents)))
    return shrunk(outcome)
