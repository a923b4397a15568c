"""`phalanx describe`: the details of an object, and its events."""

from typing import TYPE_CHECKING

import click

from phalanx.cli.connection import KindName, ObjectName, Reach, ask, cluster_options

if TYPE_CHECKING:
    from phalanx.store.kube.client import Client

EXAMPLES = """\b
Examples:
  phalanx describe resnet -n research
  phalanx describe pod/bert-0 queue/default -n research
"""


@click.command(epilog=EXAMPLES)
@click.argument("kind", type=KindName(), metavar="[KIND]")
@click.argument("names", nargs=-1, type=ObjectName(), metavar="NAME...")
@cluster_options("Namespace of the objects.")
@click.pass_context
def command(ctx: click.Context, kind: str, names: tuple[str, ...], reach: Reach) -> None:
    """Show the details of objects and their events.

    A name without a kind is a gang. For a gang: its members and their nodes, its conditions, and why it is waiting.
    """
    from phalanx.cli.describe_run import describe
    from phalanx.cli.lookup import Looking, typed_targets

    targets = typed_targets(kind, names)
    if not targets:
        program = click.get_current_context().find_root().info_name
        raise click.UsageError(f"which one? write for example: {program} describe {kind} NAME")

    async def described(client: "Client", namespace: str) -> bool:
        looking = Looking()
        for number, (kind_name, name) in enumerate(targets):
            if number > looking.missing:
                click.echo()
            await looking.at(describe(client, kind_name, namespace, name))
        return not looking.missing

    ctx.exit(0 if ask(reach, described) else 1)
