"""`phalanx describe`: the details of an object, and its events."""

from typing import TYPE_CHECKING

import click

from phalanx.cli.connection import KindName, ObjectName, Reach, ask, cluster_options

if TYPE_CHECKING:
    from phalanx.store.kube.client import Client

EXAMPLES = """\b
Examples:
  phalanx describe resnet -n research
  phalanx describe pod/bert-0 -n research
"""


@click.command(epilog=EXAMPLES)
@click.argument("kind", type=KindName(), metavar="[KIND]")
@click.argument("names", nargs=-1, type=ObjectName(), metavar="NAME...")
@cluster_options("Namespace of the object.")
@click.pass_context
def command(ctx: click.Context, kind: str, names: tuple[str, ...], reach: Reach) -> None:
    """Show the details of an object and its events.

    A name without a kind is a gang. For a gang: its members and their nodes, its conditions, and why it is waiting.
    """
    from phalanx.cli.describe_run import describe
    from phalanx.cli.lookup import Looking, is_known, split_name

    kind_name, all_names = split_name(kind, names) if names or "/" in kind or is_known(kind) else ("gang", (kind,))
    if not all_names:
        raise click.UsageError(
            f"which one? write for example: {click.get_current_context().find_root().info_name} describe {kind_name} NAME"
        )

    async def described(client: "Client", namespace: str) -> bool:
        looking = Looking()
        for number, name in enumerate(all_names):
            if number > looking.missing:
                click.echo()
            await looking.at(describe(client, kind_name, namespace, name))
        return not looking.missing

    ctx.exit(0 if ask(reach, described) else 1)
