"""A configuration that changes while the scheduler runs: metric and event tell of it, and the last good one stays in force."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.config.policies import profile_text
from phalanx.dev.kwok_nodes import RACK, Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import Replica
from tests.support.http_api import connection_to
from tests.support.live_gangs import Ranks
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
FIRST = 50001
ROOM = {RACK: "rack-50001"}
SHORT = profile_text("phalanx").replace(
    "allocate, backfill, gangpreempt, gangreclaim, heal, relieve, overdue", "allocate, backfill"
)
BROKEN = SHORT.replace("name: drf", "name: dfr")


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[Api]:
    name = f"reload-{secrets.token_hex(4)}"
    api = Api(connection_to(str(plane.kubeconfig)), name)
    plane.create_namespace(name)
    plane.add_nodes(1, Machines(cpu="4", per_rack=1), first=FIRST)
    yield api
    for place in (f"nodes/node-{FIRST}", f"namespaces/{name}"):
        api.remove(f"/api/v1/{place}")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(profile_text("phalanx"))
    return path


@pytest.fixture
def scheduler(plane: ControlPlane, api: Api, config: Path) -> Iterator[Replica]:
    arguments = [
        "--kubeconfig", str(plane.scheduler_kubeconfig_for(api.namespace)), "--config", str(config),
        "--scheduler-name", api.namespace, "--lease-namespace", api.namespace,
    ]  # fmt: skip
    with Replica(plane.folder, "reloading", arguments) as replica:
        yield replica


def actions(scheduler: Replica) -> str:
    return str(json.loads(scheduler.ask("/configz")[1])["phalanx"]["actions"])


def has_metric(scheduler: Replica, result: str) -> bool:
    return f'phalanx_config_reloads_total{{result="{result}"}} 1.0' in scheduler.ask("/metrics")[1]


def told(api: Api, reason: str) -> list[str]:
    found = api.read("events", fieldSelector=f"involvedObject.kind=Lease,reason={reason}").body["items"]
    return [event["message"] for event in found]


def test_the_last_good_configuration_stays_in_force(plane: ControlPlane, api: Api, scheduler: Replica, config: Path) -> None:
    assert "heal" in actions(scheduler)
    config.write_text(SHORT)
    assert eventually(lambda: has_metric(scheduler, "applied"))
    assert actions(scheduler) == "allocate, backfill"
    assert eventually(lambda: told(api, "ConfigurationReloaded") == [f"{config}: in force from now on"])
    config.write_text(BROKEN)
    assert eventually(lambda: has_metric(scheduler, "refused"))
    assert eventually(lambda: "dfr" in "".join(told(api, "ConfigurationRefused")))
    assert actions(scheduler) == "allocate, backfill"
    gang = Ranks(api.namespace, "train", 2, api.namespace, node_labels=ROOM, owner="StatefulSet")
    gang.submit(plane)
    assert eventually(lambda: api.bound() == gang.size)
