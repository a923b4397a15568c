"""What a scheduler does when the API server is gone for a while, or says no."""

import re
import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest

from phalanx.dev.kwok_nodes import RACK, Machines
from phalanx.dev.layout import SERVER
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import Replica
from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.live.outbox import CONNECTIONS
from tests.support.bind_audit import BindAudit
from tests.support.http_api import connection_to
from tests.support.live_gangs import Ranks, clear
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
FIRST, BIG = 30001, 200
NODES = tuple(f"/api/v1/nodes/node-{number}" for number in range(FIRST, FIRST + 4))
ROOM = {RACK: "rack-7501"}
"""The nodes of these tests are a rack of their own, with room for 240 pods."""
OUTAGE_SECONDS, RECOVERY_SECONDS = 10.0, 60.0
POLICIES, POLICY_BINDINGS = (
    f"/apis/admissionregistration.k8s.io/v1/{name}" for name in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
)
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    name = f"outage-{secrets.token_hex(4)}"
    api = Api(connection_to(str(plane.kubeconfig)), name)
    plane.create_namespace(name)
    plane.add_nodes(len(NODES), Machines(cpu="60", per_rack=len(NODES)), first=FIRST)
    yield api
    for place in (*NODES, f"/api/v1/namespaces/{name}"):
        api.remove(place)


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane, api: Api) -> Iterator[Replica]:
    """One scheduler for all these tests, whatever happens to the server."""
    arguments = [
        "--kubeconfig", str(plane.scheduler_kubeconfig_for(api.namespace)), "--scheduler-name", api.namespace,
        "--lease-namespace", api.namespace, "-v", "2",
    ]  # fmt: skip
    with Replica(plane.folder, "steady", arguments) as replica:
        yield replica


@pytest.fixture(autouse=True)
def empty(api: Api) -> Iterator[None]:
    """Leave all room to the next test."""
    yield
    clear(api)


def ranks(api: Api, name: str, size: int, **more: Any) -> Ranks:
    return Ranks(api.namespace, name, size, api.namespace, **{"node_labels": ROOM, **more})


def scheduled(scheduler: Replica) -> float:
    """Return how many pods it says that it has bound."""
    found = re.search(r"^phalanx_pods_scheduled_total (\S+)$", scheduler.ask("/metrics")[1], re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_a_scheduler_finishes_its_work_after_an_outage(plane: ControlPlane, api: Api, scheduler: Replica) -> None:
    number = scheduler.process.number.read_text()
    old, new = ranks(api, "old", 40), ranks(api, "new", 40, owner="Deployment")
    big = ranks(api, "big", BIG, owner="indexed Job")
    old.submit(plane)
    assert eventually(lambda: old.bound(api) == old.size)
    with BindAudit(api, at=old.size + 20, then=lambda: plane.stop(SERVER, is_kill=True)) as audit:
        big.submit(plane)
        assert eventually(lambda: not plane.process(SERVER).is_running())
        time.sleep(OUTAGE_SECONDS)
        assert scheduler.ask("/readyz")[0] == 200
        with scheduler.asleep():  # so that it sees what happens now only in a list, and no watch tells it
            plane.start(SERVER)
            assert 20 <= big.bound(api) <= BIG - 20
            api.remove("pods", labelSelector="gang=old", gracePeriodSeconds=0)
            plane.compact()
        assert eventually(lambda: big.bound(api) == BIG, seconds=RECOVERY_SECONDS)
    new.submit(plane)
    assert eventually(lambda: new.bound(api) == new.size, seconds=RECOVERY_SECONDS)
    assert audit.bound_twice == []
    assert (scheduler.process.number.read_text(), scheduler.process.is_running()) == (number, True)
    assert [scheduler.ask(path)[0] for path in ("/readyz", "/livez")] == [200, 200]
    whole = old.size + BIG + new.size
    assert whole - CONNECTIONS <= scheduled(scheduler) <= whole  # the answers to some were lost with the server
    assert "Traceback" not in scheduler.logged()


@pytest.fixture
def refusal(plane: ControlPlane, api: Api) -> Iterator[str]:
    """A policy that lets nobody bind the last pod of the gang `refused`, and its name."""
    name, pod = f"no-binds-{api.namespace}", "refused-004"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    expression = f"object.metadata.namespace != '{api.namespace}' || object.metadata.name != '{pod}'"
    policy = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": "its licence has run out"}],
        },
    }
    assert api.make(POLICIES, policy).code == 201
    binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}
    assert api.make(POLICY_BINDINGS, binding).code == 201
    api.pod(pod)
    assert eventually(lambda: api.bind(pod, "node-0", dryRun="All").code == 422)
    api.remove(f"pods/{pod}", gracePeriodSeconds=0)
    yield name
    remove_policy(api, name)


