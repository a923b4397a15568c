"""Who may see what of a cluster on the page: what the API server would show to the same person.

A TokenReview says who somebody is, SubjectAccessReviews what he may list: nodes, queues, and in each namespace pods, groups and
events. Who may list them in all namespaces is asked once; for others every namespace is asked about. Answers hold for some seconds.
Nothing is remembered of a token but its digest.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any

from phalanx.errors import ClusterError, Forbidden, ServerError, Unauthorized
from phalanx.live.access_review import Reviewer, subject_of
from phalanx.manifests.permissions import ACCESS_REVIEW
from phalanx.model.kinds import EVENT, GROUP_BY_DIALECT, KAI_QUEUE, NODE, POD, QUEUE, Kind
from phalanx.scheduling.timing import Clock
from phalanx.ui.scope import Scope
from phalanx.ui.seen import SeenCluster
from phalanx.ui.serving.redaction import namespaces_of

HOLDS_SECONDS = 10.0
MOST_ANSWERS = 4096
AT_ONCE = 8
"""Questions to the API server at the same time."""
EVERYWHERE = ""
Subject = Mapping[str, Any]  # Any: as a TokenReview has it
Key = tuple[bytes, str, str]


class PageAccess:
    """Asks the API server what readers may see."""

    needs_token = True

    def __init__(self, reviewer: Reviewer, clock: Clock) -> None:
        """Begin with no answers; `clock` counts seconds."""
        self._reviewer, self._clock = reviewer, clock
        self._subjects: dict[bytes, tuple[float, Subject | None]] = {}
        self._answers: dict[Key, tuple[float, bool]] = {}
        """By token, resource and namespace: until when, and whether it may be listed."""
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def scope(self, authorization: str, seen: SeenCluster | None) -> Scope:
        """Return what whoever shows this header may see; raises where nobody is known by it, or he may see no namespace."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthorized("show a token: Authorization: Bearer TOKEN")
        try:
            return await self._scope(token.strip(), seen)
        except (Unauthorized, Forbidden):
            raise
        except ClusterError as problem:
            raise ServerError("the API server cannot be asked who you are; try again later") from problem

    async def _scope(self, token: str, seen: SeenCluster | None) -> Scope:
        reader = _Reader(self, sha256(token.encode()).digest(), await self._subject(token))
        kinds = _group_kinds(seen)
        spaces = frozenset() if seen is None else namespaces_of(seen)
        nodes, *queues = await asyncio.gather(*(reader.may_list(kind) for kind in (NODE, QUEUE, KAI_QUEUE)))
        namespaces = await reader.namespaces((POD, *kinds), spaces)
        events = await reader.namespaces((EVENT,), spaces if namespaces is None else namespaces)
        found = Scope(namespaces, events, nodes, any(queues))
        if found.namespaces == frozenset() and not (found.sees_nodes or found.sees_queues):
            raise Forbidden("you may not list pods in any namespace, nor nodes, nor queues")
        return found

    async def _subject(self, token: str) -> Subject:
        key = sha256(token.encode()).digest()
        until, known = self._subjects.get(key, (0.0, None))
        if self._clock() >= until:
            async with self._turn:
                known = await subject_of(self._reviewer, token)
            _remember(self._subjects, key, (self._clock() + HOLDS_SECONDS, known))
        if known is None:
            raise Unauthorized("the API server does not know this token")
        return known

    async def may_list(self, digest: bytes, subject: Subject, kind: Kind, namespace: str) -> bool:
        """Tell whether somebody may list a kind in a namespace, or everywhere."""
        key = (digest, kind.resource, namespace)
        until, allowed = self._answers.get(key, (0.0, False))
        if self._clock() < until:
            return allowed
        attributes = {
            "group": kind.group,
            "resource": kind.plural,
            "verb": "list",
            **({"namespace": namespace} if namespace else {}),
        }
        async with self._turn:
            answer = await self._reviewer.review(ACCESS_REVIEW, {**subject, "resourceAttributes": attributes})
        _remember(self._answers, key, (self._clock() + HOLDS_SECONDS, answer.get("allowed") is True))
        return answer.get("allowed") is True


def _remember(table: dict[Any, Any], key: object, value: object) -> None:  # Any: two tables with other keys and values
    table.pop(key, None)
    if len(table) >= MOST_ANSWERS:
        del table[next(iter(table))]
    table[key] = value


class _Reader:
    """Somebody who asks."""

    def __init__(self, access: PageAccess, digest: bytes, subject: Subject) -> None:
        self._access, self._digest, self._subject = access, digest, subject

    async def may_list(self, kind: Kind, namespace: str = EVERYWHERE) -> bool:
        return await self._access.may_list(self._digest, self._subject, kind, namespace)

    async def namespaces(self, kinds: Collection[Kind], among: Iterable[str]) -> frozenset[str] | None:
        """Return the namespaces in which he may list all of these kinds; None for all."""
        if all(await asyncio.gather(*(self.may_list(kind) for kind in kinds))):
            return None
        names = sorted(among)
        allowed = await asyncio.gather(*(self._may_list_all(kinds, name) for name in names))
        return frozenset(name for name, is_allowed in zip(names, allowed, strict=True) if is_allowed)

    async def _may_list_all(self, kinds: Collection[Kind], namespace: str) -> bool:
        return all([await self.may_list(kind, namespace) for kind in kinds])


def _group_kinds(seen: SeenCluster | None) -> list[Kind]:
    """Return the kinds of groups that the gangs of a cluster have."""
    dialects = set() if seen is None else {gang.dialect for gang in seen.snapshot.gangs.values() if gang.has_object}
    return [GROUP_BY_DIALECT[name] for name in sorted(dialects) if name in GROUP_BY_DIALECT]
