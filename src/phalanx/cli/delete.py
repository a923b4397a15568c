"""`phalanx delete`: delete objects from a cluster."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phalanx.cli.connection import KindName, ObjectName, Reach, ask, cluster_options
from phalanx.cli.dry_run import dry_run

if TYPE_CHECKING:
    from phalanx.store.kube.client import Client

EXAMPLES = """\b
Examples:
  phalanx delete gang/bert job/evaluate -n research
  phalanx delete pods --all -n research --dry-run=server
"""

PATH = click.Path(allow_dash=True)


@click.command(epilog=EXAMPLES)
@click.argument("kind", type=KindName(), required=False, metavar="[KIND")
@click.argument("names", nargs=-1, type=ObjectName(), metavar="NAME...]")
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
@click.option("--all", "is_all", is_flag=True, help="Delete all objects of the kind in the namespace.")
@click.option("-l", "--selector", "labels", default="", metavar="SELECTOR", help="Delete the objects with matching labels.")
@dry_run
@cluster_options("Namespace of the objects.")
@click.pass_context
def command(
    ctx: click.Context, /, kind: str | None, names: tuple[str, ...], reach: Reach, **options: Any
) -> None:  # Any: as click read them
    """Delete objects by kind and name, by label, all of a kind, or those of manifests. A gang is deleted with its pods.

    Pods on a node get their grace period; objects with finalizers are deleted once these are removed.
    """
    from phalanx.cli.delete_run import Deleter, by_name, listed_targets, of_files
    from phalanx.cli.lookup import Looking, named_targets

    named = named_targets(kind or "", names)
    asked = DeleteOptions(kind or "", bool(named), **options)
    asked.refuse_clashes()
    described = of_files(asked.files) if asked.files else []

    async def deleted(client: "Client", namespace: str) -> int:
        deleter, looking = Deleter(client, namespace, asked.grace, asked.dry_run), Looking()
        listed = await listed_targets(client, asked.kind, namespace, asked.labels) if asked.selects else []
        for target in (*described, *listed):
            await deleter.delete(*target)
        for kind_name, name in named:
            for target in await looking.at(by_name(client, kind_name, namespace, name)) or ():
                await deleter.delete(*target)
        return deleter.refused + looking.missing

    if ask(reach, deleted):
        ctx.exit(1)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What was typed."""

    kind: str
    has_names: bool
    files: tuple[str, ...]
    grace: int | None
    is_all: bool
    labels: str
    dry_run: str

    @property
    def selects(self) -> bool:
        """Whether objects are chosen otherwise than by name."""
        return self.is_all or bool(self.labels)

    def refuse_clashes(self) -> None:
        """Refuse what does not go together."""
        if self.files and (self.kind or self.selects):
            raise click.UsageError("name objects, or the files that describe them with -f, not both")
        if self.has_names and self.selects:
            raise click.UsageError("name objects, or choose them with --all or -l, not both")
        if self.is_all and self.labels:
            raise click.UsageError("--all and -l exclude each other: -l alone deletes all that match")
        if not self.files and not (self.has_names or (self.kind and self.selects)):
            raise click.UsageError("nothing to delete: write KIND NAME, KIND --all, or -f PATH")