def remove_policy(api: Api, name: str) -> None:
    api.remove(f"{POLICY_BINDINGS}/{name}")
    api.remove(f"{POLICIES}/{name}")


def events(api: Api, pod: str, reason: str) -> list[str]:
    found = api.read("events", fieldSelector=f"involvedObject.name={pod},reason={reason}").body["items"]
    return [event["message"] for event in found]


def test_a_gang_of_which_one_pod_is_refused_is_taken_back(plane: ControlPlane, api: Api, scheduler: Replica, refusal: str) -> None:
    gang = ranks(api, "refused", 5)
    gang.submit(plane)
    assert eventually(lambda: [pod["metadata"]["name"] for pod in members(api, gang)] == ["refused-004"])
    (left,) = members(api, gang)
    assert "nodeName" not in left["spec"]
    assert eventually(lambda: FAILED_BINDS in members(api, gang)[0]["metadata"].get("annotations", {}))
    assert eventually(lambda: any("its licence has run out" in text for text in events(api, "refused-004", "BindingError")))
    assert eventually(lambda: any("rolled back: pod refused-004" in text for text in events(api, "refused-000", "BindingError")))
    remove_policy(api, refusal)
    assert eventually(lambda: api.bind("refused-004", "node-0", dryRun="All").code == 201)
    plane.create(gang.pods()[:4])
    assert eventually(lambda: gang.bound(api) == gang.size)


def members(api: Api, gang: Ranks) -> list[dict[str, Any]]:
    return list(api.read("pods", labelSelector=f"gang={gang.name}").body["items"])


def test_nobody_goes_for_a_gang_that_a_budget_keeps_out(plane: ControlPlane, api: Api, scheduler: Replica) -> None:
    for name, value in (("low", 1), ("high", 1000)):
        api.make(CLASSES, {"metadata": {"name": f"{api.namespace}-{name}"}, "value": value})
    low, high = (f"{api.namespace}-{name}" for name in ("low", "high"))
    node = {"kubernetes.io/hostname": f"node-{FIRST}"}
    victims = [ranks(api, name, 1, cpu="30", node_labels=node, priority_class=low) for name in ("kept", "free")]
    for victim in victims:
        victim.submit(plane)
    api.budget("kept", needs=1, labels={"gang": "kept"})
    assert eventually(lambda: [phase(api, f"{name}-000") for name in ("kept", "free")] == ["Running", "Running"])
    wanted, other = ranks(api, "wanted", 2, cpu="30", node_labels=node, priority_class=high), ranks(api, "other", 3)
    wanted.submit(plane)
    assert eventually(lambda: bool(events(api, "wanted", "FailedScheduling")))
    other.submit(plane)
    assert eventually(lambda: other.bound(api) == other.size)
    assert [gang.bound(api) for gang in (*victims, wanted)] == [1, 1, 0]
    assert [events(api, f"{name}-000", "Preempted") for name in ("kept", "free")] == [[], []]
    api.remove("policy/v1:poddisruptionbudgets/kept")
    assert eventually(lambda: wanted.bound(api) == wanted.size)
    assert [gang.bound(api) for gang in victims] == [0, 0]


def phase(api: Api, pod: str) -> str:
    return str(api.read(f"pods/{pod}").body.get("status", {}).get("phase"))
