"""Who may ask for metrics and the configuration: whoever the API server knows by a token, and allows to get that path.

It is asked as the components of Kubernetes ask it: a TokenReview says who somebody is, a SubjectAccessReview whether he may. The
account of the scheduler needs to be allowed to create both. Without an answer of the API server nobody gets in. Answers hold for
some seconds, so that a scraper costs next to nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

from aiohttp import web

from phalanx.errors import ClusterError
from phalanx.manifests.permissions import ACCESS_REVIEW, TOKEN_REVIEW
from phalanx.model.kinds import Document, Kind
from phalanx.scheduling.timing import Clock
from phalanx.ui import PATH as PAGE

OPEN_PATHS = frozenset({"/livez", "/healthz", "/readyz"})
"""The kubelet, which asks these, has no token."""
HOLDS_SECONDS = 10.0
MOST_ANSWERS = 1024
AT_ONCE = 4
"""Questions to the API server at the same time: whoever tries tokens is not to keep it busy."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Reviewer(Protocol):
    """Answers reviews."""

    async def review(self, kind: Kind, spec: Mapping[str, Any]) -> Document:
        """Return the status of a review that the API server has answered."""
        ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why somebody does not get in, and the code of HTTP for that."""

    code: int
    reason: str


class AccessReview:
    """Asks the API server, and remembers its answers for a while."""

    def __init__(self, reviewer: Reviewer, clock: Clock) -> None:
        """Begin with no answers; `clock` counts seconds."""
        self._reviewer, self._clock = reviewer, clock
        self._answers: dict[tuple[bytes, str, str], tuple[float, Refusal | None]] = {}
        """By token, verb and path: until when, and what."""
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def refusal(self, authorization: str, verb: str, path: str) -> Refusal | None:
        """Return why a request is refused, or None; `authorization` is the header of that name."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Refusal(401, "show a token: Authorization: Bearer TOKEN")
        key = (sha256(token.strip().encode()).digest(), verb, path)
        until, known = self._answers.get(key, (0.0, None))
        if self._clock() < until:
            return known
        try:
            async with self._turn:
                found = await self._ask(token.strip(), verb, path)
        except ClusterError:
            return Refusal(503, "the API server cannot be asked who you are; try again later")
        self._remember(key, found)
        return found

    def _remember(self, key: tuple[bytes, str, str], found: Refusal | None) -> None:
        self._answers.pop(key, None)
        if len(self._answers) >= MOST_ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (self._clock() + HOLDS_SECONDS, found)

    async def _ask(self, token: str, verb: str, path: str) -> Refusal | None:
        subject = await subject_of(self._reviewer, token)
        if subject is None:
            return Refusal(401, "the API server does not know this token")
        spec = {**subject, "nonResourceAttributes": {"path": path, "verb": verb}}
        if (await self._reviewer.review(ACCESS_REVIEW, spec)).get("allowed") is True:
            return None
        return Refusal(403, f"{subject.get('user', '')} may not {verb} {path}; let a ClusterRole allow that as nonResourceURLs")

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let through who may, and everybody to probes; the page asks by itself who may see what of it."""
        if request.path in OPEN_PATHS or request.path == PAGE or request.path.startswith(f"{PAGE}/"):
            return await handler(request)
        refused = await self.refusal(request.headers.get("Authorization", ""), request.method.lower(), request.path)
        if refused is None:
            return await handler(request)
        headers = {"WWW-Authenticate": "Bearer"} if refused.code == 401 else {}
        return web.Response(text=f"{refused.reason}\n", status=refused.code, headers=headers)


_SUBJECT = {"user": "username", "groups": "groups", "uid": "uid", "extra": "extra"}
"""Parts of a SubjectAccessReview, by the fields of a TokenReview that they come from."""


async def subject_of(reviewer: Reviewer, token: str) -> Document | None:
    """Return who shows a token, as reviews name somebody; None where the API server does not know it."""
    known = await reviewer.review(TOKEN_REVIEW, {"token": token})
    user = known.get("user") or {}
    return {part: user[name] for part, name in _SUBJECT.items() if user.get(name)} if known.get("authenticated") else None
