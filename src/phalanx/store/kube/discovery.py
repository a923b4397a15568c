"""Which of the kinds that we know an API server serves, and in which version."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from phalanx.errors import Missing, ServerError, Unreachable
from phalanx.model.kinds import KINDS, WORKLOADS, Document, Kind
from phalanx.store.kube.client import Client


async def served_kinds(client: Client, among: Iterable[Kind] = KINDS) -> frozenset[Kind]:
    """Return those kinds that the server serves, each in a version that it serves and we read.

    Where that is not the version of ``model.kinds``, or the status is written in another way, the kind that comes back is no longer
    equal to the one there: compare them by `resource`. Workloads of other projects are read in any version, since what we read of
    them seldom changes. A group that is listed and does not answer, such as metrics without their server, is left out alone.
    """
    kinds = list(among)
    groups = await client.document("/apis")
    listed = {str(group["name"]): [str(item["version"]) for item in group["versions"]] for group in groups.get("groups") or ()}
    listed[""] = ["v1"]
    versions = {kind: _readable(kind, listed.get(kind.group, ())) for kind in kinds}
    wanted = dict.fromkeys((kind.group, version) for kind in kinds for version in versions[kind])
    answers = await asyncio.gather(*(_resources(client, group, version) for group, version in wanted))
    resources = dict(zip(wanted, answers, strict=True))
    return frozenset(found for kind in kinds if (found := _served(kind, versions[kind], resources)) is not None)


def _readable(kind: Kind, listed: Sequence[str]) -> list[str]:
    """Return those of the listed versions that we read, the best first."""
    known = (kind.version, *kind.other_versions, *(listed if kind in WORKLOADS else ()))
    return [version for version in dict.fromkeys(known) if version in listed]


async def _resources(client: Client, group: str, version: str) -> frozenset[str]:
    """Return the resources of one version of a group by their plurals."""
    try:
        answer: Document = await client.document(f"/apis/{group}/{version}" if group else f"/api/{version}")
    except (Missing, ServerError, Unreachable):
        if not group:
            raise
        await client.version()  # if the server is gone, and not the group alone, this says so
        return frozenset()
    return frozenset(str(resource["name"]) for resource in answer.get("resources") or ())


def _served(kind: Kind, versions: Iterable[str], resources: Mapping[tuple[str, str], frozenset[str]]) -> Kind | None:
    """Return the kind in the first version that is served; None if there is none."""
    version = next((item for item in versions if kind.plural in resources[kind.group, item]), None)
    if version is None:
        return None
    return replace(kind, version=version, has_status=f"{kind.plural}/status" in resources[kind.group, version])
