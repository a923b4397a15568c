"""The page over HTTP: what is let in, what headers say, documents made once, files, and names that may not be seen."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request

from phalanx.errors import Forbidden, Unauthorized
from phalanx.model.kinds import Document
from phalanx.sim.served_results import ResultFolder
from phalanx.ui.moments import RecordedMoments, RecordedSpan
from phalanx.ui.scope import EVERYTHING, Scope
from phalanx.ui.seen import SeenCluster
from phalanx.ui.serving.guard import POLICY, refusal
from phalanx.ui.showing import Showing
from phalanx.ui.still import StillSource
from phalanx.ui.views import Json
from tests.support import sim_results, ui_clusters
from tests.support.ui_pages import page_files, served_page, setup_of, still

BATCH = Scope(frozenset({"batch"}), frozenset({"batch"}), sees_nodes=False, sees_queues=False)


class Tokens:
    """Lets readers in by a token: `all` sees everything, `batch` one namespace."""

    needs_token = True

    async def scope(self, authorization: str, seen: SeenCluster | None) -> Scope:
        scopes = {"Bearer all": EVERYTHING, "Bearer batch": BATCH}
        if authorization not in scopes:
            raise Unauthorized("show a token: Authorization: Bearer TOKEN")
        return scopes[authorization]


class Namespaces(Tokens):
    """Knows of readers of namespaces only beside a cluster, as the API server is asked about the namespaces that are there."""

    async def scope(self, authorization: str, seen: SeenCluster | None) -> Scope:
        if seen is None:
            raise Forbidden("you may not list pods in any namespace, nor nodes, nor queues")
        return await super().scope(authorization, seen)


class Night:
    """A recording of nothing."""

    async def span(self) -> RecordedSpan:
        return RecordedSpan(0.0, 9.0)

    async def happenings(self) -> Json:
        return {"bars": {}}

    async def moment(self, text: str) -> float:
        raise AssertionError(text)

    async def showing(self, moment: float) -> Showing:
        raise AssertionError(moment)

    async def history(self, gang: str, until: float) -> list[Json]:
        raise AssertionError(gang)


class Answer:
    """What the server said."""

    def __init__(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        self.status, self.headers, self.body = response.status, response.headers, body

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@asynccontextmanager
async def asking(**setup: Any) -> AsyncIterator[Callable[..., Awaitable[Answer]]]:
    names = setup.pop("names", ())
    source = setup.pop("source", None) or still(ui_clusters.lively())
    async with served_page(setup_of(source, **setup), names) as address, aiohttp.ClientSession(auto_decompress=False) as client:

        async def ask(path: str, method: str = "GET", **options: Any) -> Answer:
            async with client.request(method, f"{address}{path}", allow_redirects=False, **options) as response:
                return Answer(response, await response.read())

        yield ask


def asked(path: str, method: str = "GET", *, setup: dict[str, Any] | None = None, **options: Any) -> Answer:
    async def run() -> Answer:
        async with asking(**(setup or {})) as ask:
            return await ask(path, method, **options)

    return asyncio.run(run())


# --- what is let in ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/ui/", "/ui/app/main.js", "/ui/api/overview", "/ui/api/nothing", "/ui/nothing.js"])
def test_every_answer_forbids_to_load_anything_else(path: str) -> None:
    headers = asked(path).headers
    assert headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer")
    assert headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:1"}, 200), ({"Host": "127.0.0.1"}, 200), ({"Host": "evil.example"}, 403), ({"Host": "10.1.2.3"}, 403),
        ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403), ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403), ({"Host": "127.0.0.1:99999999"}, 400),
    ],
)  # fmt: skip
def test_strangers_are_refused(headers: dict[str, str], status: int) -> None:
    assert asked("/ui/api/overview", headers=headers).status == status


def test_a_link_of_another_site_opens_the_page_and_asks_nothing() -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert [asked(path, headers=followed).status for path in ("/ui/", "/ui/api/eta?gang=research/mixtral")] == [200, 403]


def test_a_name_of_the_server_is_let_in() -> None:
    assert asked("/ui/api/overview", setup={"names": ("ui.example",)}, headers={"Host": "ui.example"}).status == 200


class Exposed:
    """The socket of a server that others can reach."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("10.0.0.5", 8443) if name == "sockname" else default


