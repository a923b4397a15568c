"""What a scheduler does when single requests fail, when it was asleep, and when a watch tells nothing: through a proxy."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from phalanx.dev.kwok_nodes import RACK, Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import Replica
from phalanx.model.kinds import Document
from tests.support.fault_proxy import Proxy
from tests.support.http_api import Connection, connection_to
from tests.support.live_gangs import Ranks, clear
from tests.support.store_contract import Api, eventually, pod

pytestmark = pytest.mark.xdist_group("controlplane")
FIRST, CPUS = 40001, 40
NODES = tuple(f"/api/v1/nodes/node-{number}" for number in range(FIRST, FIRST + 4))
ROOM = {RACK: "rack-10001"}
"""The nodes of these tests are a rack of their own, with room for 160 pods."""
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
COSCHEDULING = "scheduling.x-k8s.io/v1alpha1"
LEASE_SECONDS = 4
SOON_SECONDS = 25.0
HEARD_SECONDS = 2.0
"""By then everybody has heard of new pods."""
PODS = "/api/v1/pods"


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    name = f"faults-{secrets.token_hex(4)}"
    api = Api(connection_to(str(plane.kubeconfig)), name)
    plane.create_namespace(name)
    plane.add_nodes(len(NODES), Machines(cpu=str(CPUS), per_rack=len(NODES)), first=FIRST)
    for word, value in (("low", 1), ("high", 1000)):
        api.make(CLASSES, {"metadata": {"name": f"{name}-{word}"}, "value": value})
    yield api
    for place in (*NODES, *(f"{CLASSES}/{name}-{word}" for word in ("low", "high")), f"/api/v1/namespaces/{name}"):
        api.remove(place)


@pytest.fixture(autouse=True)
def empty(api: Api) -> Iterator[None]:
    """Leave all room to the next test."""
    yield
    for node in NODES:
        api.patch(node, {"spec": {"unschedulable": None}})
    clear(api)


def scheduler_connection(plane: ControlPlane, api: Api) -> Connection:
    """Return how a scheduler talks to the server: as its account, which may hold the lease in the namespace of these tests."""
    return connection_to(str(plane.scheduler_kubeconfig_for(api.namespace)))


@pytest.fixture
def beside(plane: ControlPlane, api: Api, tmp_path: Path) -> Iterator[Callable[..., tuple[Replica, Proxy]]]:
    """Starts schedulers, each behind a proxy of its own."""
    with ExitStack() as stack:

        def start(name: str, *arguments: str, **more: Any) -> tuple[Replica, Proxy]:
            proxy = stack.enter_context(Proxy(scheduler_connection(plane, api)))
            whole = [
                "--kubeconfig", str(proxy.write_kubeconfig(tmp_path / f"{name}.yaml")), "--scheduler-name", api.namespace,
                "--lease-namespace", api.namespace, "--lease-duration", str(LEASE_SECONDS), "-v", "2", *arguments,
            ]  # fmt: skip
            return stack.enter_context(Replica(tmp_path, name, whole, **more)), proxy

        yield start


Start = Callable[..., tuple[Replica, Proxy]]


def ranks(api: Api, name: str, size: int, **more: Any) -> Ranks:
    return Ranks(api.namespace, name, size, api.namespace, **{"node_labels": ROOM, **more})


def evictions(proxy: Proxy) -> int:
    return proxy.count("/eviction$", method="POST")


def ask_for_discovery(api: Api) -> None:
    """Make a pod whose owner is of a kind that nobody serves: it is looked for at once."""
    owner = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": "x",
        "uid": secrets.token_hex(4),
        "controller": True,
    }
    made = pod(f"owned-{secrets.token_hex(2)}")
    assert api.make("pods", {**made, "metadata": {**made["metadata"], "ownerReferences": [owner]}}).code == 201


def coscheduling(gang: Ranks) -> tuple[Document, list[Document]]:
    """Return the same gang in the words of Coscheduling: its group, and its pods."""
    meta = {"name": gang.name, "namespace": gang.namespace}
    group: Document = {"apiVersion": COSCHEDULING, "kind": "PodGroup", "metadata": meta, "spec": {"minMember": gang.size}}
    pods: list[Document] = []
    for member in gang.pods():
        labels = {**member["metadata"]["labels"], "scheduling.x-k8s.io/pod-group": gang.name}
        pods.append({**member, "metadata": {**member["metadata"], "labels": labels, "annotations": {}}})
    return group, pods


# --- discovery -----------------------------------------------------------------------------------------------------------


def ask_group_by_group(proxy: Proxy, group: str, *, aggregates: bool) -> None:
    """Let a group be asked for alone: its part of the aggregated discovery is stale, or the server does not aggregate at all."""
    proxy.aggregates, proxy.stale = aggregates, frozenset({group})


@pytest.mark.parametrize("aggregates", [True, False], ids=["stale", "not aggregated"])
@pytest.mark.parametrize("code", [503, 404], ids=["does not answer", "is not served"])
def test_a_gang_starts_whose_group_was_not_discovered_for_a_moment(
    plane: ControlPlane, api: Api, beside: Start, code: int, aggregates: bool
) -> None:
    _, proxy = beside("blinded")
    ask_group_by_group(proxy, COSCHEDULING.partition("/")[0], aggregates=aggregates)
    name = f"known-{code}-{'stale' if aggregates else 'old'}"
    group, pods = coscheduling(ranks(api, name, 3))
    plane.create([group])
    fault = proxy.fail(code, f"^/apis/{COSCHEDULING}$", times=1)
    ask_for_discovery(api)
    assert eventually(lambda: fault.hits == 1, seconds=SOON_SECONDS)
    plane.create(pods)
    labels = f"gang={name}"
    assert eventually(lambda: api.bound(labelSelector=labels) == 3, seconds=SOON_SECONDS), (
        f"{api.bound(labelSelector=labels)} of 3 pods bound"
    )


@pytest.mark.parametrize("aggregates", [True, False], ids=["stale", "not aggregated"])
def test_a_group_that_did_not_answer_at_the_start_is_found_soon(
    plane: ControlPlane, api: Api, tmp_path: Path, aggregates: bool
) -> None:
    gang = ranks(api, f"early-{'stale' if aggregates else 'old'}", 3, owner="Job")
    gang.submit(plane)
    arguments = ["--scheduler-name", api.namespace, "--no-leader-elect", "--kubeconfig"]
    with Proxy(scheduler_connection(plane, api)) as proxy:
        ask_group_by_group(proxy, "scheduling.volcano.sh", aggregates=aggregates)
        fault = proxy.fail(503, "^/apis/scheduling.volcano.sh/v1beta1$", times=1)
        kubeconfig = str(proxy.write_kubeconfig(tmp_path / "late.yaml"))
        with Replica(tmp_path, "late", [*arguments, kubeconfig]):
            assert eventually(lambda: gang.bound(api) == gang.size, seconds=15.0), f"{gang.bound(api)} of {gang.size} pods bound"
            assert fault.hits == 1


# --- the lease -----------------------------------------------------------------------------------------------------------


def test_a_leader_that_slept_beyond_its_lease_sends_nothing_of_what_waits(plane: ControlPlane, api: Api, beside: Start) -> None:
    sleeper, slow = beside("sleeper")
    assert eventually(lambda: api.leader() == "sleeper")
    beside("other")
    slow.delay(1.0, "/binding$", method="POST")
    gang = ranks(api, "slow", 120, owner="indexed Job")
    gang.submit(plane)
    assert eventually(lambda: slow.count("/binding$") >= 32)
    with sleeper.asleep():
        assert eventually(lambda: api.leader() == "other" and gang.bound(api) == gang.size)
        woken = time.monotonic()
    assert eventually(lambda: "does not lead any more" in sleeper.logged())
    time.sleep(2.0)
    late = [item for item in slow.seen if item.moment >= woken and item.method != "GET" and "/leases" not in item.path]
    assert [item for item in late if "/events" not in item.path] == []
    assert "Traceback" not in sleeper.logged()


@contextmanager
def cordoned(api: Api) -> Iterator[None]:
    for node in NODES:
        assert api.patch(node, {"spec": {"unschedulable": True}}).code == 200
    yield
    for node in NODES:
        assert api.patch(node, {"spec": {"unschedulable": None}}).code == 200


def test_a_new_leader_whose_watch_told_nothing_takes_no_room_that_is_taken(plane: ControlPlane, api: Api, beside: Start) -> None:
    first, _ = beside("first")
    assert eventually(lambda: api.leader() == "first")
    _, proxy = beside("second")
    low, high = (ranks(api, word, 4, cpu=str(CPUS - 10), priority_class=f"{api.namespace}-{word}") for word in ("low", "high"))
    with cordoned(api):
        low.submit(plane)
        time.sleep(HEARD_SECONDS)
        assert proxy.silence_watches(PODS) == 1
        high.submit(plane)
        time.sleep(HEARD_SECONDS)
    assert eventually(lambda: high.bound(api) == high.size)
    first.kill()
    assert eventually(lambda: api.leader() == "second")
    time.sleep(4.0)
    assert (low.bound(api), high.bound(api)) == (0, high.size)
    api.remove("pods", labelSelector="gang=high", gracePeriodSeconds=0)
    assert eventually(lambda: low.bound(api) == low.size)


def members(api: Api, gang: Ranks) -> list[dict[str, Any]]:
    return list(api.read("pods", labelSelector=f"gang={gang.name}").body["items"])


# --- sessions that fail --------------------------------------------------------------------------------------------------

UNWELL = """
import pathlib, sys
from phalanx.actions.allocate import AllocateAction
from phalanx.cli import main

