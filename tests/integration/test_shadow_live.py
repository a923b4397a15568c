"""A shadow beside real schedulers, with rights to read and no others; and what it forecasts, beside Phalanx for real."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import launch
from phalanx.dev.programs import files_of, path_of
from phalanx.dev.replicas import Replica
from phalanx.model.kinds import Document
from phalanx.model.work_annotations import DURATION
from phalanx.testing import build
from tests.support import native_groups as native
from tests.support.default_scheduler import kube_scheduler
from tests.support.fault_proxy import Proxy
from tests.support.http_api import connection_to
from tests.support.live_site import Site
from tests.support.shadow_account import shadow_kubeconfig
from tests.support.store_contract import eventually

pytestmark = pytest.mark.xdist_group("controlplane")
SOON_SECONDS = 90.0
MARGIN_SECONDS = 3.0
"""So much may the waits of a forecast differ from those under Phalanx for real."""
RUNS_SECONDS = 12.0
VOLCANO = "vc-scheduler"
SESSIONS_SECONDS = 6.0
"""Volcano holds a session each second, and without its controllers it says nothing of a gang that waits."""


@pytest.fixture
def account(plane: ControlPlane) -> Path:
    return shadow_kubeconfig(plane)


class Shadow:
    """A shadow as a process, behind a proxy that notes what it asks for."""

    def __init__(self, folder: Path, proxy: Proxy) -> None:
        self.recording, self.log, self.proxy = folder / "recording", folder / "shadow.log", proxy

    def reported(self, namespace: str, *options: str) -> dict[str, Any]:
        """Return the report, with the gangs of a namespace alone."""
        answer = CliRunner().invoke(main, ["shadow", "report", str(self.recording), *options, "-o", "json"])
        assert answer.exit_code == 0, answer.output
        found: dict[str, Any] = json.loads(answer.stdout)
        gangs = [gang for gang in found["gangs"] if gang["name"].startswith(f"{namespace}/")]
        return {**found, "gangs": gangs}

    def assert_it_only_read(self) -> None:
        """Fail where it asked for anything else, or was refused something."""
        assert {request.method for request in self.proxy.seen} == {"GET"}
        assert "forbidden" not in self.log.read_text()


@contextmanager
def shadow(account: Path, folder: Path, *flags: str) -> Iterator[Shadow]:
    """Run a shadow beside the block."""
    folder.mkdir()
    with Proxy(connection_to(str(account))) as proxy:
        found = Shadow(folder, proxy)
        config = str(proxy.write_kubeconfig(folder / "config.yaml"))
        words = (
            sys.executable,
            "-m",
            "phalanx",
            "run",
            "--shadow",
            "--kubeconfig",
            config,
            "--record",
            str(found.recording),
            *flags,
        )
        with found.log.open("wb") as file, launch(words, stdout=file, stderr=file) as process:
            assert eventually(lambda: any(found.recording.glob("*.phx")), seconds=SOON_SECONDS), found.log.read_text()
            try:
                yield found
            finally:
                process.terminate()
            assert process.wait(timeout=SOON_SECONDS) == 0, found.log.read_text()


@contextmanager
def volcano(plane: ControlPlane, folder: Path) -> Iterator[None]:
    """Run Volcano's scheduler beside the block."""
    words = (
        str(path_of(VOLCANO)), f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", f"--cache-dump-dir={folder}",
        f"--scheduler-conf={files_of(VOLCANO) / 'volcano-scheduler.conf'}",
    )  # fmt: skip
    with (folder / "volcano.log").open("wb") as file, launch(words, stdout=file, stderr=file) as process:
        try:
            yield
        finally:
            process.terminate()


def gang(name: str, scheduler: str, namespace: str = "default") -> list[Document]:
    """Return a gang of four that needs a node for each of its pods."""
    group, *pods = build.gang(name, tasks=4, cpu=4)
    group["metadata"]["annotations"] = {DURATION: f"{RUNS_SECONDS:g}s"}
    return [_placed(item, scheduler, namespace) for item in (group, *pods)]


def _placed(document: Document, scheduler: str, namespace: str) -> Document:
    spec = {**document["spec"], "schedulerName": scheduler} if document["kind"] == "Pod" else document["spec"]
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}, "spec": spec}


def in_turn(*gangs: Sequence[Document]) -> list[Document]:
    """Return the objects of gangs one of each at a time."""
    return [item for items in zip_longest(*gangs) for item in items if item is not None]


def make_nodes(site: Site) -> None:
    site.make(build.node(f"place-{number}", cpu=4) for number in range(4))


def waits(found: dict[str, Any], world: str) -> list[float]:
    """Return the waits of the gangs that started in a world, the shortest first."""
    return sorted(gang[world]["wait"] for gang in found["gangs"] if gang[world]["started"])


