"""A shared GPU from its reservation to the container: who says which device it is, and how a container learns it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from phalanx.controllers.binder.reservation_pod import HOME, reservation
from phalanx.dev.processes import launch
from phalanx.errors import Busy, ConfigError, Missing, Unreachable
from phalanx.live import gpu_reservation as module
from phalanx.live.gpu_reservation import device_in, place_in, reserve
from phalanx.manifests.gpu_reservations import home_documents
from phalanx.model.kinds import POD, Document
from phalanx.store.memory import MemoryStore
from tests.support.embedded_server import Server, until
from tests.support.http_api import served

NAME = "gpu-reservation-g1"
ENVIRONMENT = {"NVIDIA_VISIBLE_DEVICES": "GPU-1234", "POD_NAMESPACE": HOME, "POD_NAME": NAME}


# --- the program of the reservation pod ----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["GPU-1234", "0", "MIG-7"])
def test_one_device_is_taken_as_the_device_plugin_names_it(device: str) -> None:
    assert device_in({"NVIDIA_VISIBLE_DEVICES": device}) == device


@pytest.mark.parametrize("device", ["", "all", "none", "void", "0,1", "/var/run/nvidia-container-devices"])
def test_anything_else_is_refused_with_what_to_set(device: str) -> None:
    with pytest.raises(ConfigError, match=r"is not one device; let the pod ask for nvidia.com/gpu: 1, and the device plugin"):
        device_in({"NVIDIA_VISIBLE_DEVICES": device})


@pytest.mark.parametrize("missing", ["POD_NAMESPACE", "POD_NAME"])
def test_a_program_that_does_not_know_its_pod_says_what_to_set(missing: str) -> None:
    with pytest.raises(ConfigError, match=r"not set; let the pod set them from its fields"):
        place_in({name: value for name, value in ENVIRONMENT.items() if name != missing})


def home(store: MemoryStore) -> None:
    for document in (*home_documents({}), reservation("g1", "node-0", "phalanx:1")):
        store.create(document)


def device(store: MemoryStore) -> str | None:
    annotations: Mapping[str, str] = store.get(POD, HOME, NAME)["metadata"].get("annotations", {})
    return annotations.get("run.ai/reserve_for_gpu_index")


def test_the_device_is_written_once_the_server_answers_and_kept_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.001)
    told: list[str] = []

    async def work() -> None:
        server, is_over = Server(), asyncio.Event()
        home(server.store)
        server.refusals.extend([Busy("too many requests"), Unreachable("not now")])
        async with server.opened() as client:
            task = asyncio.create_task(reserve(client, ENVIRONMENT, is_over, report=told.append))
            await until(lambda: device(server.store) == "GPU-1234" and len(told) == 3)
            assert not task.done()
            is_over.set()
            await task

    asyncio.run(work())
    assert [text.rpartition("; ")[2] for text in told[:2]] == ["tried again in 0.001 s", "tried again in 0.002 s"]
    assert told[2] == f"GPU GPU-1234 is reserved by pod {HOME}/{NAME}"


def test_a_pod_that_is_gone_ends_the_program() -> None:
    async def work() -> None:
        async with Server().opened() as client:
            await reserve(client, ENVIRONMENT, asyncio.Event(), report=lambda text: None)

    with pytest.raises(Missing):
        asyncio.run(work())


def test_the_command_reserves_until_it_is_told_to_end(tmp_path: Path) -> None:
    store = MemoryStore(lambda: 0.0)
    home(store)
    with served(store) as connection:
        config = tmp_path / "kubeconfig"
        clusters, contexts = [{"name": "c", "cluster": {"server": connection.server}}], [{"name": "h", "context": {"cluster": "c"}}]
        config.write_text(yaml.safe_dump({"current-context": "h", "clusters": clusters, "contexts": contexts}))
        command = [sys.executable, "-m", "phalanx", "reserve-gpu", "--kubeconfig", str(config)]
        with launch(command, env={**os.environ, **ENVIRONMENT}, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == f"GPU GPU-1234 is reserved by pod {HOME}/{NAME}\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
    assert device(store) == "GPU-1234"


# --- the container -------------------------------------------------------------------------------------------------------

VARIABLE = {
    "name": "NVIDIA_VISIBLE_DEVICES",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['phalanx.dev/visible-devices']"}},
}
OTHER = {"name": "A", "value": "b"}


def made(annotations: Mapping[str, str], *containers: Document, scheduler: str = "kai-scheduler", **spec: Any) -> Document:
    """Return a pod as the cluster keeps it."""
    whole = {"schedulerName": scheduler, "containers": [{"image": "train:1", **each} for each in containers], **spec}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it", "annotations": dict(annotations)}, "spec": whole}
    return MemoryStore(lambda: 0.0).create(pod)


def variables(pod: Document, part: str = "containers") -> list[Any]:
    return [container.get("env") for container in pod["spec"][part]]


def test_the_first_container_of_a_pod_with_a_part_of_a_gpu_learns_its_device() -> None:
    pod = made({"gpu-fraction": "0.5"}, {"name": "a"}, {"name": "b"})
    assert variables(pod) == [[VARIABLE], None]


def test_the_named_container_learns_it_after_what_it_was_told_already() -> None:
    pod = made({"gpu-memory": "500", "gpu-fraction-container-name": "b"}, {"name": "a"}, {"name": "b", "env": [OTHER]})
    assert variables(pod) == [None, [OTHER, VARIABLE]]


def test_a_container_that_runs_before_the_others_can_be_named() -> None:
    first = [{"name": "warm-up", "image": "train:1"}]
    pod = made({"gpu-fraction": "0.5", "gpu-fraction-container-name": "warm-up"}, {"name": "a"}, initContainers=first)
    assert (variables(pod), variables(pod, "initContainers")) == ([None], [[VARIABLE]])


def test_a_container_that_says_itself_what_it_sees_is_left_alone() -> None:
    own = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
    assert variables(made({"gpu-fraction": "0.5"}, {"name": "a", "env": [own]})) == [[own]]


Makes = Callable[[], Document]


@pytest.mark.parametrize(
    "make",
    [lambda: made({}, {"name": "a"}), lambda: made({"gpu-fraction": "0.5"}, {"name": "a"}, scheduler="default-scheduler")],
    ids=["without a part of a GPU", "of another scheduler"],
)
def test_other_pods_are_left_alone(make: Makes) -> None:
    assert variables(make()) == [None]
