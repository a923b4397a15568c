"""`phalanx schedule`: one scheduling session on a snapshot; nothing is changed."""

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from phalanx.cli import policy_options
from phalanx.cli.connection import cluster_options
from phalanx.cli.policy_options import PATH, SessionOptions
from phalanx.cli.step_options import Dialogue, refuse_script_without_step, step_options
from phalanx.cli.trace_options import GANG_HELP, LEVELS, VERBOSITY_HELP, refuse_gangs_without_trace

if TYPE_CHECKING:
    from phalanx.session.policy import Policy

EXAMPLES = """\b
Examples:
  phalanx schedule --context staging
  phalanx schedule -f examples/deadlock

\b
Exit status:
  0  every gang has its minimum
  1  failed: the input or the configuration is invalid
  2  invalid usage
  3  some gang has to wait, or some object was rejected or left out
"""

GANG_WAITS = 3


@click.command(epilog=EXAMPLES)
@click.option(
    "-f", "--filename", "files", type=PATH, multiple=True, metavar="PATH...", help="Files or directories to read, or - for stdin."
)
@click.argument("more_files", type=PATH, nargs=-1, metavar="[PATH]...")
@cluster_options()
@policy_options.config
@policy_options.profile
@policy_options.gates
@click.option("--shard", metavar="NAME", help="Schedule this SchedulingShard only; all shards by default.")
@click.option("--usage", type=PATH, multiple=True, metavar="FILE", help="File with the past usage of queues; may be repeated.")
@policy_options.scheduler_names
@policy_options.moment
@policy_options.form
@click.option("-v", "verbosity", type=click.Choice(LEVELS), help=VERBOSITY_HELP)
@click.option("--gang", "gangs", multiple=True, metavar="NAMESPACE/NAME", help=GANG_HELP)
@step_options
@click.option("--batch", is_flag=True, help="Read one JSON request per line from stdin and print one answer per line.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Run one scheduling session on a cluster and show its decisions. Nothing is changed.

    With --context, --kubeconfig or --server, every object that affects placement is read from a live cluster. With -f, the cluster
    is a snapshot, YAML or JSON as printed by kubectl. With both, the objects of the files are added to the live cluster.
    """
    asked = ScheduleOptions(**options)
    asked.refuse_clashes()
    if asked.batch:
        _answer_batch()
    elif asked.step:
        _step(asked)
    elif not _decide(asked):
        ctx.exit(GANG_WAITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions(SessionOptions):
    """What was typed."""

    more_files: tuple[str, ...]
    gates: tuple[str, ...]
    shard: str | None
    usage: tuple[str, ...]
    verbosity: str | None
    gangs: tuple[str, ...]
    step: bool
    script: str | None
    batch: bool

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything to read: `-f a b` names two files."""
        return self.files + self.more_files

    @property
    def dialogue(self) -> Dialogue:
        """How somebody steps through the session."""
        return Dialogue(self.script, self.form, int(self.verbosity or LEVELS[0]), self.gangs)

    @property
    def sources(self) -> tuple[str | None, ...]:
        """Everything that is read, each of which may be stdin."""
        return (*self.paths, *self.usage, self.config, self.script)

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together."""
        single = (
            self.paths, self.reach.is_named, self.config, self.profile, self.gates, self.shard, self.usage, self.names, self.now,
            self.verbosity, self.gangs, self.log, self.step,
        )  # fmt: skip
        if self.batch and (any(single) or self.form != "table"):
            raise click.UsageError("--batch takes no other option: each request brings its own objects, config and now")
        if not self.batch and not self.paths and not self.reach.is_named and not self.log:
            raise click.UsageError(
                "nothing to read: name a cluster with --context or --server, files or folders with -f, or stdin with -f -"
            )
        SessionOptions.refuse_clashes(self)  # a class with slots is made twice, and super() means the first
        refuse_gangs_without_trace(self.gangs, is_traced=self.verbosity is not None or self.step)
        refuse_script_without_step(self.step, self.script, self.form, self.sources)


def _answer_batch() -> None:
    from phalanx.cli.schedule_batch import answers

    for line in answers(sys.stdin.buffer):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def _decide(asked: ScheduleOptions) -> bool:
    """Decide and write the answer; return whether every gang has its minimum."""
    from phalanx.cli.schedule_run import scheduled, write

    found = scheduled(asked, _policy(asked))
    write(found, asked)
    return found.is_all_well


def _step(asked: ScheduleOptions) -> None:
    """Let somebody step through the session."""
    from phalanx.cli.schedule_run import stepped
    from phalanx.cli.step import hold

    hold(iter([stepped(asked, _policy(asked))]), asked.dialogue)


def _policy(asked: ScheduleOptions) -> "Policy":
    """Return the policy that was asked for."""
    from phalanx.config.policies import with_gates

    policy = with_gates(asked.policy, asked.gates)
    known = (("--shard", asked.shard, policy.follows_shards), ("--usage", asked.usage, "usage" in policy.options))
    for option, is_given, is_known in known:
        if is_given and not is_known:
            raise click.UsageError(f"{option}: only the profile kai knows it; add '--profile kai'")
    return replace(policy, flags=replace(policy.flags, shard_name=asked.shard)) if asked.shard else policy