@pytest.mark.timeout(300)  # a deadlock has to last before it is one, and then the same load is played once more
def test_a_deadlock_of_kube_scheduler_is_named_and_phalanx_does_what_was_forecast(
    plane: ControlPlane, site: Site, account: Path, tmp_path: Path
) -> None:
    make_nodes(site)
    with shadow(account, tmp_path / "theirs", "-v", "2") as theirs, kube_scheduler(plane):
        site.make(in_turn(gang("a", "default-scheduler"), gang("b", "default-scheduler")))
        site.wait(lambda: len(site.bound()) == 4, lambda: site.bound())
        assert eventually(lambda: "deadlock since" in theirs.log.read_text(), seconds=SOON_SECONDS), theirs.log.read_text()
    theirs.assert_it_only_read()
    found = theirs.reported(site.namespace())
    (deadlock,) = found["deadlocks"]
    assert set(deadlock["gangs"]) == {f"{site.namespace()}/{name}" for name in "ab"}
    assert found["recordedProfile"] == "default-scheduler"
    assert {gang["verdict"] for gang in found["gangs"]} == {"earlier"}
    site.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    forecast, happened = waits(found, "ours"), _waits_for_real(plane, site, account, tmp_path)
    assert len(forecast) == len(happened) == 2
    for expected, wait in zip(forecast, happened, strict=True):
        assert wait == pytest.approx(expected, abs=MARGIN_SECONDS), (forecast, happened)


def _waits_for_real(plane: ControlPlane, site: Site, account: Path, folder: Path) -> list[float]:
    """Let Phalanx schedule the same load, and return how long the gangs waited."""
    place = "real"
    flags = ["--kubeconfig", str(plane.scheduler_kubeconfig), "--no-leader-elect", "--scheduler-name", "default-scheduler"]
    with shadow(account, folder / "ours") as ours, Replica(folder, "real", flags):  # it is ready before anything is submitted
        site.make(in_turn(gang("a", "default-scheduler", place), gang("b", "default-scheduler", place)))
        site.await_phases("", {"Running": 4, "Pending": 4}, place)
        first = next(iter(site.bound("", place)))[0]
        site.wait(
            lambda: _seconds_since(site.pods(f"{first}-", place), "startTime") >= RUNS_SECONDS,
            lambda: site.pods(f"{first}-", place),
        )
        site.kubectl("delete", "pods", "--grace-period=0", "--force", *sorted(site.bound("", place)), namespace=place)
        site.await_phases("", {"Running": 4}, place)
    return waits(ours.reported(site.namespace(place)), "recorded")


def _seconds_since(pods: Sequence[Document], moment: str) -> float:
    """Return how long ago the last of some pods was made or started."""
    found = [text for pod in pods if (text := {**pod["metadata"], **pod["status"]}.get(moment))]
    return (datetime.now(UTC) - max(map(datetime.fromisoformat, found))).total_seconds() if found else 0.0


def test_a_native_gang_that_kube_scheduler_lets_wait_is_named(
    plane: ControlPlane, site: Site, account: Path, tmp_path: Path
) -> None:
    make_nodes(site)
    with shadow(account, tmp_path / "theirs") as theirs, kube_scheduler(plane):
        for name in ("first", "second"):
            gangs = native.gang(name, tasks=4, cpu=4)
            site.make([_placed(item, "default-scheduler", "default") for item in gangs])
            site.wait(lambda: len(site.bound("first-")) == 4, lambda: site.bound())
        assert eventually(lambda: "Unschedulable" in str(site.pods("second-")), seconds=SOON_SECONDS), site.pods("second-")
    theirs.assert_it_only_read()
    found = theirs.reported(site.namespace())
    started = {gang["name"].rpartition("/")[2]: gang["recorded"]["started"] for gang in found["gangs"]}
    assert started == {"first": True, "second": False}
    assert (found["recordedProfile"], found["deadlocks"], found["later"]) == ("coscheduling", [], 0)
    forecast, happened = waits(found, "ours"), waits(found, "recorded")
    assert forecast == [pytest.approx(happened[0], abs=MARGIN_SECONDS)]


@pytest.mark.skipif(not path_of(VOLCANO).exists(), reason=f"not built; 'phalanx dev build {VOLCANO}' takes some minutes")
def test_a_gang_that_volcano_lets_wait_is_named(plane: ControlPlane, site: Site, account: Path, tmp_path: Path) -> None:
    make_nodes(site)
    with shadow(account, tmp_path / "theirs") as theirs, volcano(plane, tmp_path):
        site.make(gang("first", "volcano"))
        site.await_phases("first-", {"Running": 4})
        site.make(gang("second", "volcano"))
        site.wait(
            lambda: _seconds_since(site.pods("second-"), "creationTimestamp") >= SESSIONS_SECONDS, lambda: site.pods("second-")
        )
    theirs.assert_it_only_read()
    found = theirs.reported(site.namespace())
    started = {gang["name"].rpartition("/")[2]: gang["recorded"]["started"] for gang in found["gangs"]}
    assert started == {"first": True, "second": False}
    assert (found["recordedProfile"], found["deadlocks"]) == ("volcano", [])
    assert waits(found, "ours")[0] == pytest.approx(waits(found, "recorded")[0], abs=MARGIN_SECONDS)
