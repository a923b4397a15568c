"""Which of the kinds that we know an API server serves, and in which version."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from phalanx.errors import Busy, ClusterError, Missing, ServerError, Unreachable
from phalanx.model.kinds import KINDS, WORKLOADS, Document, Kind
from phalanx.store.api_client import ApiClient

GROUP_SECONDS = 5.0
"""For so long one group is waited for: the server asks others for some, such as metrics, and those may hang."""
Answer = frozenset[str] | ClusterError
"""The resources of one version of a group by their plurals, or why they are unknown."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """Which of the requested kinds a server serves."""

    kinds: frozenset[Kind]
    """Those that it serves, each in a version that it serves and we read."""
    unanswered: Mapping[Kind, ClusterError]
    """Kinds whose group did not answer, and why; they may or may not be served."""


async def served_kinds(client: ApiClient, among: Iterable[Kind] = KINDS) -> frozenset[Kind]:
    """Return those kinds that the server serves, each in a version that it serves and we read.

    Where that is not the version of ``model.kinds``, or the status is written in another way, the kind that comes back is no longer
    equal to the one there: compare them by `resource`. Workloads of other projects are read in any version, since what we read of
    them seldom changes. A group that is listed and does not answer, such as metrics without their server, is left out alone.
    """
    return (await discover(client, among)).kinds


async def discover(client: ApiClient, among: Iterable[Kind] = KINDS) -> Discovery:
    """Return which kinds the server serves, and which groups did not answer; see `served_kinds`."""
    kinds = list(among)
    groups = await client.document("/apis")
    listed = {str(group["name"]): tuple(str(item["version"]) for item in group["versions"]) for group in groups.get("groups") or ()}
    listed[""] = ("v1",)
    versions = {kind: _readable(kind, listed.get(kind.group, ())) for kind in kinds}
    wanted = dict.fromkeys((kind.group, version) for kind in kinds for version in versions[kind])
    answers = dict(zip(wanted, await asyncio.gather(*(_resources(client, *one) for one in wanted)), strict=True))
    asked = {kind: {version: answers[kind.group, version] for version in versions[kind]} for kind in kinds}
    served = frozenset(found for kind in kinds if (found := _served(kind, asked[kind])) is not None)
    return Discovery(served, {kind: problem for kind in kinds if (problem := _unanswered_of(kind, asked[kind])) is not None})


@cache
def _readable(kind: Kind, listed: tuple[str, ...]) -> list[str]:
    """Return those of the listed versions that we read, the best first."""
    known = (kind.version, *kind.other_versions, *(listed if kind in WORKLOADS else ()))
    return [version for version in dict.fromkeys(known) if version in listed]


async def _resources(client: ApiClient, group: str, version: str) -> Answer:
    """Return the resources of one version of a group; none where the server says that there is no such version."""
    try:
        async with asyncio.timeout(GROUP_SECONDS if group else None):
            answer: Document = await client.document(f"/apis/{group}/{version}" if group else f"/api/{version}")
    except Missing:
        if not group:
            raise
        return frozenset()
    except TimeoutError:
        return await _unanswered(client, Unreachable(f"no answer within {GROUP_SECONDS:g} s"))
    except (Busy, ServerError, Unreachable) as problem:
        if not group:
            raise
        return await _unanswered(client, problem)
    return frozenset(str(resource["name"]) for resource in answer.get("resources") or ())


async def _unanswered(client: ApiClient, problem: ClusterError) -> ClusterError:
    await client.version()  # if the server is gone, and not the group alone, this says so
    return problem


def _served(kind: Kind, answers: Mapping[str, Answer]) -> Kind | None:
    """Return the kind in the first version that is served; None if there is none."""
    for version, answer in answers.items():
        if not isinstance(answer, ClusterError) and kind.plural in answer:
            has_status = f"{kind.plural}/status" in answer
            is_as_known = version == kind.version and has_status == kind.has_status
            return kind if is_as_known else replace(kind, version=version, has_status=has_status)
    return None


def _unanswered_of(kind: Kind, answers: Mapping[str, Answer]) -> ClusterError | None:
    """Return why it is unknown whether the kind is served, or in which version; None if it is known."""
    for answer in answers.values():
        if isinstance(answer, ClusterError):
            return answer
        if kind.plural in answer:
            return None
    return None
