"""An exposed page shows somebody what kubectl would: a TokenReview says who asks, SubjectAccessReviews what he may list."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from phalanx.errors import ClusterError, Forbidden, ServerError, Unauthorized, Unreachable
from phalanx.live import page_access
from phalanx.live.page_access import HOLDS_SECONDS, PageAccess
from phalanx.manifests.permissions import TOKEN_REVIEW
from phalanx.model.kinds import Document, Kind
from phalanx.ui.scope import EVERYTHING, Scope
from phalanx.ui.seen import SeenCluster
from phalanx.ui.serving.redaction import HIDDEN, redacted
from tests.support import ui_clusters
from tests.support.ui_pages import seen

LIVELY = seen(ui_clusters.lively())
PODS, GROUPS, EVENTS, NODES, QUEUES = "pods", "scheduling.volcano.sh/podgroups", "events", "nodes", "scheduling.volcano.sh/queues"
ALL = tuple(("*", resource) for resource in (PODS, GROUPS, EVENTS, NODES, QUEUES))


class Server:
    """An API server that knows one token, whose owner may list resources in namespaces; `*` is everywhere."""

    def __init__(self, *rights: tuple[str, str]) -> None:
        self.rights, self.asked, self.is_away = set(rights), list[tuple[Kind, Mapping[str, Any]]](), False

    async def review(self, kind: Kind, spec: Mapping[str, Any]) -> Document:
        self.asked.append((kind, spec))
        if self.is_away:
            raise Unreachable("no cluster at https://there: refused")
        if kind is TOKEN_REVIEW:
            return {"authenticated": True, "user": {"username": "ada"}} if spec["token"] == "good" else {}
        wanted = spec["resourceAttributes"]
        resource = f"{wanted['group']}/{wanted['resource']}".lstrip("/")
        places = {"*", wanted["namespace"]} if "namespace" in wanted else {"*"}
        return {"allowed": wanted["verb"] == "list" and any((place, resource) in self.rights for place in places)}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def scope(*rights: tuple[str, str], header: str = "Bearer good", cluster: SeenCluster | None = LIVELY) -> Scope:
    return asyncio.run(PageAccess(Server(*rights), Clock()).scope(header, cluster))


def test_who_may_list_everything_sees_everything() -> None:
    assert scope(*ALL) == EVERYTHING


def test_a_namespace_is_seen_where_pods_and_groups_may_be_listed() -> None:
    found = scope(("research", PODS), ("research", GROUPS), ("batch", PODS), ("production", GROUPS))
    assert found == Scope(frozenset({"research"}), frozenset(), sees_nodes=False, sees_queues=False)


def test_events_nodes_and_queues_are_asked_about_one_by_one() -> None:
    found = scope(("research", PODS), ("research", GROUPS), ("research", EVENTS), ("*", NODES))
    assert found == Scope(frozenset({"research"}), frozenset({"research"}), sees_nodes=True, sees_queues=False)
    assert not found.is_whole


def test_who_may_list_nodes_in_a_namespace_of_his_own_may_not_list_nodes() -> None:
    assert not scope(("research", PODS), ("research", GROUPS), ("research", NODES)).sees_nodes


@pytest.mark.parametrize("header", ["", "Bearer ", "Basic good", "Bearer bad", "good"])
def test_nobody_is_let_in_without_a_token_that_is_known(header: str) -> None:
    with pytest.raises(Unauthorized):
        scope(*ALL, header=header)


def test_who_may_see_nothing_is_told_so() -> None:
    with pytest.raises(Forbidden, match="you may not list pods in any namespace"):
        scope()


def test_nobody_gets_in_while_the_server_cannot_be_asked() -> None:
    server = Server(*ALL)
    server.is_away = True
    access = PageAccess(server, Clock())
    with pytest.raises(ServerError, match="cannot be asked who you are"):
        asyncio.run(access.scope("Bearer good", LIVELY))
    server.is_away = False
    assert asyncio.run(access.scope("Bearer good", LIVELY)) == EVERYTHING


def test_answers_hold_for_a_while_and_not_longer() -> None:
    server, clock = Server(*ALL), Clock()
    access = PageAccess(server, clock)

    def ask() -> Scope:
        return asyncio.run(access.scope("Bearer good", LIVELY))

    assert ask() == ask() == EVERYTHING
    asked = len(server.asked)
    assert ask() == EVERYTHING
    assert len(server.asked) == asked, "nothing was asked again"
    server.rights = {("research", PODS), ("research", GROUPS)}
    clock.now += HOLDS_SECONDS
    assert ask().namespaces == frozenset({"research"}), "what was taken away is gone soon"


def test_what_is_remembered_is_bounded_and_holds_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_access, "MOST_ANSWERS", 3)
    access = PageAccess(Server(*ALL), Clock())
    for number in range(10):
        with pytest.raises(ClusterError):
            asyncio.run(access.scope(f"Bearer secret-{number}", LIVELY))
    asyncio.run(access.scope("Bearer good", LIVELY))
    assert (len(access._subjects), len(access._answers)) == (3, 3)
    assert b"good" not in b"".join(access._subjects)


# --- names of others -----------------------------------------------------------------------------------------------------

MINE = Scope(frozenset({"batch"}), frozenset(), sees_nodes=False, sees_queues=False)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ():
        yield from (text for part in item for text in texts(part))


def test_sentences_lose_the_names_of_gangs_that_may_not_be_seen() -> None:
    given = {"why": "behind research/bert-1.a@0: priority", "rows": [("production/serve", 1), "batch/llama"], "research/bert": 1}
    assert list(texts(redacted(given, MINE, LIVELY))) == [
        "why", f"behind {HIDDEN}: priority", "rows", HIDDEN, "batch/llama", HIDDEN,
    ]  # fmt: skip


def test_who_sees_all_namespaces_gets_the_document_as_it_is() -> None:
    given = {"why": "behind research/bert"}
    assert redacted(given, EVERYTHING, LIVELY) is given
