"""Which of the kinds that we know an API server serves, and in which version.

Servers since Kubernetes 1.26 answer that for all groups at once, in an aggregated form. A group of which such an answer is stale,
because another server has it and does not answer, is asked for alone, and so are all groups of older servers.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from phalanx.errors import Busy, ClusterError, Missing, ServerError, Unreachable
from phalanx.model.kinds import KINDS, WORKLOADS, Document, Kind
from phalanx.store.api_client import ApiClient

GROUP_SECONDS = 5.0
"""For so long one group is waited for: the server asks others for some, such as metrics, and those may hang."""
AGGREGATED_KIND, CURRENT = "APIGroupDiscoveryList", "Current"
AGGREGATED = f"application/json;g=apidiscovery.k8s.io;v=v2;as={AGGREGATED_KIND},application/json"
Answer = frozenset[str] | ClusterError
"""The resources of one version of a group by their plurals, or why they are unknown."""
GroupVersion = tuple[str, str]


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
    groups = await client.document("/apis", accept=AGGREGATED)
    known: dict[GroupVersion, Answer] = {}
    if groups.get("kind") == AGGREGATED_KIND:
        listed, known = _aggregated([groups, await client.document("/api", accept=AGGREGATED)])
    else:
        listed = {
            str(group["name"]): tuple(str(item["version"]) for item in group["versions"]) for group in groups.get("groups") or ()
        }
    listed[""] = ("v1",)
    versions = {kind: _readable(kind, listed.get(kind.group, ())) for kind in kinds}
    wanted = dict.fromkeys((kind.group, version) for kind in kinds for version in versions[kind])
    unknown = [one for one in wanted if one not in known]
    answers = known | dict(zip(unknown, await asyncio.gather(*(_resources(client, *one) for one in unknown)), strict=True))
    asked = {kind: {version: answers[kind.group, version] for version in versions[kind]} for kind in kinds}
    served = frozenset(found for kind in kinds if (found := _served(kind, asked[kind])) is not None)
    return Discovery(served, {kind: problem for kind in kinds if (problem := _unanswered_of(kind, asked[kind])) is not None})


def _aggregated(answers: Iterable[Document]) -> tuple[dict[str, tuple[str, ...]], dict[GroupVersion, Answer]]:
    """Return the versions of all groups, and the resources of those that are not stale."""
    listed, known = dict[str, tuple[str, ...]](), dict[GroupVersion, Answer]()
    for group in (item for answer in answers for item in answer.get("items") or ()):
        name = str(group["metadata"].get("name", ""))
        listed[name] = tuple(str(item["version"]) for item in group.get("versions") or ())
        for item in group.get("versions") or ():
            if item.get("freshness") == CURRENT:
                known[name, str(item["version"])] = frozenset(_names(item.get("resources") or ()))
    return listed, known


def _names(resources: Iterable[Document]) -> Iterable[str]:
    """Yield the plurals of resources, and those of their subresources behind a slash."""
    for resource in resources:
        plural = str(resource["resource"])
        if resource.get("responseKind"):  # or only what is below it is served
            yield plural
        yield from (f"{plural}/{item['subresource']}" for item in resource.get("subresources") or ())


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
