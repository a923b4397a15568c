"""`phalanx apply`: create or update objects from manifests."""

from typing import TYPE_CHECKING, Any

import click

from phalanx.cli.connection import Reach, ask, cluster_options
from phalanx.cli.dry_run import CLIENT, NONE, SERVER, SUFFIXES, dry_run

if TYPE_CHECKING:
    from phalanx.model.kinds import Kind
    from phalanx.store.kube.client import Client

EXAMPLES = """\b
Examples:
  phalanx apply -f examples/deadlock
  cat jobs.yaml | phalanx apply -f - --dry-run=server
"""

PATH = click.Path(allow_dash=True)


@click.command(epilog=EXAMPLES)
@click.option(
    "-f", "--filename", "files", type=PATH, multiple=True, metavar="PATH...", help="Files or directories to read, or - for stdin."
)
@click.argument("more_files", type=PATH, nargs=-1, metavar="[PATH]...")
@dry_run
@cluster_options("Namespace of objects that have none.")
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], more_files: tuple[str, ...], dry_run: str, reach: Reach) -> None:
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
        applier = _Applier(client, namespace, dry_run)
        for place, document in documents:
            await applier.apply(place, document)
        return applier.refused

    if ask(reach, apply_all):
        ctx.exit(1)


class _Applier:
    """Applies one object after the other, and counts those that were refused."""

    def __init__(self, client: "Client", namespace: str, dry_run: str = NONE) -> None:
        self._client, self._namespace, self._dry_run = client, namespace, dry_run
        self._known_namespaces: set[str] = set()
        self._missing_namespaces: set[str] = set()
        """Those that a dry run did not create; the server cannot check what is in them."""
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
            is_unchecked = found["metadata"].get("namespace") in self._missing_namespaces
            suffix = SUFFIXES[CLIENT if is_unchecked else self._dry_run]
            output.say(f"{title(kind, found['metadata']['name'])} {await self._write(kind, found)}{suffix}")
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
                if self._dry_run == NONE:
                    await self._client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
                else:
                    self._missing_namespaces.add(name)
                output.say(f"namespace/{name} created, as it was missing{SUFFIXES[self._dry_run]}")
            except Exists:
                pass  # another client was quicker
        self._known_namespaces.add(name)

    async def _write(self, kind: "Kind", document: dict[str, Any]) -> str:
        """Create or change an object; return what was done."""
        from phalanx.errors import Missing
        from phalanx.store.apply import change, with_last_applied

        place = (kind, document["metadata"].get("namespace", ""), document["metadata"]["name"])
        is_sent, is_trial = self._dry_run != CLIENT, self._dry_run == SERVER
        try:
            live = await self._client.get(*place)
        except Missing:
            if is_sent and place[1] not in self._missing_namespaces:
                await self._client.create(with_last_applied(document), is_trial=is_trial)
            return "created"
        patch = change(document, live)
        if not patch:
            return "unchanged"
        if is_sent:
            await self._client.patch(*place, patch, is_trial=is_trial)
            if kind.has_status and "status" in patch:
                await self._client.patch(*place, {"status": patch["status"]}, is_status=True, is_trial=is_trial)
        return "configured"
