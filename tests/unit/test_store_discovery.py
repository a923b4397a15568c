"""Which kinds a server serves: asked of the embedded API, and of servers that serve less or other versions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import pytest
from aiohttp import web

from phalanx.errors import Unreachable
from phalanx.model.kinds import GROUP_BY_DIALECT, KINDS, POD, Kind, kind_at
from phalanx.store.kube import discovery as module
from phalanx.store.kube.client import Client
from phalanx.store.kube.discovery import discover, served_kinds
from phalanx.store.memory import MemoryStore
from phalanx.web.server import serving
from tests.support.http_api import served

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
METRICS, SIGS = kind_at("metrics.k8s.io", "nodes"), kind_at("scheduling.x-k8s.io", "podgroups")
T = TypeVar("T")


def resources(*names: str) -> dict[str, Any]:
    return {"kind": "APIResourceList", "resources": [{"name": name} for name in names]}


def groups(*names: str) -> dict[str, Any]:
    found: dict[str, list[str]] = {}
    for name in names:
        group, _, version = name.partition("/")
        found.setdefault(group, []).append(version)
    return {"groups": [{"name": name, "versions": [{"version": item} for item in items]} for name, items in found.items()]}


def answering(documents: Mapping[str, Any]) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        found = documents.get(request.path)
        return web.Response(status=503, text="service unavailable") if found is None else web.json_response(found)

    return answer


def asked_of(handler: Handler, question: Callable[[Client], Awaitable[T]]) -> T:
    async def asked() -> T:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handler)
        async with serving(application) as address, Client(address) as client:
            return await question(client)

    return asyncio.run(asked())


def kinds_of(handler: Handler) -> frozenset[Kind]:
    return asked_of(handler, served_kinds)


def test_the_embedded_cluster_serves_every_kind() -> None:
    async def asked(address: str) -> frozenset[Kind]:
        async with Client(address) as client:
            return await served_kinds(client)

    with served(MemoryStore(lambda: 0.0)) as connection:
        assert asyncio.run(asked(connection.server)) == frozenset(KINDS)


def test_a_kind_is_served_in_the_version_that_the_server_has() -> None:
    found = kinds_of(
        answering({
            "/api/v1": resources("pods", "pods/binding"),
            "/apis": groups("scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1", "scheduling.x-k8s.io/v1alpha1"),
            "/apis/scheduling.k8s.io/v1": resources("priorityclasses"),
            "/apis/scheduling.k8s.io/v1beta1": resources("podgroups"),
            "/apis/scheduling.x-k8s.io/v1alpha1": resources("podgroups", "elasticquotas"),
        })
    )  # fmt: skip
    assert {f"{kind.plural}.{kind.api_version}" for kind in found} == {
        "pods.v1",
        "priorityclasses.scheduling.k8s.io/v1",
        "podgroups.scheduling.k8s.io/v1beta1",
        "podgroups.scheduling.x-k8s.io/v1alpha1",
    }


def test_our_version_comes_first_where_the_server_has_several() -> None:
    found = kinds_of(
        answering({
            "/api/v1": resources(),
            "/apis": groups("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"),
            "/apis/scheduling.k8s.io/v1beta1": resources("podgroups"),
            "/apis/scheduling.k8s.io/v1alpha2": resources("podgroups", "podgroups/status"),
        })
    )  # fmt: skip
    assert found == {GROUP_BY_DIALECT["native"]}


def test_a_kind_without_a_status_subresource_says_so() -> None:
    found = kinds_of(
        answering({
            "/api/v1": resources(),
            "/apis": groups("scheduling.volcano.sh/v1beta1"),
            "/apis/scheduling.volcano.sh/v1beta1": resources("podgroups", "queues", "queues/status"),
        })
    )  # fmt: skip
    assert {kind.kind: kind.has_status for kind in found} == {"PodGroup": False, "Queue": True}


def test_a_version_that_we_do_not_read_is_not_served() -> None:
    found = kinds_of(
        answering({
            "/api/v1": resources(),
            "/apis": groups("scheduling.volcano.sh/v7"),
            "/apis/scheduling.volcano.sh/v7": resources("podgroups", "queues"),
        })
    )  # fmt: skip
    assert found == frozenset()


def test_workloads_of_others_are_read_in_any_version() -> None:
    found = kinds_of(
        answering({
            "/api/v1": resources(),
            "/apis": groups("kubeflow.org/v1", "trainer.kubeflow.org/v9"),
            "/apis/kubeflow.org/v1": resources("mpijobs"),
            "/apis/trainer.kubeflow.org/v9": resources("trainjobs"),
        })
    )  # fmt: skip
    assert {kind.api_version: kind.kind for kind in found} == {"kubeflow.org/v1": "MPIJob", "trainer.kubeflow.org/v9": "TrainJob"}


def test_a_group_that_does_not_answer_is_left_out_alone() -> None:
    found = kinds_of(
        answering({"/api/v1": resources("pods", "pods/status"), "/apis": groups("metrics.k8s.io/v1beta1"), "/version": {}})
    )
    assert found == {POD}
    assert METRICS not in found


def test_a_server_that_goes_away_meanwhile_is_an_error() -> None:
    with pytest.raises(Unreachable):
        kinds_of(answering({"/api/v1": resources("pods", "pods/status"), "/apis": groups("metrics.k8s.io/v1beta1")}))


def test_what_a_group_that_does_not_answer_serves_is_unknown() -> None:
    documents = {"/api/v1": resources("pods", "pods/status"), "/apis": groups("scheduling.x-k8s.io/v1alpha1"), "/version": {}}
    found = asked_of(answering(documents), discover)
    assert (set(found.kinds), SIGS in found.unanswered) == ({POD}, True)


def test_a_group_that_takes_too_long_to_answer_is_unknown_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUP_SECONDS", 0.05)
    documents = {"/api/v1": resources("pods", "pods/status"), "/apis": groups("metrics.k8s.io/v1beta1"), "/version": {}}

    async def slow(request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/apis/metrics"):
            await asyncio.Event().wait()
        return await answering(documents)(request)

    found = asked_of(slow, discover)
    assert (set(found.kinds), list(map(str, found.unanswered.values()))) == ({POD}, ["no answer within 0.05 s"])


def test_a_group_that_says_it_has_no_such_kind_has_answered() -> None:
    documents = {
        "/api/v1": resources("pods", "pods/status"),
        "/apis": groups("scheduling.x-k8s.io/v1alpha1", "scheduling.k8s.io/v1alpha2"),
    }

    async def missing(request: web.Request) -> web.StreamResponse:
        if request.path == "/apis/scheduling.x-k8s.io/v1alpha1":
            return web.Response(status=404)
        return await answering({**documents, "/apis/scheduling.k8s.io/v1alpha2": resources()})(request)

    found = asked_of(missing, discover)
    assert (set(found.kinds), dict(found.unanswered)) == ({POD}, {})


def test_a_kind_of_which_another_version_answers_is_both_served_and_unknown() -> None:
    native = GROUP_BY_DIALECT["native"]
    documents = {
        "/api/v1": resources(), "/version": {},
        "/apis": groups("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"),
        "/apis/scheduling.k8s.io/v1beta1": resources("podgroups"),
    }  # fmt: skip
    found = asked_of(answering(documents), discover)
    assert ({kind.version for kind in found.kinds}, native in found.unanswered) == ({"v1beta1"}, True)


# --- aggregated ----------------------------------------------------------------------------------------------------------


def aggregated(freshness: str = "Current", **groups: list[str]) -> dict[str, Any]:
    """Return the aggregated form of groups, each with resources and subresources of its version v1."""

    def resource(name: str, names: list[str]) -> dict[str, Any]:
        below = [{"subresource": item.partition("/")[2]} for item in names if item.startswith(f"{name}/")]
        return {"resource": name, **({"responseKind": {"kind": "x"}} if name in names else {}), "subresources": below}

    def version(names: list[str]) -> dict[str, Any]:
        plurals = dict.fromkeys(name.partition("/")[0] for name in names)
        return {"version": "v1", "freshness": freshness, "resources": [resource(name, names) for name in plurals]}

    items = [{"metadata": {"name": name.replace("_", ".")}, "versions": [version(names)]} for name, names in groups.items()]
    return {"kind": "APIGroupDiscoveryList", "items": items}


(_CORE,) = aggregated(core=["pods", "pods/status"])["items"]
CORE = {"kind": "APIGroupDiscoveryList", "items": [{**_CORE, "metadata": {}}]}
BATCH = kind_at("batch", "jobs")


def counted(documents: Mapping[str, Any], paths: list[str]) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        paths.append(request.path)
        return await answering(documents)(request)

    return answer


def test_two_requests_are_enough_where_the_server_aggregates() -> None:
    paths: list[str] = []
    documents = {"/apis": aggregated(batch=["jobs", "jobs/status", "cronjobs/status"]), "/api": CORE}
    assert kinds_of(counted(documents, paths)) == {POD, BATCH}
    assert paths == ["/apis", "/api"]


def test_a_group_whose_aggregated_answer_is_stale_is_asked_for_alone() -> None:
    paths: list[str] = []
    documents = {"/apis": aggregated("Stale", batch=["jobs"]), "/api": CORE, "/apis/batch/v1": resources("jobs", "jobs/status")}
    assert kinds_of(counted(documents, paths)) == {POD, BATCH}
    assert paths == ["/apis", "/api", "/apis/batch/v1"]


def test_what_a_stale_group_that_does_not_answer_serves_is_unknown() -> None:
    documents = {"/apis": aggregated("Stale", batch=["jobs", "jobs/status"]), "/api": CORE, "/version": {}}
    found = asked_of(answering(documents), discover)
    assert (set(found.kinds), BATCH in found.unanswered) == ({POD}, True)


def test_a_core_that_is_not_aggregated_is_asked_for_as_before() -> None:
    documents = {"/apis": aggregated(batch=["jobs", "jobs/status"]), "/api": {"kind": "APIVersions", "versions": ["v1"]}}
    assert kinds_of(answering({**documents, "/api/v1": resources("pods", "pods/status")})) == {POD, BATCH}
