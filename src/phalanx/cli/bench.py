"""`phalanx bench`: how long scheduling sessions take on this machine."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from phalanx.bench.scenarios import DEFAULT, FULL, BenchKind, BenchScenario
from phalanx.cli.progress import clear_progress, show_progress

if TYPE_CHECKING:
    from phalanx.bench.measure import CycleRow
    from phalanx.bench.suite import FailedRow

EXAMPLES = """
\b
Examples:
  phalanx bench core
  phalanx bench core --nodes 1000 --pods 10000 --gang 10 -o json
  phalanx bench evict --only "gang of 200"
  phalanx bench backlog
"""
_FILE = click.Path(dir_okay=False, path_type=Path)
_COUNT = click.IntRange(min=1)


class Named(Protocol):
    """A row to run."""

    @property
    def name(self) -> str: ...


AnyScenario = TypeVar("AnyScenario", bound=Named)
AnyRow = TypeVar("AnyRow")


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What was asked for."""

    nodes: int | None
    pods: int | None
    gang: int | None
    kind: str
    full: bool
    only: str
    output: str
    profile: Path | None
    write: Path | None

    def rows(self) -> list[BenchScenario]:
        """Return the rows to run."""
        if self.nodes and self.pods and self.gang:
            return [BenchScenario(BenchKind(self.kind), self.nodes, self.pods, self.gang)]
        if self.nodes or self.pods or self.gang:
            raise click.UsageError("one row needs all of --nodes, --pods and --gang")
        rows = [row for row in (FULL if self.full else DEFAULT) if self.only in row.name]
        if not rows:
            raise click.UsageError(f"--only {self.only!r}: no row has this in its name; 'phalanx bench core' shows the names")
        return rows

    @property
    def is_one_row(self) -> bool:
        """Tell whether a single row is described, rather than chosen from the suite."""
        return self.nodes is not None

    def command(self) -> str:
        """Return the command that gives the same table."""
        return " ".join(["phalanx bench core", *["--full"] * self.full, *[f"--only '{self.only}'"] * bool(self.only)])


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXAMPLES)
@click.pass_context
def command(context: click.Context) -> None:
    """Measure how long scheduling sessions take on this machine."""
    if context.invoked_subcommand is None:
        context.invoke(core)


@command.command(epilog=EXAMPLES)
@click.option("--nodes", type=_COUNT, help="Run a single row with this many nodes.")
@click.option("--pods", type=_COUNT, help="Pods of that row.")
@click.option("--gang", type=_COUNT, help="Pods in each gang of that row.")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in BenchKind]),
    default="plain",
    show_default=True,
    help="Constraints of that row.",
)
@click.option("--full", is_flag=True, help="Run every row, not only those that take three minutes together.")
@click.option("--only", metavar="TEXT", default="", help="Run only the rows whose name contains this text.")
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True, help="Output format.")
@click.option("--profile", type=_FILE, help="Write a cProfile dump to this file; needs a single row.")
@click.option("--write", type=_FILE, help="Also write the table to this file, as a section of Markdown; other sections stay.")
@click.pass_context
def core(context: click.Context, /, **given: Any) -> None:  # Any: click has checked the values
    """Time scheduling sessions on generated clusters: snapshot, session, enqueue, allocate, backfill."""
    options = BenchOptions(**given)
    rows = options.rows()
    if options.profile is not None and len(rows) != 1:
        raise click.UsageError(f"--profile: needs a single row, not {len(rows)}; give --nodes, --pods and --gang, or --only")
    results = _run(rows, options)
    _show(results, options)
    context.exit(_complain(results))


