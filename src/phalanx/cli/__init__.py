"""The command line: one module per command, named as it is typed.

A command is imported when it is run, not before, so that `phalanx --help` and completion in the shell answer at once.
What they show comes from the table below. To add a command, write `cli/<name>.py` with a click command called `command`
and add its line to the table.

The program has two names: `phalanx`, and `kubectl-phalanx`, which kubectl runs for `kubectl phalanx`. `kubectl_complete-phalanx`
completes the latter.
"""

import sys
from copy import copy
from difflib import get_close_matches
from importlib import import_module
from pathlib import PurePath
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from phalanx import __version__
from phalanx.cli.failures import tell_failure
from phalanx.cli.streams import OutputError, guarded_streams

COMPLETE_VARIABLE = "_PHALANX_COMPLETE"
PLUGIN = "kubectl phalanx"


class Entry(NamedTuple):
    """Where a command is ("module:attribute") and what the help of the program says about it."""

    target: str
    summary: str


ENTRIES_BY_NAME = {
    "schedule": Entry("phalanx.cli.schedule:command", "Run one scheduling session and show its decisions."),
    "explain": Entry("phalanx.cli.explain:command", "Explain why a gang waits, and what would start it."),
    "try": Entry("phalanx.cli.try_:command", "Decide about a job as if it were submitted now."),
    "eta": Entry("phalanx.cli.eta:command", "Estimate when waiting gangs start."),
    "pending": Entry("phalanx.cli.pending:command", "Show waiting gangs in the order in which they are taken."),
    "simulate": Entry("phalanx.cli.simulate:command", "Simulate how gangs run on a cluster, in virtual time."),
    "tune": Entry("phalanx.cli.tune:command", "Search settings of the scheduler by simulation."),
    "record": Entry("phalanx.cli.record:command", "Record what happens in a cluster, whoever schedules it."),
    "replay": Entry("phalanx.cli.replay:command", "Decide again what a recorded scheduler decided, and compare."),
    "ui": Entry("phalanx.cli.ui:command", "Show a cluster, files or a recording in a browser."),
    "shadow": Entry("phalanx.cli.shadow:command", "Show what a shadow beside other schedulers has seen."),
    "run": Entry("phalanx.cli.run:command", "Schedule the gangs of a Kubernetes cluster."),
    "up": Entry("phalanx.cli.up:command", "Start an embedded cluster on this machine."),
    "apply": Entry("phalanx.cli.apply:command", "Create or update objects from manifests."),
    "diff": Entry("phalanx.cli.diff:command", "Show what apply would change."),
    "get": Entry("phalanx.cli.get:command", "List gangs or other objects of a cluster."),
    "describe": Entry("phalanx.cli.describe:command", "Show the details of an object, or why a gang is waiting."),
    "delete": Entry("phalanx.cli.delete:command", "Delete objects from a cluster."),
    "wait": Entry("phalanx.cli.wait:command", "Wait until objects or gangs are in some state."),
    "suspend": Entry("phalanx.cli.suspend:command", "Suspend jobs: their pods terminate, and the jobs stay."),
    "resume": Entry("phalanx.cli.resume:command", "Resume suspended jobs."),
    "queue": Entry("phalanx.cli.queue:command", "Open and close queues."),
    "convert": Entry("phalanx.cli.convert:command", "Convert gangs to another dialect."),
    "config": Entry("phalanx.cli.config:command", "Show and check scheduler configurations and profiles."),
    "manifests": Entry("phalanx.cli.manifests:command", "Print installation manifests for kubectl apply."),
    "dev": Entry("phalanx.cli.dev:command", "Run a real Kubernetes control plane on this machine."),
    "reserve-gpu": Entry("phalanx.cli.reserve_gpu:command", "Reserve a GPU for pods that share it; run by reservation pods."),
    "bench": Entry("phalanx.cli.bench:command", "Measure how long scheduling sessions take on this machine."),
    "test": Entry("phalanx.cli.test:command", "Test the scheduler itself: storms in virtual time."),
    "completion": Entry("phalanx.cli.completion:command", "Print a shell completion script."),
}

EXAMPLES = (
    "schedule -f examples/deadlock",
    "explain research/resnet -f examples/deadlock",
)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are run, and listed from the table without an import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ENTRIES_BY_NAME)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = ENTRIES_BY_NAME.get(cmd_name)
        if entry is None:
            return None
        command = copy(_load(entry.target))
        command.epilog = (command.epilog or "").replace("  phalanx ", f"  {ctx.find_root().info_name} ")
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as problem:
            close = get_close_matches(args[0], ENTRIES_BY_NAME, n=1)
            if not close:
                raise
            raise click.UsageError(f"{problem.message} Did you mean {close[0]!r}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in ENTRIES_BY_NAME.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for example in EXAMPLES:
                formatter.write_text(f"{ctx.command_path} {example}")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands = [
            CompletionItem(name, help=entry.summary) for name, entry in ENTRIES_BY_NAME.items() if name.startswith(incomplete)
        ]
        # Not super(): click.Group would import every command to read its help.
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:  # Any: as click declares it
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (Exception, KeyboardInterrupt) as problem:  # nothing that goes wrong ends in a traceback
            ctx.exit(tell_failure(problem, ctx.obj))

    def main(self, *args: Any, **settings: Any) -> Any:  # Any: passed on to click unread
        settings.setdefault("prog_name", _program_name(sys.argv[0]))
        settings.setdefault("complete_var", COMPLETE_VARIABLE)
        typed = (args[0] if args else settings.get("args")) or sys.argv[1:]
        try:
            with guarded_streams():
                return super().main(*args, **settings, obj=tuple(typed))
        except OutputError as problem:
            sys.exit(tell_failure(problem, typed))


def _load(target: str) -> click.Command:
    module_name, _, attribute = target.partition(":")
    command = getattr(import_module(module_name), attribute)
    assert isinstance(command, click.Command), f"{target} is not a click command"
    return command


def _program_name(started_as: str) -> str:
    return PLUGIN if PurePath(started_as).name.startswith("kubectl-") else "phalanx"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-v", "verbosity", type=click.IntRange(0, 9), metavar="N", expose_value=False,
    help="Verbosity of failures; at 5, internal errors are printed with their traceback.",
)  # fmt: skip
@click.version_option(__version__, prog_name="phalanx", message="%(prog)s %(version)s")
def main() -> None:
    """Gang scheduling for Kubernetes: a set of pods starts together or not at all."""
