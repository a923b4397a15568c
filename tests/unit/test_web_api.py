"""The API server around the store: discovery, health, strangers, and requests that make no sense."""

import http.client
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from phalanx.model.bounds import BODY_BYTES
from phalanx.model.kinds import KINDS, Kind
from phalanx.store.memory import MemoryStore
from phalanx.web.server import LOGGER
from tests.support.http_api import Connection, connection_to, served
from tests.support.store_contract import Api

NOW = 1_767_225_600.0


@pytest.fixture(scope="module")
def server() -> Iterator[Connection]:
    with served(MemoryStore(lambda: NOW)) as connection:
        yield connection


@pytest.fixture
def api(server: Connection) -> Api:
    return Api(server, "default")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)
def test_every_kind_is_found_by_discovery(server: Connection, kind: Kind) -> None:
    path = f"/apis/{kind.group}/{kind.version}" if kind.group else "/api/v1"
    resources = {item["name"]: item for item in server.ask("GET", path).body["resources"]}
    assert resources[kind.plural]["kind"] == kind.kind
    assert resources[kind.plural]["namespaced"] == kind.is_namespaced
    assert (f"{kind.plural}/status" in resources) == kind.has_status


def test_groups_and_versions_are_listed(server: Connection) -> None:
    groups = {group["name"]: group for group in server.ask("GET", "/apis").body["groups"]}
    assert set(groups) == {kind.group for kind in KINDS if kind.group}
    assert [item["version"] for item in groups["scheduling.run.ai"]["versions"]] == ["v2alpha2", "v2", "v1alpha2"]
    assert server.ask("GET", "/apis/policy").body["preferredVersion"]["version"] == "v1"
    assert server.ask("GET", "/api").body["versions"] == ["v1"]
    assert server.ask("GET", "/version").body["gitVersion"].startswith("v1.")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_a_server_that_answers_is_well(server: Connection, path: str) -> None:
    assert raw(server, path)[2] == b"ok"


def raw(server: Connection, path: str, **headers: str) -> tuple[int, str, bytes]:
    """Return the code, the date and the body of an answer."""
    address = urlsplit(server.server)
    with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers["Date"], answer.read()


def test_answers_tell_the_time_of_the_cluster(server: Connection) -> None:
    assert raw(server, "/api/v1/pods")[1] == "Thu, 01 Jan 2026 00:00:00 GMT"


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}], ids=["host", "origin", "file"]
)
def test_a_page_of_another_site_is_refused(server: Connection, headers: dict[str, str]) -> None:
    assert raw(server, "/api/v1/pods", **headers)[0] == 403


def test_a_page_of_the_server_itself_is_served(server: Connection) -> None:
    assert raw(server, "/api/v1/pods", Origin=server.server)[0] == 200
    assert raw(server, "/api/v1/pods", Host=f"localhost:{urlsplit(server.server).port}")[0] == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/v1/namespaces/default"), ("DELETE", "/api/v1/nodes"), ("PUT", "/api/v1/nodes"), ("OPTIONS", "/api/v1/nodes")],
)
def test_a_method_that_does_not_fit_is_not_allowed(server: Connection, method: str, path: str) -> None:
    assert server.ask(method, path, {}).refusal[:2] == (405, "MethodNotAllowed")


@pytest.mark.parametrize("path", ["pods/a/log", "configmaps/a/binding", "pods/a/exec"])
def test_a_subresource_that_nobody_serves_is_not_found(api: Api, path: str) -> None:
    assert api.make(path, {}).code == 404


def test_bodies_that_are_no_objects_are_refused(api: Api) -> None:
    assert api.make("configmaps", None).refusal[:2] == (400, "BadRequest")
    assert api.make("configmaps", ["a"]).refusal[:2] == (400, "BadRequest")
    assert api.make("configmaps", {"metadata": "a"}).refusal[:2] == (400, "BadRequest")
    assert api.make("configmaps", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}).refusal[:2] == (
        400,
        "BadRequest",
    )
    assert api.make("configmaps", {"metadata": {"name": "a"}}, form="text/plain").code == 415
    assert api.make("configmaps", {"metadata": {"name": "a"}}, form="application/vnd.kubernetes.protobuf").code == 400