@command.command(epilog=EXAMPLES)
@click.option("--only", metavar="TEXT", default="", help="Run only the rows whose name contains this text.")
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True, help="Output format.")
@click.option("--profile", type=click.Choice(("volcano", "phalanx", "kai")), help="Run only the rows of this profile.")
@click.option("--write", type=_FILE, help="Also write the table to this file, as a section of Markdown; other sections stay.")
def evict(only: str, profile: str | None, output: str, write: Path | None) -> None:
    """Time sessions that evict: a gang that needs room on full nodes, and queues out of balance."""
    import msgspec

    from phalanx.bench.evict import run, scenarios, section, table
    from phalanx.bench.results_page import write_section

    chosen = [scenario for scenario in scenarios() if only in scenario.name and profile in (None, scenario.profile)]
    if not chosen:
        raise click.UsageError(f"--only {only!r}: no row has this in its name; 'phalanx bench evict' shows the names")
    rows = _run_each(chosen, run)
    shown = rows[0] if len(rows) == 1 else rows
    click.echo(msgspec.json.format(msgspec.json.encode(shown)) if output == "json" else table(rows))
    if write is not None:
        write_section(write, "evict", section(rows))


@command.command(epilog=EXAMPLES)
@click.option("--full", is_flag=True, help="Run the largest rows too: 10,000 waiting gangs, up to 500,000 pods.")
@click.option("--only", metavar="TEXT", default="", help="Run only the rows whose name contains this text.")
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True, help="Output format.")
@click.option("--write", type=_FILE, help="Also write the table to this file, as a section of Markdown; other sections stay.")
def backlog(full: bool, only: str, output: str, write: Path | None) -> None:
    """Time sessions with many waiting gangs on full nodes: the first one, one without a change, an arrival, an end."""
    import msgspec

    from phalanx.bench.backlog import run, scenarios, section, table
    from phalanx.bench.results_page import write_section

    chosen = [scenario for scenario in scenarios(is_full=full) if only in scenario.name]
    if not chosen:
        raise click.UsageError(f"--only {only!r}: no row has this in its name; 'phalanx bench backlog' shows the names")
    rows = _run_each(chosen, run)
    click.echo(msgspec.json.format(msgspec.json.encode(rows)) if output == "json" else table(rows))
    if write is not None:
        write_section(write, "backlog", section(rows))


def _run_each(chosen: Sequence[AnyScenario], run: Callable[[AnyScenario], AnyRow]) -> list[AnyRow]:
    """Run one row after the other, saying how far it has got."""
    rows = []
    for number, scenario in enumerate(chosen):
        _progress(number, chosen)
        rows.append(run(scenario))
    _clear_progress()
    return rows


def _run(rows: list[BenchScenario], options: BenchOptions) -> "list[CycleRow | FailedRow]":
    from phalanx.bench.suite import run_row, run_suite

    if len(rows) == 1 and (options.is_one_row or options.profile):
        _progress(0, rows)
        results: list[CycleRow | FailedRow] = [run_row(rows[0], profile=options.profile)]
    else:
        results = run_suite(rows, lambda number, _: _progress(number, rows))
    _clear_progress()
    if options.profile is not None:
        click.echo(f"profile written to {options.profile}; it made the row slower, so do not quote its seconds", err=True)
    return results


def _progress(number: int, rows: Sequence[Named]) -> None:
    if sys.stderr.isatty():
        show_progress(f"[{number + 1}/{len(rows)}] {rows[number].name}")


def _clear_progress() -> None:
    if sys.stderr.isatty():
        clear_progress()


def _show(results: "list[CycleRow | FailedRow]", options: BenchOptions) -> None:
    import msgspec

    from phalanx.bench.report import section, table
    from phalanx.bench.results_page import write_section

    if options.output == "json":
        shown = results[0] if options.is_one_row else results
        click.echo(msgspec.json.format(msgspec.json.encode(shown)))
    else:
        click.echo(table(results))
    if options.write is not None:
        write_section(options.write, "core", section(results, options.command()))


def _complain(results: "list[CycleRow | FailedRow]") -> int:
    """Name the rows that failed; return the exit code."""
    from phalanx.bench.suite import FailedRow

    failures = [result for result in results if isinstance(result, FailedRow)]
    for failure in failures:
        click.echo(f"error: {failure.error}", err=True)
    return 1 if failures else 0
