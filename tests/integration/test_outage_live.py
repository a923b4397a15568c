"""What a scheduler does when the API server is gone for a while, or says no."""

import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest

from phalanx.dev.commands import SERVER
from phalanx.dev.nodes import RACK, Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import Replica
from phalanx.dialects.binding import FAILED_BINDS
from phalanx.testing.api import connection_to
from phalanx.testing.audit import BindAudit
from phalanx.testing.contract import Api, eventually
from phalanx.testing.ranks import Ranks

pytestmark = pytest.mark.xdist_group("controlplane")
FIRST, BIG = 30001, 200
NODES = tuple(f"/api/v1/nodes/node-{number}" for number in range(FIRST, FIRST + 4))
ROOM = {RACK: "rack-7501"}
"""The nodes of these tests are a rack of their own, with room for 240 pods."""
OUTAGE_SECONDS, RECOVERY_SECONDS = 10.0, 60.0
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    name = f"outage-{secrets.token_hex(4)}"
    api = Api(connection_to(str(plane.kubeconfig)), name)
    assert api.make("/api/v1/namespaces", {"metadata": {"name": name}}).code == 201
    plane.add_nodes(len(NODES), Machines(cpu="60", per_rack=len(NODES)), first=FIRST)
    yield api
    for place in (*NODES, f"/api/v1/namespaces/{name}"):
        api.remove(place)


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane, api: Api) -> Iterator[Replica]:
    """One scheduler for all these tests, whatever happens to the server."""
    arguments = [
        "--kubeconfig", str(plane.kubeconfig), "--scheduler-name", api.namespace, "--lease-namespace", api.namespace, "-v", "2",
    ]  # fmt: skip
    with Replica(plane.folder, "steady", arguments) as replica:
        yield replica


def ranks(api: Api, name: str, size: int, **more: Any) -> Ranks:
    return Ranks(api.namespace, name, size, api.namespace, **{"node_labels": ROOM, **more})


def submit(plane: ControlPlane, gang: Ranks) -> None:
    plane.create([gang.group()])
    plane.create(gang.pods())


def bound(api: Api, gang: Ranks) -> int:
    return api.bound(labelSelector=f"gang={gang.name}")


def test_a_scheduler_finishes_its_work_after_an_outage(plane: ControlPlane, api: Api, scheduler: Replica) -> None:
    number = scheduler.process.number.read_text()
    old, big, new = ranks(api, "old", 40), ranks(api, "big", BIG), ranks(api, "new", 40)
    submit(plane, old)
    assert eventually(lambda: bound(api, old) == old.size)
    with BindAudit(api, at=old.size + 20, then=lambda: plane.stop(SERVER, is_kill=True)) as audit:
        submit(plane, big)
        assert eventually(lambda: not plane.process(SERVER).is_running())
        time.sleep(OUTAGE_SECONDS)
        assert scheduler.ask("/readyz")[0] == 200
        with scheduler.asleep():  # so that it sees what happens now only in a list, and no watch tells it
            plane.start(SERVER)
            assert 20 <= bound(api, big) <= BIG - 20
            api.remove("pods", labelSelector="gang=old", gracePeriodSeconds=0)
            plane.compact()
        assert eventually(lambda: bound(api, big) == BIG, seconds=RECOVERY_SECONDS)
    submit(plane, new)
    assert eventually(lambda: bound(api, new) == new.size, seconds=RECOVERY_SECONDS)
    assert audit.bound_twice == []
    assert (scheduler.process.number.read_text(), scheduler.process.is_running()) == (number, True)
    assert [scheduler.ask(path)[0] for path in ("/readyz", "/livez")] == [200, 200]
    assert f"phalanx_pods_scheduled_total {old.size + BIG + new.size}.0" in scheduler.ask("/metrics")[1]
    assert "Traceback" not in scheduler.said()
