"""`phalanx get`: the objects of a running cluster."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phalanx.cli.server import namespace_option, server_option

if TYPE_CHECKING:
    from phalanx.store.kube.client import Client

EXAMPLES = """\b
Examples:
  phalanx get gangs -A
  phalanx get pods -n research -l app=bert -o wide
"""

FORMS = ("table", "wide", "json", "yaml", "name")


@click.command(epilog=EXAMPLES)
@click.argument("kind", metavar="KIND")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@namespace_option
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Look in all namespaces.")
@click.option("-l", "--selector", "labels", default="", metavar="SELECTOR", help="Only those with these labels, such as app=train.")
@click.option("-o", "--output", "form", type=click.Choice(FORMS), default="table", show_default=True, help="Form of the answer.")
@click.option("-w", "--watch", "follows", is_flag=True, help="Go on and show every change, until Ctrl-C.")
@server_option
def command(server: str | None, **options: Any) -> None:  # Any: as click read them
    """Show objects of a running cluster: pods, nodes, podgroups, queues and the like, or gangs.

    A gang is a group with its pods: where it stands, and why it waits if it does.
    """
    from phalanx.cli.getting import show
    from phalanx.cli.server import ask

    asked = Options(**options)

    async def shown(client: "Client") -> None:
        await show(client, asked)

    try:
        ask(server, shown)
    except KeyboardInterrupt:
        if not asked.follows:
            raise


@dataclass(frozen=True, slots=True)
class Options:
    """What was typed."""

    kind: str
    names: tuple[str, ...]
    namespace: str
    everywhere: bool
    labels: str
    form: str
    follows: bool

    @property
    def place(self) -> str:
        """The namespace to look in; empty for all."""
        return "" if self.everywhere else self.namespace