@pytest.mark.parametrize(
    ("host", "is_let_in"),
    [("10.0.0.5:8443", True), ("[fd00::5]:8443", True), ("localhost:8443", True), ("ui.example", True), ("evil.example", False),
     ("ui.example.evil.example", False), ("", False)],
)  # fmt: skip
def test_an_exposed_server_is_called_by_its_addresses_and_its_names(host: str, is_let_in: bool) -> None:
    request = make_mocked_request("GET", "/ui/", headers={"Host": host}, transport=Exposed())
    refused = refusal(request, ("ui.example",))
    assert (refused is None) is is_let_in
    assert refused is None or "--allowed-host adds a name" in refused[1]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_methods_that_could_change_something_are_refused(method: str) -> None:
    assert asked("/ui/api/overview", method).status == 405


def test_questions_with_a_body_are_json() -> None:
    assert asked("/ui/api/what-if", "POST", data="changes=[]").status == 415
    assert asked("/ui/api/what-if", "POST", data=b"[", headers={"Content-Type": "application/json"}).status == 400
    assert "the body is no JSON object" in asked("/ui/api/what-if", "POST", json=[]).data["error"]
    deep = {"changes": json.loads("[" * 300 + "]" * 300)}
    assert "nested too deeply: at most 200 levels" in asked("/ui/api/what-if", "POST", json=deep).data["error"]
    assert asked("/ui/api/what-if", "POST", json={"changes": "drain"}).data == {
        "error": "changes: write a list of changes, such as ['node/n1=drained']"
    }


def test_no_cookie_is_ever_set() -> None:
    assert "Set-Cookie" not in asked("/ui/").headers
    assert "Set-Cookie" not in asked("/ui/api/overview").headers


# --- tokens and namespaces -----------------------------------------------------------------------------------------------


def test_without_a_token_nothing_but_the_files_of_the_page_is_shown() -> None:
    async def run() -> list[tuple[int, bytes]]:
        async with asking(access=Tokens()) as ask:
            return [
                (answer.status, answer.body)
                for answer in [await ask(path) for path in ("/ui/", "/ui/api/overview", "/ui/api/events")]
            ]

    files, overview, events = asyncio.run(run())
    assert files[0] == 200
    assert (overview[0], events[0]) == (401, 401)
    assert b"research" not in overview[1]


def test_what_is_shown_is_no_secret_but_its_name_is() -> None:
    assert asked("/ui/api/about", setup={"access": Tokens()}).data["title"] == ""
    assert asked("/ui/api/about").data["title"] == "test"


def test_a_reader_of_one_namespace_gets_nothing_of_others() -> None:
    async def run() -> dict[str, Answer]:
        async with asking(access=Tokens()) as ask:
            paths = ("overview", "gangs", "queues", "nodes", "gang?gang=batch/llama", "pending", "explain?gang=batch/pretrain")
            return {path: await ask(f"/ui/api/{path}", headers={"Authorization": "Bearer batch"}) for path in paths}

    for path, answer in asyncio.run(run()).items():
        assert answer.status == 200, path
        text = _plain(answer)
        assert "research/" not in text, path
        assert "production/" not in text, path


@pytest.mark.parametrize(
    "path", ["gang?gang=research/bert", "explain?gang=research/bert", "sessions", "steps?session=1", "node?node=node-00000"]
)
def test_a_reader_of_one_namespace_is_refused_the_rest(path: str) -> None:
    answer = asked(f"/ui/api/{path}", setup={"access": Tokens()}, headers={"Authorization": "Bearer batch"})
    assert answer.status in (403, 404)


