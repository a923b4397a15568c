"""`phalanx delete`: delete objects from a cluster."""

from typing import TYPE_CHECKING

import click

from phalanx.cli.connection import KindName, Reach, ask, cluster_options

if TYPE_CHECKING:
    from phalanx.store.kube.client import Client

EXAMPLES = """\b
Examples:
  phalanx delete gang bert -n research
  phalanx delete -f examples/deadlock
"""

PATH = click.Path(allow_dash=True)


@click.command(epilog=EXAMPLES)
@click.argument("kind", type=KindName(), required=False, metavar="[KIND")
@click.argument("names", nargs=-1, metavar="NAME...]")
@click.option(
    "-f", "--filename", "files", type=PATH, multiple=True, metavar="PATH...", help="Delete the objects of these manifests."
)
@click.option(
    "--grace-period",
    "grace",
    type=click.IntRange(min=0),
    metavar="SECONDS",
    help="Time for pods to terminate; 0 deletes them immediately.",
)
@cluster_options("Namespace of the objects.")
@click.pass_context
def command(
    ctx: click.Context,
    kind: str | None,
    names: tuple[str, ...],
    files: tuple[str, ...],
    grace: int | None,
    reach: Reach,
) -> None:
    """Delete objects by kind and name, or those of manifests. A gang is deleted with its pods.

    Pods on a node get their grace period; objects with finalizers are deleted once these are removed.
    """
    from phalanx.cli.delete_run import Deleter, by_name, of_files
    from phalanx.cli.lookup import Looking, split_name

    kind_name, all_names = split_name(kind or "", names)
    if files and kind:
        raise click.UsageError("name objects, or the files that describe them with -f, not both")
    if not files and not all_names:
        raise click.UsageError("nothing to delete: write KIND NAME, or -f PATH")
    listed = of_files(files) if files else []

    async def deleted(client: "Client", namespace: str) -> int:
        deleter, looking = Deleter(client, namespace, grace), Looking()
        for target in listed:
            await deleter.delete(*target)
        for name in all_names:
            for target in await looking.at(by_name(client, kind_name, namespace, name)) or ():
                await deleter.delete(*target)
        return deleter.refused + looking.missing

    if ask(reach, deleted):
        ctx.exit(1)