decide, fault = AllocateAction.run, pathlib.Path(sys.argv.pop(1))

def run(self, session):
    if fault.exists():
        raise KeyError("nobody foresaw this")
    decide(self, session)

AllocateAction.run = run
main()
"""
"""Phalanx with an action that fails as long as a file is there."""


def test_a_leader_whose_sessions_fail_says_so_and_lets_another_one_lead(
    plane: ControlPlane, api: Api, beside: Start, tmp_path: Path
) -> None:
    fault = tmp_path / "fault"
    first, _ = beside("first", program=("-c", UNWELL, str(fault)))
    assert eventually(lambda: api.leader() == "first")
    beside("second")
    fault.touch()
    gang = ranks(api, "rescued", 4, owner="Deployment")
    gang.submit(plane)
    assert eventually(lambda: first.ask("/livez")[0] == 500, seconds=SOON_SECONDS)
    assert "KeyError: 'nobody foresaw this'" in first.ask("/livez?verbose")[1]
    assert eventually(lambda: (api.leader(), gang.bound(api)) == ("second", gang.size), seconds=SOON_SECONDS)
    assert "KeyError: 'nobody foresaw this'" in first.logged()
    assert "Traceback" not in first.logged()  # at -v 5 alone


# --- single answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [500, 502, 504])
def test_a_bind_that_a_server_could_not_take_breaks_no_gang(plane: ControlPlane, api: Api, beside: Start, code: int) -> None:
    _, proxy = beside("binding")
    gang = ranks(api, f"held-{code}", 8)
    fault = proxy.fail(code, f"/pods/held-{code}-005/binding$")
    gang.submit(plane)
    assert eventually(lambda: gang.bound(api) == gang.size - 1, seconds=SOON_SECONDS)
    time.sleep(6.0)
    assert (gang.bound(api), evictions(proxy)) == (gang.size - 1, 0)
    fault.lift()
    assert eventually(lambda: gang.bound(api) == gang.size, seconds=SOON_SECONDS)
    assert evictions(proxy) == 0


@pytest.mark.parametrize("code", [500, 502])
def test_an_eviction_that_a_server_could_not_take_is_asked_for_again(
    plane: ControlPlane, api: Api, beside: Start, code: int
) -> None:
    _, proxy = beside("evicting")
    victims = ranks(api, f"victims-{code}", 4, cpu="30", priority_class=f"{api.namespace}-low")
    victims.submit(plane)
    assert eventually(lambda: [member["status"].get("phase") for member in members(api, victims)] == ["Running"] * 4)
    for number in (1, 2):  # the room of one of them is needed, and asked for again anyway; that of the other is not
        proxy.fail(code, f"/pods/{victims.name}-00{number}/eviction$", times=1)
    ranks(api, f"high-{code}", 1, cpu="30", priority_class=f"{api.namespace}-high").submit(plane)
    assert eventually(lambda: evictions(proxy) >= 4)
    assert eventually(lambda: victims.bound(api) == 0, seconds=10.0), f"{victims.bound(api)} of 4 victims still run after 10 s"