COPIES = [{"op": "copy", "from": "/metadata", "path": f"/metadata/annotations/{number}"} for number in range(60)]


@pytest.mark.parametrize(
    ("steps", "code", "said"),
    [
        (COPIES, 413, BODY_BYTES.text),
        ([{"op": "copy", "from": "/data", "path": f"/data/{number}"} for number in range(7)] * 3, 413, BODY_BYTES.text),
        ([{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10_001, 413, "maximum operations"),
        ([{"op": "add", "path": "/data" + "/a" * 5000, "value": 1}], 422, "too deep"),
        ([{"op": "add", "path": "/data" + "/a" * depth, "value": {"a": {}}} for depth in range(1, 200)], 422, "nested too deeply"),
    ],
    ids=["copies inside of copies", "copies of much", "many operations", "a long path", "deeper and deeper"],
)  # fmt: skip
def test_a_json_patch_makes_no_more_than_a_body_may_hold(api: Api, steps: list[Any], code: int, said: str) -> None:
    document = {"metadata": {"name": "copied", "annotations": {"a": "b"}}, "data": {"long": "x" * 20_000}}
    api.make("configmaps", document)
    answer = api.patch("configmaps/copied", steps, "application/json-patch+json").refusal
    api.remove("configmaps/copied")
    assert (answer[0], said in answer[2]) == (code, True), answer


def test_a_body_that_is_not_encoded_as_its_headers_say_is_refused(server: Connection) -> None:
    assert sent(server, "Content-Encoding: gzip", body="no gzip").startswith("HTTP/1.1 400")


def sent(server: Connection, *headers: str, body: str = "") -> str:
    """Return what a server answers to a request whose headers are as they are."""
    address = urlsplit(server.server)
    lines = (
        f"Host: {address.netloc}",
        "Content-Type: application/json",
        "Connection: close",
        f"Content-Length: {len(body)}",
        *headers,
    )
    text = "\r\n".join(("POST /api/v1/namespaces/default/configmaps HTTP/1.1", *lines, "", body))
    with closing(socket.create_connection((address.hostname or "", address.port or 0), timeout=10)) as connection:
        connection.sendall(text.encode())
        return connection.makefile("rb").read().decode()


def test_what_is_no_http_is_answered_and_leaves_no_traceback(server: Connection, caplog: pytest.LogCaptureFixture) -> None:
    assert sent(server, "Content-Length: -5").startswith("HTTP/1.0 400")
    assert [record for record in caplog.records if record.exc_info] == []


def test_failures_of_connections_are_told_in_a_sentence(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise RuntimeError("a fault")
    except RuntimeError:
        LOGGER.exception("Error handling request from %s", "127.0.0.1")
    assert [(record.getMessage(), record.exc_info) for record in caplog.records] == [
        ("Error handling request from 127.0.0.1, please report it: RuntimeError: a fault", None)
    ]


def test_custom_resources_take_no_strategic_patch(api: Api) -> None:
    place = "/apis/scheduling.volcano.sh/v1beta1/queues"
    api.make(place, {"metadata": {"name": "team"}, "spec": {"weight": 1}})
    code, reason, message = api.patch(f"{place}/team", {"spec": {}}, "application/strategic-merge-patch+json").refusal
    assert (code, reason) == (415, "UnsupportedMediaType")
    assert "application/merge-patch+json" in message


def test_numbers_in_a_query_are_numbers(api: Api) -> None:
    assert api.read("pods", limit="many").refusal == (400, "BadRequest", "limit: expected a whole number, got 'many'")
    assert api.read("pods", watch="1", resourceVersion="yesterday").refusal[:2] == (400, "BadRequest")
    assert api.read("pods", dryRun="Some").code == 200
    assert api.make("configmaps", {"metadata": {"name": "x"}}, dryRun="Some").refusal[:2] == (422, "Invalid")


def test_a_watch_may_ask_to_be_told_when_it_has_seen_what_was_there(api: Api) -> None:
    api.settings("seen")
    events = list(api.watch("configmaps", seconds=1, sendInitialEvents="true", allowWatchBookmarks="true"))
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    api.remove("configmaps/seen")


def test_a_kubeconfig_names_a_server(tmp_path: Path, server: Connection) -> None:
    file = tmp_path / "config"
    file.write_text(
        "current-context: it\ncontexts: [{name: it, context: {cluster: c, user: u}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{server.server}'}}}}]\nusers: [{{name: u, user: {{token: secret}}}}]\n"
    )
    connection = connection_to(str(file))
    assert connection.headers == {"Authorization": "Bearer secret"}
    assert connection.ask("GET", "/version").code == 200
    assert connection_to(server.server) == Connection(server.server)


TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


def test_objects_come_as_a_table_for_those_who_like_tables(api: Api) -> None:
    made = api.bound_pod("seen")
    viewer = Api(replace(api.connection, headers=TABLE), "default")
    for table in (viewer.read("pods").body, viewer.read("pods/seen").body, next(viewer.watch("pods", seconds=1))["object"]):
        assert table["kind"] == "Table"
        cells = dict(zip((column["name"] for column in table["columnDefinitions"]), table["rows"][0]["cells"], strict=True))
        assert (cells["Name"], cells["Status"], cells["Node"], cells["Age"]) == ("seen", "Pending", "nowhere-1", "0s")
        assert table["rows"][0]["object"]["metadata"] == made["metadata"]
    api.remove("pods/seen", {"gracePeriodSeconds": 0})


@pytest.mark.parametrize(
    ("asked", "brings"), [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "Pod"), ("None", None)]
)
def test_rows_of_a_table_bring_what_was_asked_for_of_their_objects(api: Api, asked: str, brings: str | None) -> None:
    api.bound_pod("sorted")
    viewer = Api(replace(api.connection, headers=TABLE), "default")
    listed = viewer.read("pods", includeObject=asked).body
    watched = next(viewer.watch("pods", includeObject=asked, seconds=1))["object"]
    for table in (listed, watched):
        found = table["rows"][0]["object"]
        assert (found and found["kind"]) == brings
        assert asked != "Object" or found == api.read("pods/sorted").body
    api.remove("pods/sorted", {"gracePeriodSeconds": 0})


def test_a_table_of_rows_with_something_else_is_refused(api: Api) -> None:
    viewer = Api(replace(api.connection, headers=TABLE), "default")
    refused = viewer.read("pods", includeObject="Everything")
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")
    assert refused.body["message"] == "includeObject: Invalid value: \"Everything\": must be 'Metadata', 'Object', 'None', or empty"
    assert api.read("pods", includeObject="Everything").code == 200


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_sorts_by_any_field(server: Connection, api: Api, tmp_path: Path) -> None:
    for name, node in (("first", "b"), ("second", "a")):
        api.pod(name)
        assert api.bind(name, node).code == 201
    kubectl = ["kubectl", "--server", server.server, f"--cache-dir={tmp_path}"]
    typed = [*kubectl, "get", "pods", "--sort-by=.spec.nodeName", "--no-headers"]
    done = subprocess.run(typed, text=True, capture_output=True, timeout=60, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["second", "first"]
    for name in ("first", "second"):
        api.remove(f"pods/{name}", {"gracePeriodSeconds": 0})


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_gets_and_applies(server: Connection, tmp_path: Path) -> None:
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typed}\ndata: {a: b}\n"
    kubectl = ["kubectl", "--server", server.server, f"--cache-dir={tmp_path}"]
    apply = [*kubectl, "apply", "--server-side=false", "--validate=false", "-f", "-"]
    for word in ("created", "unchanged"):
        done = subprocess.run(apply, input=manifest, text=True, capture_output=True, timeout=60, check=True)
        assert done.stdout == f"configmap/typed {word}\n"
    done = subprocess.run([*kubectl, "get", "cm", "typed", "-o", "name"], text=True, capture_output=True, timeout=60, check=True)
    assert done.stdout == "configmap/typed\n"
