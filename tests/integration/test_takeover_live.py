"""Two replicas on a real API server: one leads, and the other finishes what it leaves undone."""

import secrets
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from phalanx.dev.kwok_nodes import RACK, Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import Replica
from tests.support.bind_audit import BindAudit
from tests.support.http_api import connection_to
from tests.support.live_gangs import Ranks, clear
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
FIRST, SIZE = 20001, 200
NODES = tuple(f"/api/v1/nodes/node-{number}" for number in range(FIRST, FIRST + 4))
ROOM = {RACK: "rack-5001"}
"""The nodes of these tests are a rack of their own, with room for a gang of 200 and a little more."""
LEASE_SECONDS = 4


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    name = f"takeover-{secrets.token_hex(4)}"
    api = Api(connection_to(str(plane.kubeconfig)), name)
    plane.create_namespace(name)
    plane.add_nodes(len(NODES), Machines(cpu="60", per_rack=len(NODES)), first=FIRST)
    yield api
    for place in (*NODES, f"/api/v1/namespaces/{name}"):
        api.remove(place)


class Pair(NamedTuple):
    """The replica that leads and the one that stands by."""

    leader: Replica
    standby: Replica


@pytest.fixture(scope="module")
def replicas(plane: ControlPlane, api: Api) -> Iterator[list[Replica]]:
    arguments = [
        "--kubeconfig", str(plane.scheduler_kubeconfig_for(api.namespace)), "--scheduler-name", api.namespace,
        "--lease-namespace", api.namespace, "--lease-duration", str(LEASE_SECONDS), "-v", "2",
    ]  # fmt: skip
    found = [Replica(plane.folder, name, arguments) for name in ("first", "second")]
    yield found
    for replica in found:
        replica.stop()


@pytest.fixture
def pair(api: Api, replicas: list[Replica]) -> Iterator[Pair]:
    """Two replicas that run, whatever the test before did to them."""
    for replica in replicas:
        replica.start()
    for replica in replicas:
        replica.wait()
    assert eventually(lambda: api.leader() in [replica.name for replica in replicas if replica.process.is_running()])
    yield Pair(*sorted(replicas, key=lambda replica: replica.name != api.leader()))
    clear(api)


def cordon(api: Api, *, is_closed: bool = True) -> None:
    for node in NODES:
        assert api.patch(node, {"spec": {"unschedulable": is_closed}}).code == 200


def test_the_standby_finishes_a_gang_whose_leader_was_killed(plane: ControlPlane, api: Api, pair: Pair) -> None:
    gang = Ranks(api.namespace, "finished", SIZE, api.namespace, node_labels=ROOM, owner="indexed Job")
    plane.create([gang.group()])
    with BindAudit(api, at=20, then=pair.leader.kill) as audit:
        plane.create(gang.members())
        assert eventually(lambda: not pair.leader.process.is_running())
        assert 20 <= api.bound() <= SIZE - 20
        assert api.leader() == pair.leader.name
        assert eventually(lambda: api.bound() == SIZE)
    assert api.leader() == pair.standby.name
    assert (len(audit.nodes), audit.bound_twice) == (SIZE, [])


def test_a_gang_that_lost_its_room_with_its_leader_is_taken_back(plane: ControlPlane, api: Api, pair: Pair) -> None:
    annotations = {"phalanx.dev/staleness-grace": "1s"}
    gang = Ranks(api.namespace, "healed", SIZE, api.namespace, node_labels=ROOM, annotations=annotations, owner="StatefulSet")
    plane.create([gang.group()])
    with BindAudit(api, at=20, then=pair.leader.kill) as audit:
        plane.create(gang.members())
        assert eventually(lambda: not pair.leader.process.is_running())
        cordon(api)
        assert (api.leader(), 20 <= api.bound() <= SIZE - 20) == (pair.leader.name, True)
        assert eventually(lambda: api.bound() == 0)
    cordon(api, is_closed=False)
    assert api.leader() == pair.standby.name
    assert (len(audit.nodes) < SIZE, audit.bound_twice) == (True, [])


def test_a_leader_that_is_told_to_end_hands_over_at_once(api: Api, pair: Pair) -> None:
    begun = time.monotonic()
    assert pair.leader.stop() == 0
    assert eventually(lambda: api.leader() == pair.standby.name)
    assert time.monotonic() - begun < LEASE_SECONDS
    assert "Traceback" not in pair.leader.logged()
