"""Devices on a real control plane: parts of GPUs with the program that reserves them, and resource claims."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from phalanx.controllers.binder.reservation_pod import ACCOUNT, HOME, VISIBLE
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import launch
from phalanx.dev.replicas import scheduling
from phalanx.manifests.gpu_reservations import reservation_documents
from phalanx.manifests.install_settings import InstallSettings
from phalanx.model.kinds import Document
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support.live_site import Site
from tests.support.store_contract import Api

pytestmark = pytest.mark.xdist_group("controlplane")
RESERVED, GROUP = "run.ai/reserve_for_gpu_index", "runai-gpu-group"
SETTINGS = InstallSettings(config="")


@pytest.fixture(scope="module", autouse=True)
def scheduler(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    plane.apply(reservation_documents(SETTINGS))
    with scheduling(plane, tmp_path_factory.mktemp("run"), "--profile=kai", "--scheduler-name=kai-scheduler"):
        yield


def ours(document: Document) -> Document:
    return {**document, "spec": {**document["spec"], "schedulerName": "kai-scheduler"}} if document["kind"] == "Pod" else document


# --- parts of GPUs -------------------------------------------------------------------------------------------------------


class Reservations:
    """The reservation pods on the nodes of a test, and the programs that kwok does not run in them."""

    def __init__(self, plane: ControlPlane, site: Site) -> None:
        self._api, self._node = Api(site.connection, HOME), site.node("")
        self._config = plane.kubeconfig_of(HOME, ACCOUNT)
        self._programs: list[subprocess.Popen[str]] = []

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._api.read("pods").body["items"]
        return [pod for pod in found if pod["spec"]["nodeName"].endswith(self._node)]

    def start(self, pod: Document, device: str) -> None:
        """Run what the pod says, as whom it says, with the environment that it would have on a node with GPUs."""
        (container,) = pod["spec"]["containers"]
        assert pod["spec"]["serviceAccountName"] == ACCOUNT
        fields = {item["name"]: item["valueFrom"]["fieldRef"]["fieldPath"].split(".")[1] for item in container["env"]}
        told = {name: pod["metadata"][field] for name, field in fields.items()}
        command = [sys.executable, "-m", "phalanx", *container["args"], "--kubeconfig", str(self._config)]
        self._programs.append(launch(command, env={**os.environ, **told, "NVIDIA_VISIBLE_DEVICES": device}))

    def end(self) -> None:
        for program in self._programs:
            program.terminate()
        assert [program.wait(10) for program in self._programs] == [0] * len(self._programs)


@contextmanager
def reserving(plane: ControlPlane, site: Site) -> Iterator[Reservations]:
    found = Reservations(plane, site)
    try:
        yield found
    finally:
        found.end()


def told(site: Site) -> dict[str, tuple[str | None, str | None]]:
    """Return which group and which devices each pod with a node was told."""
    metas = [pod["metadata"] for pod in site.pods() if pod["spec"].get("nodeName")]
    return {meta["name"]: (meta["labels"].get(GROUP), meta["annotations"].get(VISIBLE)) for meta in metas}


def halves(*names: str) -> list[Document]:
    return [ours(item) for name in names for item in kai.gang(name, share=0.5)]


def test_two_halves_share_a_gpu_and_go_with_its_reservation(plane: ControlPlane, site: Site) -> None:
    site.make([kai.queue("default", parent="", quota=-1), kai.queue("a", quota=-1), build.node("n0", cpu=8, gpus=2)])
    with reserving(plane, site) as reservations:
        site.make(halves("one", "two", "three"))
        site.wait(lambda: len(reservations.pods()) == 2, reservations.pods)
        for number, pod in enumerate(reservations.pods()):
            reservations.start(pod, f"GPU-{number}")
        site.wait(lambda: len(told(site)) == 3, lambda: told(site))
        device_by_group = {
            pod["metadata"]["labels"][GROUP]: pod["metadata"]["annotations"][RESERVED] for pod in reservations.pods()
        }
        assert sorted(device_by_group.values()) == ["GPU-0", "GPU-1"]
        assert dict(told(site).values()) == device_by_group
        variables = [pod["spec"]["containers"][0]["env"][0]["valueFrom"]["fieldRef"]["fieldPath"] for pod in site.pods()]
        assert variables == [f"metadata.annotations['{VISIBLE}']"] * 3
        groups = [group for group, _ in told(site).values()]
        shared = max(groups, key=groups.count)
        (alone,) = (name for name, (group, _) in told(site).items() if group != shared)
        site.kubectl("delete", "pod", alone)
        site.wait(lambda: len(reservations.pods()) == 1, reservations.pods)
        plane.kubectl("delete", "pod", "-n", HOME, reservations.pods()[0]["metadata"]["name"])
        site.wait(lambda: not site.pods(), lambda: told(site))
        events = site.api().read("events", fieldSelector="reason=ReservationGone").body["items"]
        assert len(events) == 2


# --- claims --------------------------------------------------------------------------------------------------------------

API, CLASS = "resource.k8s.io/v1", "gpu.example.com"
REQUESTS = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": CLASS}}]}}


def devices(site: Site, count: int) -> list[Document]:
    """Return a class of devices, and a node with so many of them."""
    rule, node = f"device.driver == '{CLASS}'", site.node("n1")
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    offer = {"driver": CLASS, "nodeName": node, "pool": pool, "devices": [{"name": f"gpu-{number}"} for number in range(count)]}
    selectors = {"selectors": [{"cel": {"expression": rule}}]}
    return [_of_devices("DeviceClass", CLASS, selectors), _of_devices("ResourceSlice", node, offer)]


def _of_devices(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, "labels": {"kai.scheduler/queue": "a"}}, "spec": spec}


def users(name: str, tasks: int, **claim: str) -> list[Document]:
    """Return a gang whose pods use a claim each, or all the same one."""
    return [
        {**item, "spec": {**item["spec"], "resourceClaims": [{"name": "gpu", **claim}]}} if item["kind"] == "Pod" else item
        for item in map(ours, kai.gang(name, tasks=tasks))
    ]  # fmt: skip


def allocated(site: Site) -> dict[str, int]:
    """Return how many pods each claim with devices is reserved for, by the pod that the claim was made for or its name."""
    found = site.api().read(f"{API}:resourceclaims").body["items"]
    held = [item for item in found if item.get("status", {}).get("allocation")]
    return {item["metadata"]["name"].partition("-gpu-")[0]: len(item["status"].get("reservedFor", ())) for item in held}


def test_devices_of_claims_go_from_gang_to_gang(site: Site) -> None:
    site.make([kai.queue("default", parent="", quota=-1), kai.queue("a", quota=-1), *devices(site, 2)])
    site.make([build.node("n0", cpu=8), build.node("n1", cpu=8)])
    site.make([_of_devices("ResourceClaimTemplate", "one", {"spec": REQUESTS}), _of_devices("ResourceClaim", "shared", REQUESTS)])
    site.make(users("first", 2, resourceClaimName="shared"))
    site.await_phases("first", {"Running": 2})
    assert allocated(site) == {"shared": 2}
    site.make(users("late", 1, resourceClaimName="shared"))
    site.await_phases("late", {"Running": 1})
    assert allocated(site) == {"shared": 3}
    assert set(site.bound().values()) == {site.node("n1")}
    site.make(users("second", 2, resourceClaimTemplateName="one"))
    site.wait(lambda: "too few devices" in json.dumps(waiting(site, "second")), lambda: waiting(site, "second"))
    assert site.bound("second") == {}
    site.kubectl("delete", "pod", "first-0", "first-1", "late-0")
    site.await_phases("second", {"Running": 2})
    assert allocated(site) == {"second-0": 1, "second-1": 1}


def waiting(site: Site, group: str) -> list[Any]:
    return list(site.api().read("events", fieldSelector=f"involvedObject.name={group}").body["items"])
