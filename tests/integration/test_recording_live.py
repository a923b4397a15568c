"""A scheduler on a real API server is recorded, with faults and a kill in between; what it decided is decided again."""

import json
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.dev.kwok_nodes import RACK, Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import launch
from phalanx.dev.replicas import Replica
from phalanx.recording.entries import CarriedOut, Changed, Decided, Header, Moment
from tests.support.fault_proxy import Proxy
from tests.support.http_api import connection_to
from tests.support.live_gangs import Ranks, clear
from tests.support.recordings import all_entries, assert_same, replayed
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
FIRST, NODES = 41001, 4
SOON_SECONDS = 60.0


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[Api]:
    name = f"recorded-{secrets.token_hex(4)}"
    api = Api(connection_to(str(plane.kubeconfig)), name)
    plane.create_namespace(name)
    plane.add_nodes(NODES, Machines(cpu="40", per_rack=NODES), first=FIRST)
    yield api
    clear(api)
    for number in range(FIRST, FIRST + NODES):
        api.remove(f"/api/v1/nodes/node-{number}")
    api.remove(f"/api/v1/namespaces/{name}")


def test_a_live_run_with_faults_is_decided_again_as_it_was(plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    log = tmp_path / "log"
    rack = api.read(f"/api/v1/nodes/node-{FIRST}").body["metadata"]["labels"][RACK]
    with Proxy(connection_to(str(plane.scheduler_kubeconfig_for(api.namespace)))) as proxy:
        flags = [
            "--kubeconfig", str(proxy.write_kubeconfig(tmp_path / "config.yaml")), "--scheduler-name", api.namespace,
            "--no-leader-elect", "--record", str(log), "-v", "2",
        ]  # fmt: skip
        gangs = [Ranks(api.namespace, f"gang-{number}", 8, api.namespace, node_labels={RACK: rack}) for number in range(4)]
        with Replica(tmp_path, "recorded", flags) as replica:
            proxy.fail(500, "/pods/gang-0-003/binding$", times=2)
            proxy.fail(502, "/pods/gang-1-001/binding$", times=1)
            for gang in gangs[:2]:
                gang.submit(plane)
            assert eventually(lambda: sum(gang.bound(api) for gang in gangs[:2]) == 16, seconds=SOON_SECONDS)
            replica.kill()
            replica.start()
            proxy.fail(429, "/binding$", times=3)
            for gang in gangs[2:]:
                gang.submit(plane)
            assert eventually(lambda: sum(gang.bound(api) for gang in gangs) == 32, seconds=SOON_SECONDS)
    entries, told = all_entries(log), list[str]()
    assert len({entry.process for entry in entries if isinstance(entry, Header)}) == 2
    assert sum(isinstance(entry, CarriedOut) and entry.what == "bound" for entry in entries) >= 16
    sessions = replayed(log, tell=told.append)
    assert len(sessions) == sum(isinstance(entry, Decided) for entry in entries)
    assert sum(len(session.decided.get("", {}).get("binds", {})) for session in sessions) >= 16, (
        "a kill costs half a second at most"
    )
    assert_same(sessions)
    _assert_a_load(log, tmp_path / "load.yaml")


def _assert_a_load(log: Path, file: Path) -> None:
    """Make a load of the recording: a restart of the scheduler moves no node, and ends nobody's work."""
    result = CliRunner().invoke(main, ["replay", str(log), "--to", str(file)])
    assert result.exit_code == 0, result.output
    scenario, *_ = yaml.safe_load_all(file.read_text())
    assert not scenario.get("nodes"), "all nodes are there all the time"
    simulated = CliRunner().invoke(main, ["simulate", str(file), "-o", "json"])
    assert simulated.exit_code == 0, simulated.output
    gangs = json.loads(simulated.stdout)["gangs"]
    assert [gang["tasks"] for gang in gangs] == [8] * 4


def test_a_recording_with_a_real_job_is_a_load_with_its_duration(plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "load.yaml"
    rack = api.read(f"/api/v1/nodes/node-{FIRST}").body["metadata"]["labels"][RACK]
    flags = [
        "--kubeconfig", str(plane.scheduler_kubeconfig_for(api.namespace)), "--scheduler-name", api.namespace,
        "--no-leader-elect", "--record", str(log), "-v", "2",
    ]  # fmt: skip
    with Replica(tmp_path, "recorded", flags):
        gang = Ranks(api.namespace, "train", 3, api.namespace, node_labels={RACK: rack}, owner="indexed Job")
        gang.submit(plane)
        assert eventually(lambda: len(running(log)) == 3, seconds=SOON_SECONDS), "who is deleted before has no duration"
        clear(api)
        assert eventually(lambda: not gang.bound(api), seconds=SOON_SECONDS)
    assert_same(replayed(log))
    result = CliRunner().invoke(main, ["replay", str(log), "--to", str(file)])
    assert result.exit_code == 0, result.output
    simulated = CliRunner().invoke(main, ["simulate", str(file), "-o", "json"])
    assert simulated.exit_code == 0, simulated.output
    (found,) = json.loads(simulated.stdout)["gangs"]
    assert (found["name"], found["tasks"]) == (f"{api.namespace}/train", 3)
    moments = [entry.now for entry in all_entries(log) if isinstance(entry, Header | Moment | Decided)]
    assert 0 < found["run"] < max(moments) - min(moments), "from its start to its end, both of which were seen"
    assert "already exists" not in simulated.stderr, "what the cluster had is no news"


def test_a_cluster_is_recorded_without_a_scheduler_and_nothing_is_written(plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Proxy(connection_to(str(plane.kubeconfig))) as proxy:
        config = str(proxy.write_kubeconfig(tmp_path / "config.yaml"))
        words = (sys.executable, "-m", "phalanx", "record", str(log), "--kubeconfig", config)
        with (tmp_path / "record.log").open("wb") as file, launch(words, stdout=file, stderr=file) as process:
            assert eventually(lambda: any(log.glob("*.phx")), seconds=SOON_SECONDS), (tmp_path / "record.log").read_text()
            gang = Ranks(api.namespace, "watched", 3, "nobody")
            gang.submit(plane)
            assert eventually(lambda: len(gang_pods(log)) == 3, seconds=SOON_SECONDS)
            process.terminate()
            assert process.wait(timeout=SOON_SECONDS) == 0
        assert {request.method for request in proxy.seen} == {"GET"}
    result = CliRunner().invoke(main, ["explain", f"{api.namespace}/watched", "--log", str(log), "--scheduler-name", "nobody"])
    assert result.exit_code in (0, 3), result.output


def running(log: Path) -> set[str]:
    """Return the pods that run in a recording by now; it is written half a second later, so they have run for a while then."""
    changes = [entry for entry in all_entries(log) if isinstance(entry, Changed) and entry.kind == "Pod"]
    return {entry.name for entry in changes if entry.fields.get("status", {}).get("phase") == "Running" and "train" in entry.name}


def gang_pods(log: Path) -> set[str]:
    """Return the pods of the gang that are in a recording by now."""
    found = (getattr(entry, "object", {}) for entry in all_entries(log))
    return {item["metadata"]["name"] for item in found if item.get("kind") == "Pod" and "watched" in item["metadata"]["name"]}
