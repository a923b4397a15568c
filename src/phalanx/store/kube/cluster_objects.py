"""The objects of a cluster that decide how its gangs are scheduled: listed once from an API server, and never written.

Secrets, ConfigMaps and Events are not among them.

Pods are listed first, and the other kinds as soon as their first page is there. All pages of a list show the version of the first,
so whatever a pod refers to is listed as it was when the pod was, or later: what was made together is not torn apart.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from phalanx.errors import Busy, ClusterError, Forbidden, Gone, Missing, NotAllowed, Unauthorized, Unreachable
from phalanx.manifests.permissions import kinds_listed
from phalanx.model.kinds import KINDS, NODE, POD, Kind
from phalanx.store.kube.client import Client
from phalanx.store.kube.discovery import discover
from phalanx.store.listed_cluster import ListedCluster

REQUIRED = (NODE, POD)
"""Without these there is nothing to decide."""
PAGE = 1000
AT_ONCE = 6
"""Lists that are asked for at the same time; an API server lets one user have some ten requests under way."""
MOST_TRIES = 4
SHORTEST_PAUSE_SECONDS = 0.5
Progress = Callable[[Kind, int, int], None]
"""Called after each page with the kind, how many of its objects were read, and how many there are."""


async def list_cluster(client: Client, progress: Progress = lambda kind, read, total: None) -> ListedCluster:
    """Return the objects of all kinds that matter; only nodes and pods have to be readable."""
    found = await discover(client, kinds_listed())
    by_resource = {kind.resource: kind for kind in kinds_listed()}
    served = {by_resource[kind.resource]: kind for kind in found.kinds}
    client.served = {own: kind for own, kind in served.items() if own != kind}
    reading = _Reading(client, progress)
    reading.problems |= found.unanswered
    await reading.run(served)
    _refuse(client, reading.problems)
    ordered = [item for kind in KINDS for item in reading.items.get(kind, ())]
    return ListedCluster(client.server, client.now, ordered, {kind: reading.problems[kind] for kind in _ordered(reading.problems)})


def _ordered(kinds: Iterable[Kind]) -> list[Kind]:
    return sorted(kinds, key=KINDS.index)


def _refuse(client: Client, problems: Mapping[Kind, ClusterError]) -> None:
    """Raise what makes the rest worthless."""
    for problem in problems.values():
        if isinstance(problem, Unauthorized):
            raise problem
    hidden = [kind.plural for kind in REQUIRED if isinstance(problems.get(kind), Forbidden)]
    if hidden:
        role = "ask for the ClusterRole that 'phalanx manifests reader --user NAME' prints"
        raise Forbidden(f"{client.server}: you may not list the {' and '.join(hidden)} of all namespaces; {role}")
    for kind in REQUIRED:
        if kind in problems:
            raise problems[kind]


class _Reading:
    """Lists of several kinds at once."""

    def __init__(self, client: Client, progress: Progress) -> None:
        self._client, self._progress = client, progress
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._has_begun = asyncio.Event()
        self.items: dict[Kind, list[dict[str, Any]]] = {}
        self.problems: dict[Kind, ClusterError] = {}

    async def run(self, kinds: Collection[Kind]) -> None:
        """List everything."""
        pods = asyncio.create_task(self._read(POD))
        await self._has_begun.wait()
        # The large lists first, so that none of them is left for the end.
        others = sorted((kind for kind in kinds if kind is not POD), key=lambda kind: (kind is not NODE, KINDS.index(kind)))
        await asyncio.gather(pods, *map(self._read, others))

    async def _read(self, kind: Kind) -> None:
        try:
            async with self._turn:
                await self._read_patiently(kind)
        except (Missing, NotAllowed):
            self.items.pop(kind, None)  # it went after discovery, or can only be created
        except ClusterError as problem:
            self.items.pop(kind, None)
            self.problems[kind] = problem
        finally:
            self._has_begun.set()
        if isinstance(self.problems.get(kind), Unreachable):
            await self._client.version()  # if the server is gone, and not this kind alone, this says so: half a cluster is none

    async def _read_patiently(self, kind: Kind) -> None:
        """List a kind; begin again when the server is busy, or no longer knows the version of the first page."""
        for tries_left in reversed(range(MOST_TRIES)):
            try:
                await self._read_pages(kind)
            except (Busy, Gone) as problem:
                if not tries_left:
                    raise
                await asyncio.sleep(max(problem.retry_after, SHORTEST_PAUSE_SECONDS))
            else:
                return

    async def _read_pages(self, kind: Kind) -> None:
        items = self.items[kind] = []
        async for page in self._client.pages(kind, page=PAGE):
            items += page.items
            self._progress(kind, len(items), len(items) + page.remaining)
            if kind is POD:
                self._has_begun.set()
