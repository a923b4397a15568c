"""What `phalanx diff` does: a dry run of apply on the server, and the live objects beside what they would become."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.cli import output
from phalanx.cli.connection import Reach, ask
from phalanx.cli.yaml_text import yaml_text
from phalanx.errors import ClusterError, Missing, Unreachable
from phalanx.model.kinds import NAMESPACE, Document, kind_of
from phalanx.model.merging import merged
from phalanx.store.apply import LAST_APPLIED, change, rank, wanted
from phalanx.store.input_files import take_in
from phalanx.store.kube.client import Client

OF_THE_SERVER = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
"""Metadata that differ without meaning anything."""


class Differ:
    """Shows one object after the other, and counts those that would change and those that are refused."""

    def __init__(self, client: Client, namespace: str) -> None:
        """Objects that name no namespace are in this one."""
        self._client, self._namespace = client, namespace
        self.different = self.refused = 0

    async def show(self, place: str, document: Document) -> None:
        """Show what would change in an object."""
        try:
            kind = kind_of(document)
            found = wanted(kind, document, self._namespace)
            live = await self._live(found)
            after = await self._after(found, live)
        except Unreachable:
            raise
        except ClusterError as problem:
            self.refused += 1
            output.complain(f"error: {place}: {problem}")
            return
        lines = _lines(_name(found), live, after)
        self.different += bool(lines)
        if lines:
            output.write_lines(lines)

    async def _live(self, found: Document) -> Document | None:
        meta = found["metadata"]
        try:
            return await self._client.get(kind_of(found), meta.get("namespace", ""), meta["name"])
        except Missing:
            return None

    async def _after(self, found: Document, live: Document | None) -> Document:
        """Return what an object would become."""
        kind, meta = kind_of(found), found["metadata"]
        if live is None:
            return await self._created(found)
        patch = _without_note(change(found, live))
        if not patch:
            return live
        after = await self._client.patch(kind, meta.get("namespace", ""), meta["name"], patch, is_trial=True)
        return merged(after, {"status": patch["status"]}) if "status" in patch else after

    async def _created(self, found: Document) -> Document:
        """Return what a new object would become; one in a namespace that is missing, and would be created too, stays as it is."""
        namespace = found["metadata"].get("namespace", "")
        if namespace:
            try:
                await self._client.get(NAMESPACE, "", namespace)
            except Missing:
                return found
        return await self._client.create(found, is_trial=True)


def diff(reach: Reach, paths: Sequence[str]) -> Differ:
    """Show what applying files would change."""
    documents = sorted(take_in(paths).documents, key=lambda found: rank(found[1]))

    async def shown(client: Client, namespace: str) -> Differ:
        differ = Differ(client, namespace)
        for place, document in documents:
            await differ.show(place, document)
        return differ

    return ask(reach, shown)


def _without_note(patch: Document) -> dict[str, Any]:
    """Return a patch without the annotation of what was applied last."""
    meta = dict(patch.get("metadata") or {})
    annotations = {key: value for key, value in (meta.pop("annotations", None) or {}).items() if key != LAST_APPLIED}
    meta |= {"annotations": annotations} if annotations else {}
    rest = {key: value for key, value in patch.items() if key != "metadata"}
    return {**rest, **({"metadata": meta} if meta else {})}


def _name(found: Document) -> str:
    """Name an object as kubectl diff does: ``v1.Pod.default.train-0``."""
    meta = found["metadata"]
    parts = (str(found["apiVersion"]).replace("/", "."), found["kind"], meta.get("namespace", ""), meta["name"])
    return ".".join(filter(None, map(str, parts)))


def _lines(name: str, live: Document | None, after: Document) -> list[str]:
    old, new = ([] if item is None else _text(item).splitlines() for item in (live, after))
    return list(difflib.unified_diff(old, new, f"live/{name}", f"merged/{name}", lineterm=""))


def _text(item: Document) -> str:
    meta = {key: value for key, value in item["metadata"].items() if key not in OF_THE_SERVER}
    annotations = {key: value for key, value in (meta.pop("annotations", None) or {}).items() if key != LAST_APPLIED}
    meta |= {"annotations": annotations} if annotations else {}
    return yaml_text(_sorted({**item, "metadata": meta}))


def _sorted(value: Any) -> Any:  # Any: whatever JSON holds
    """Return a value with the fields of all objects in it by name: servers return them in any order."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
