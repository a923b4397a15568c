"""Who may read more than probes: whoever the API server knows and allows, and nobody when it cannot be asked."""

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from phalanx.errors import Unreachable
from phalanx.live import access_review
from phalanx.live.access_review import HOLDS_SECONDS, AccessReview
from phalanx.live.health import Health
from phalanx.manifests.permissions import ACCESS_REVIEW, TOKEN_REVIEW
from phalanx.model.kinds import Document, Kind
from phalanx.web.server import serving

ADA = {"username": "ada", "groups": ["ops"], "uid": "7", "extra": {"key": ["x"]}}


class Server:
    """An API server that knows one token and allows its owner some paths."""

    def __init__(self, *paths: str) -> None:
        self.paths, self.asked, self.is_away = set(paths), list[tuple[Kind, Mapping[str, Any]]](), False

    async def review(self, kind: Kind, spec: Mapping[str, Any]) -> Document:
        self.asked.append((kind, spec))
        if self.is_away:
            raise Unreachable("no cluster at https://there: refused")
        if kind is TOKEN_REVIEW:
            return {"authenticated": True, "user": ADA} if spec["token"] == "good" else {"error": "no"}
        return {"allowed": spec["nonResourceAttributes"]["path"] in self.paths}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def code(review: AccessReview, header: str, path: str = "/metrics") -> int:
    refused = asyncio.run(review.refusal(header, "get", path))
    return 200 if refused is None else refused.code


@pytest.mark.parametrize(
    ("header", "path", "expected"),
    [
        ("Bearer good", "/metrics", 200), ("bearer  good ", "/metrics", 200), ("Bearer good", "/configz", 403),
        ("Bearer bad", "/metrics", 401), ("", "/metrics", 401), ("Bearer ", "/metrics", 401), ("Basic good", "/metrics", 401),
    ],
)  # fmt: skip
def test_a_token_decides(header: str, path: str, expected: int) -> None:
    assert code(AccessReview(Server("/metrics"), Clock()), header, path) == expected


def test_the_server_is_asked_about_all_that_it_said_of_the_user() -> None:
    server = Server("/metrics")
    code(AccessReview(server, Clock()), "Bearer good")
    attributes = {"path": "/metrics", "verb": "get"}
    subject = {"user": "ada", "groups": ["ops"], "uid": "7", "extra": {"key": ["x"]}}
    assert server.asked == [(TOKEN_REVIEW, {"token": "good"}), (ACCESS_REVIEW, {**subject, "nonResourceAttributes": attributes})]


def test_an_answer_holds_for_a_while_and_not_longer() -> None:
    server, clock = Server("/metrics"), Clock()
    review = AccessReview(server, clock)
    assert [code(review, "Bearer good") for _ in range(3)] == [200] * 3
    assert len(server.asked) == 2
    server.paths.clear()
    clock.now += HOLDS_SECONDS
    assert code(review, "Bearer good") == 403


def test_nobody_gets_in_while_the_server_cannot_be_asked() -> None:
    server = Server("/metrics")
    review = AccessReview(server, Clock())
    server.is_away = True
    assert code(review, "Bearer good") == 503
    server.is_away = False
    assert code(review, "Bearer good") == 200


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_review, "MOST_ANSWERS", 3)
    server = Server("/metrics")
    review = AccessReview(server, Clock())
    for number in range(10):
        assert code(review, f"Bearer {number}") == 401
    assert len(review._answers) == 3
    assert b"9" not in b"".join(key for key, _, _ in review._answers), "tokens are not kept"


def test_probes_are_open_and_everything_else_is_not() -> None:
    health = Health(lambda: b"figures", "text/plain", lambda: {"actions": "allocate"})

    async def codes() -> dict[str, int]:
        review = AccessReview(Server("/metrics"), Clock())
        async with serving(health.application(review.middleware)) as address, aiohttp.ClientSession() as session:
            found = {}
            for path in (
                "/livez",
                "/healthz",
                "/readyz",
                "/metrics",
                "/configz",
                "/",
                "//metrics",
                "/livez/../metrics",
                "/%6detrics",
            ):
                async with session.get(f"{address}{path}") as answer:
                    found[path] = answer.status
            return found

    found = asyncio.run(codes())
    assert {path for path, status in found.items() if status == 200} == {"/livez", "/healthz", "/readyz"}
    assert found["/metrics"] == found["/configz"] == found["/%6detrics"] == 401