def test_events_that_may_not_be_listed_are_called_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*asked: object) -> list[Document]:
        raise Forbidden("events is forbidden")

    shown = asked("/ui/api/gang-events?gang=research/mixtral").data
    assert ([event["count"] for event in shown["events"]], shown["hidden"]) == ([1, 2], False)
    monkeypatch.setattr(StillSource, "events", refuse)
    assert asked("/ui/api/gang-events?gang=research/mixtral").data == {"events": [], "hidden": True}


def test_only_who_sees_everything_may_try_changes() -> None:
    body = {"changes": ["node/node-00000=drained"]}
    for token, status in (("batch", 403), ("all", 200)):
        answer = asked(
            "/ui/api/what-if", "POST", setup={"access": Tokens()}, json=body, headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status == status


def test_only_who_sees_everything_sees_simulations(tmp_path: Path) -> None:
    (tmp_path / "nightly.json").write_bytes(json.dumps(sim_results.crowd(5)).encode())
    setup = {"access": Tokens(), "simulations": ResultFolder(tmp_path)}
    for path in ("simulations", "simulation?name=nightly"):
        for token, status in (("batch", 403), ("all", 200)):
            answer = asked(f"/ui/api/{path}", setup=setup, headers={"Authorization": f"Bearer {token}"})
            assert answer.status == status


def test_who_sees_a_namespace_of_the_cluster_sees_from_when_to_when_a_recording_is() -> None:
    setup = {"access": Namespaces(), "moments": RecordedMoments(Night())}
    answers = [asked("/ui/api/moments", setup=setup, headers={"Authorization": f"Bearer {token}"}) for token in ("batch", "all")]
    assert [answer.data for answer in answers] == [{"begun": 0.0, "ended": 9.0}, {"begun": 0.0, "ended": 9.0, "bars": {}}]


def test_readers_of_different_scopes_do_not_share_documents() -> None:
    async def run() -> tuple[str, str]:
        async with asking(access=Tokens()) as ask:
            everything = await ask("/ui/api/gangs", headers={"Authorization": "Bearer all"})
            return _plain(everything), _plain(await ask("/ui/api/gangs", headers={"Authorization": "Bearer batch"}))

    everything, batch = asyncio.run(run())
    assert "research/bert" in everything
    assert "research" not in batch


def _plain(answer: Answer) -> str:
    packed = answer.headers.get("Content-Encoding") == "gzip"
    return (gzip.decompress(answer.body) if packed else answer.body).decode()


# --- documents and files -------------------------------------------------------------------------------------------------


def test_a_document_that_the_reader_has_is_not_sent_again() -> None:
    async def run() -> tuple[Answer, Answer]:
        async with asking() as ask:
            first = await ask("/ui/api/gangs")
            return first, await ask("/ui/api/gangs", headers={"If-None-Match": first.headers["ETag"]})

    first, second = asyncio.run(run())
    assert (first.status, second.status, second.body) == (200, 304, b"")


def test_large_documents_are_packed() -> None:
    answer = asked("/ui/api/nodes", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(json.loads(gzip.decompress(answer.body))["names"]) == 48


def test_a_document_is_made_once_for_all_readers() -> None:
    source = still(ui_clusters.lively())

    async def run() -> int:
        async with asking(source=source) as ask:
            await asyncio.gather(*(ask("/ui/api/gangs") for _ in range(20)))
        return len(source.sessions.kept())

    assert asyncio.run(run()) == 1


def test_files_have_tags_and_only_those_of_the_page_are_served() -> None:
    async def run() -> list[int]:
        async with asking() as ask:
            first = await ask("/ui/page.css")
            again = await ask("/ui/page.css", headers={"If-None-Match": first.headers["ETag"]})
            outside = [await ask(f"/ui/{path}") for path in ("../seen.py", "%2e%2e/seen.py", "app/../../seen.py", "__init__.py")]
            return [first.status, again.status, *(answer.status for answer in outside)]

    assert asyncio.run(run()) == [200, 304, 404, 404, 404, 404]


def test_the_root_leads_to_the_page() -> None:
    assert [asked(path).headers["Location"] for path in ("/", "/ui")] == ["/ui/", "/ui/"]


def test_a_body_that_is_too_large_is_refused() -> None:
    answer = asked("/ui/api/what-if", "POST", json={"changes": ["x" * 70_000]})
    assert (answer.status, answer.data) == (400, {"error": "the body has 70,017 bytes; 65,536 at most"})


def test_too_many_changes_are_refused() -> None:
    answer = asked("/ui/api/what-if", "POST", json={"changes": ["node/n1=drained"] * 101})
    assert (answer.status, answer.data) == (400, {"error": "changes: 101 are too many; 100 at most"})


def test_what_is_not_there_is_said() -> None:
    assert asked("/ui/api/gang?gang=default/nobody").status == 404
    assert asked("/ui/api/gang").data == {"error": "gang: missing; write ?gang=..."}
    assert asked("/ui/api/overview?at=03:12").data == {"error": "at: there is no recording here"}
    assert asked("/ui/api/simulations").status == 404


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("nodes=x&amount=1", "nodes: 'x' is not a whole number of at most 9 digits"),
        ("nodes=99999999999&amount=1", "nodes: '99999999999' is not a whole number of at most 9 digits"),
        ("nodes=0&amount=1", "nodes: write for how many there should be room, 1 or more"),
        (
            "nodes=1&amount=many",
            "amount: quantity 'many': not a number with a suffix; write for example '2', '500m', '4Gi' or '1e3'",
        ),
        ("nodes=1", "amount: quantity '': not a number with a suffix; write for example '2', '500m', '4Gi' or '1e3'"),
        ("nodes=1&amount=1e99", "amount: quantity '1e99': larger than any machine; the limit is 288230376151711744"),
        ("nodes=1&amount=-8", "amount: '-8' is nothing; write how much of it should be free on each node"),
        ("nodes=1&amount=0", "amount: '0' is nothing; write how much of it should be free on each node"),
    ],
)
def test_room_that_makes_no_sense_is_refused(query: str, sentence: str) -> None:
    answer = asked(f"/ui/api/rooms?{query}")
    assert (answer.status, answer.data) == (400, {"error": sentence})


