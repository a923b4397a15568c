"""`phalanx apply`: create or update objects from manifests."""

from typing import TYPE_CHECKING, Any

import click

from phalanx.cli.connection import Reach, ask, cluster_options

if TYPE_CHECKING:
    from phalanx.model.kinds import Kind
    from phalanx.store.kube.client import Client

EXAMPLES = """\b
Examples:
  phalanx apply -f examples/deadlock
  cat jobs.yaml | phalanx apply -f -
"""

PATH = click.Path(allow_dash=True)


@click.command(epilog=EXAMPLES)
@click.option(
    "-f", "--filename", "files", type=PATH, multiple=True, metavar="PATH...", help="Files or directories to read, or - for stdin."
)
@click.argument("more_files", type=PATH, nargs=-1, metavar="[PATH]...")
@cluster_options("Namespace of objects that have none.")
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], more_files: tuple[str, ...], reach: Reach) -> None:
    """Create or update objects from manifests.

    Fields that an earlier apply set and the manifest no longer has are removed; fields set by others are kept. Missing
    namespaces are created. If the cluster rejects an object, the others are still applied.
    """
    from phalanx.cli.output import note
    from phalanx.store.apply import rank
    from phalanx.store.input_files import take_in

    paths = (*files, *more_files)
    if not paths:
        raise click.UsageError("nothing to read: name files or folders with -f, or stdin with -f -")
    intake = take_in(paths)
    for text in intake.duplicates():
        note(text)
    documents = sorted(intake.documents, key=lambda found: rank(found[1]))

    async def apply_all(client: "Client", namespace: str) -> int:
        applier = _Applier(client, namespace)
        for place, document in documents:
            await applier.apply(place, document)
        return applier.refused

    if ask(reach, apply_all):
        ctx.exit(1)


class _Applier:
    """Applies one object after the other, and counts those that were refused."""

    def __init__(self, client: "Client", namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._known_namespaces: set[str] = set()
        self.refused = 0

    async def apply(self, place: str, document: dict[str, Any]) -> None:
        """Apply one object and say what became of it."""
        from phalanx.cli import output
        from phalanx.cli.lookup import title
        from phalanx.errors import ClusterError, Unreachable
        from phalanx.model.kinds import kind_of
        from phalanx.store.apply import wanted

        try:
            kind = kind_of(document)
            found = wanted(kind, document, self._namespace)
            if kind.is_namespaced:
                await self._ensure_namespace(found["metadata"]["namespace"])
            output.say(f"{title(kind, found['metadata']['name'])} {await self._write(kind, found)}")
        except Unreachable:
            raise
        except ClusterError as problem:
            self.refused += 1
            output.complain(f"error: {place}: {problem}")

    async def _ensure_namespace(self, name: str) -> None:
        from phalanx.cli import output
        from phalanx.errors import Exists, Missing
        from phalanx.model.kinds import NAMESPACE

        if name in self._known_namespaces:
            return
        try:
            await self._client.get(NAMESPACE, "", name)
        except Missing:
            try:
                await self._client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
                output.say(f"namespace/{name} created, as it was missing")
            except Exists:
                pass  # another client was quicker
        self._known_namespaces.add(name)

    async def _write(self, kind: "Kind", document: dict[str, Any]) -> str:
        """Create or change an object; return what was done."""
        from phalanx.errors import Missing
        from phalanx.store.apply import change, with_last_applied

        place = (kind, document["metadata"].get("namespace", ""), document["metadata"]["name"])
        try:
            live = await self._client.get(*place)
        except Missing:
            await self._client.create(with_last_applied(document))
            return "created"
        patch = change(document, live)
        if not patch:
            return "unchanged"
        await self._client.patch(*place, patch)
        if kind.has_status and "status" in patch:
            await self._client.patch(*place, {"status": patch["status"]}, is_status=True)
        return "configured"
