"""The cluster that `phalanx eta` looks at: from files, or from an API server, which is only asked for lists."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from phalanx.cli import output
from phalanx.cli.connection import Reach, ask
from phalanx.config.schedulers import our_schedulers
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import Forbidden, Missing
from phalanx.model.kinds import KINDS, NODE, POD, SILENT, Kind
from phalanx.session.policy import Policy
from phalanx.store.completion import ManifestObjects
from phalanx.store.input_files import Intake, take_in
from phalanx.store.kube.client import Client
from phalanx.store.kube.discovery import served_kinds


def read_input(files: Sequence[str], reach: Reach, policy: Policy, names: Sequence[str]) -> tuple[Intake, float]:
    """Return what the files or the cluster hold, and the present time there."""
    cluster = ObjectCluster(ignored_provisioners=policy.flags.ignored_provisioners, schedulers=our_schedulers(names))
    if files:
        found, now = take_in(files, cluster, goes_on=True), datetime.now(UTC).timestamp()
    else:
        documents, now = ask(reach, _read)
        found = intake_of(documents, cluster)
    for text in (*found.notes(), *(text for _, text in found.refused)):
        output.note(text)
    return found, now


def intake_of(documents: Iterable[dict[str, Any]], cluster: ObjectCluster) -> Intake:
    """Enter objects that an API server has listed."""
    found = list(documents)
    intake = Intake(cluster, ManifestObjects(found))
    for document in found:
        intake.enter("the cluster", document)
    return intake


async def _read(client: Client, namespace: str) -> tuple[list[dict[str, Any]], float]:
    return await listed(client), client.now


async def listed(client: Client) -> list[dict[str, Any]]:
    """Return the objects of every kind that the server serves and the user may list; nodes and pods have to be among them."""
    kinds = [kind for kind in await served_kinds(client, KINDS) if kind.kind not in SILENT]
    ordered = sorted(kinds, key=lambda kind: kind.resource)
    lists = await asyncio.gather(*(_listed(client, kind) for kind in ordered))
    return [item for items in lists for item in items]


async def _listed(client: Client, kind: Kind) -> list[dict[str, Any]]:
    try:
        return (await client.list(kind, "")).items
    except (Forbidden, Missing):
        if kind.resource in (NODE.resource, POD.resource):
            raise
        return []
