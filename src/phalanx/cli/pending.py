"""`phalanx pending`: the waiting gangs of each queue in the order in which sessions take them; nothing is changed."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.connection import QueueName, cluster_options
from phalanx.cli.policy_options import FORMS, SessionOptions

EXAMPLES = """\b
Examples:
  phalanx pending
  phalanx pending -q research -o wide
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOptions(SessionOptions):
    """What was typed."""

    queues: tuple[str, ...]
    everywhere: bool = False

    @property
    def place(self) -> str:
        """The namespace whose gangs are shown; empty for all."""
        return "" if self.everywhere else self.reach.namespace or ""


@click.command(epilog=EXAMPLES)
@click.option(
    "-q",
    "--queue",
    "queues",
    type=QueueName(),
    multiple=True,
    metavar="NAME",
    help="Only this queue; may be repeated. All by default.",
)
@click.option("-n", "--namespace", metavar="NAME", help="Show gangs of this namespace; positions count all. All by default.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Show gangs of all namespaces, even with -n.")
@policy_options.cluster_files
@cluster_options()
@policy_options.config
@policy_options.profile
@policy_options.scheduler_names
@policy_options.moment
@click.option(
    "-o", "--output", "form", type=click.Choice((FORMS[0], "wide", *FORMS[1:])), default="table", show_default=True,
    help="Output format; wide also says why each gang waits.",
)  # fmt: skip
def command(**options: Any) -> None:  # Any: as click read them
    """Show waiting gangs in the order in which they are taken. Nothing is changed.

    Holds a session on the cluster, as 'phalanx schedule' does, and shows the line of each queue as that session found it: the
    position of a gang, the gang before it, and the rule that puts it there.
    """
    from phalanx.cli.pending_run import show

    asked = PendingOptions(**options)
    asked.refuse_clashes()
    show(asked)