def test_events_say_that_a_cluster_was_looked_at() -> None:
    async def run() -> bytes:
        page = served_page(setup_of(still(ui_clusters.lively())))
        async with page as address, aiohttp.ClientSession() as client, client.get(f"{address}/ui/api/events") as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            assert response.headers["Content-Security-Policy"] == POLICY
            return await response.content.readuntil(b"\n\n")

    line = asyncio.run(run()).decode()
    assert line.startswith("event: look\ndata: ")
    assert json.loads(line.partition("data: ")[2])["now"] == ui_clusters.NOW


# --- the files themselves ------------------------------------------------------------------------------------------------


def test_the_page_has_no_script_or_style_of_its_own_and_asks_no_other_host() -> None:
    for name, text in page_files().items():
        if name.endswith((".js", ".html", ".css")):
            addresses = [word for word in text.split() if "://" in word and "www.w3.org" not in word]
            assert addresses == [], name
    index = page_files()["index.html"]
    assert "<style" not in index
    assert " style=" not in index
    assert " onclick" not in index
    assert "<script>" not in index


def test_data_never_becomes_markup() -> None:
    for name, text in page_files().items():
        for danger in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
            "javascript:",
        ):
            assert danger not in text, f"{name}: {danger}"


def test_modules_are_short_and_import_only_what_is_there() -> None:
    files = page_files()
    for name, text in files.items():
        if not name.endswith(".js"):
            continue
        assert text.startswith("// "), f"{name} does not say what it is for"
        assert text.count("\n") < 500, name
        for line in text.splitlines():
            if line.startswith("import "):
                target = line.rpartition('"./')[2] if '"./' in line else line.rpartition('"')[0].rpartition('"')[2]
                assert _resolved(name, target.rstrip('";')) in files, f"{name}: {line}"


def _resolved(name: str, target: str) -> str:
    parts = name.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
