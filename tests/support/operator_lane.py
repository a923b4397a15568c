"""What a lane does with the workloads of an operator's mode, on a real control plane: submit, look, change, watch, delete.

    lane.submit(Order("train", pods=3, gpus=2))
    lane.await_running("train", 3)
    lane.scale("train", 6)
    assert before <= lane.running("train")

Everything is in a namespace of the lane's own, which goes with it. Pods are found by the name of their workload: theirs begin so.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from phalanx.dev.go_build import MODULES, go
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import wait_until
from phalanx.dev.programs import PROGRAMS
from phalanx.scheduling.events import REPORTER
from tests.support.live_site import Site
from tests.support.operator_mode import OperatorMode, Order, Patch, Sample

NODES, GPUS = 4, 2
"""The nodes of the control plane, and how many GPUs each has."""
WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.25
GRACE_SECONDS = 5
"""How long a gang may be stale in lanes."""
BEYOND_SECONDS = GRACE_SECONDS + 2.0
"""Past every grace: what has not been killed by then stays."""
GROUPS = ("podgroups.scheduling.volcano.sh", "podgroups.scheduling.x-k8s.io", "podgroups.scheduling.run.ai")


@dataclass(frozen=True, slots=True)
class Lane:
    """A mode in a namespace of its own."""

    plane: ControlPlane
    site: Site
    mode: OperatorMode

    @property
    def namespace(self) -> str:
        """Where its workloads are."""
        return self.site.namespace("lane")

    # --- workloads ---------------------------------------------------------------------------------------------------

    def submit(self, *orders: Order) -> None:
        """Create workloads, at the same time."""
        documents = [self.mode.write(order) for order in orders]
        self._kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))

    def delete(self, name: str) -> None:
        """Delete a workload and wait until its pods are gone."""
        self._kubectl("delete", self.mode.kind.lower(), name, f"--timeout={WAIT_SECONDS:.0f}s")
        self.await_true(lambda: not self.pods(name), lambda: f"{name} was deleted, and has {self.phases(name)}")

    def suspend(self, name: str) -> None:
        """Suspend a workload."""
        self._patch(name, self.mode.suspend(True))

    def resume(self, name: str) -> None:
        """Resume a workload."""
        self._patch(name, self.mode.suspend(False))

    def scale(self, name: str, pods: int) -> None:
        """Let a workload have another number of pods."""
        self._patch(name, self.mode.scale(pods))

    def _patch(self, name: str, patch: Patch) -> None:
        form = "json" if isinstance(patch, Sequence) else "merge"
        self._kubectl("patch", self.mode.kind.lower(), name, f"--type={form}", "-p", json.dumps(patch))

    def fail(self, pod: str) -> None:
        """Let the containers of a pod fail, as its kubelet would report it."""
        status = {"phase": "Failed", "reason": "Error", "message": "a lane lets it fail"}
        self._kubectl("patch", "pod", pod, "--subresource=status", "-p", json.dumps({"status": status}))

    @contextmanager
    def one_node_less(self) -> Iterator[None]:
        """Close a node to new pods while the block runs."""
        node = self.plane.kubectl("get", "nodes", "-o", "name").split()[0]
        self.plane.kubectl("cordon", node)
        try:
            yield
        finally:
            self.plane.kubectl("uncordon", node)

    def _kubectl(self, *arguments: str, text: str = "") -> str:
        return self.plane.kubectl("-n", self.namespace, *arguments, text=text)

    # --- pods --------------------------------------------------------------------------------------------------------

    def pods(self, name: str = "") -> list[dict[str, Any]]:
        """Return the pods of a workload, or all."""
        return self.site.pods(f"{name}-" if name else "", "lane")

    def phases(self, name: str) -> list[str]:
        """Return the phases of its pods."""
        return [pod["status"]["phase"] for pod in self.pods(name)]

    def bound(self, name: str) -> int:
        """Return how many of its pods have a node."""
        return sum("nodeName" in pod["spec"] for pod in self.pods(name))

    def running(self, name: str) -> set[str]:
        """Return the uids of its pods that run and are not about to go."""
        return {
            pod["metadata"]["uid"] for pod in self.pods(name)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        }  # fmt: skip

    def await_running(self, name: str, count: int) -> None:
        """Wait until so many of its pods run."""
        self.await_true(
            lambda: len(self.running(name)) == count,
            lambda: f"{name} has {self.phases(name)}, not {count} that run; {self.gangs()}; {self.warnings()}",
        )

    def await_all_running(self, name: str, count: int) -> None:
        """Wait until it has so many pods and no others, and all of them run."""
        self.await_true(
            lambda: len(self.pods(name)) == len(self.running(name)) == count,
            lambda: f"{name} has {self.phases(name)}, not just {count} that run; {self.gangs()}; {self.warnings()}",
        )

    def await_waiting(self, name: str) -> None:
        """Wait until the scheduler says that a workload waits."""
        self.await_true(
            lambda: any(gang["status"] == "Waits" and gang["why"] for gang in self.gangs(name).values()),
            lambda: f"nobody says that {name} waits: {self.gangs()}",
        )

    def await_true(self, holds: Callable[[], object], problem: Callable[[], object]) -> None:
        """Wait until something is so; say what is so instead if it takes too long."""
        assert wait_until(holds, WAIT_SECONDS, step=LOOK_SECONDS), problem()

    def watch(self, holds: Callable[[], bool], problem: Callable[[], object], seconds: float = BEYOND_SECONDS) -> None:
        """See that something stays so, beyond every grace."""
        assert not wait_until(lambda: not holds(), seconds, step=LOOK_SECONDS), problem()

    # --- what is said ------------------------------------------------------------------------------------------------

    def gangs(self, name: str = "") -> dict[str, dict[str, Any]]:
        """Return what `phalanx get gangs` shows, by name."""
        shown = json.loads(self._phalanx("get", "gangs", "-n", self.namespace))["items"]
        return {gang["metadata"]["name"]: gang for gang in shown if name in gang["metadata"]["name"]}

    def explained(self, gang: str) -> dict[str, Any]:
        """Return what `phalanx explain` says of a gang."""
        found: dict[str, Any] = json.loads(self._phalanx("explain", f"{self.namespace}/{gang}", "--timeout=0"))
        return found

    def _phalanx(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "phalanx", *arguments, "--kubeconfig", str(self.plane.kubeconfig), "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode in (0, 3), done.stderr
        return done.stdout

    def told(self, name: str) -> list[str]:
        """Return what the condition PodScheduled says on the pods of a workload that wait, each in the words of its dialect."""
        conditions = [item for pod in self.pods(name) for item in pod["status"].get("conditions", ())]
        found = (item for item in conditions if (item["type"], item["status"]) == ("PodScheduled", "False"))
        return [item["message"] for item in found if item.get("reason") and item.get("message")]

    def warnings(self) -> list[str]:
        """Return the warnings that the scheduler has recorded in the namespace, each after the name of what it is about."""
        items = self.site.api("lane").read("events").body["items"]
        ours = (item for item in items if item["type"] == "Warning" and item.get("reportingComponent") == REPORTER)
        return [f"{item['involvedObject']['name']}: {item['reason']}: {item['message']}" for item in ours]

    def leftovers(self) -> list[str]:
        """Return the pods, groups and Services that are left in the namespace, and the gangs that are shown."""
        kinds = ",".join(("pods", "services", *GROUPS))
        found = self._kubectl("get", kinds, "-o", "name").split()
        return [*found, *(f"gang {name}" for name in self.gangs())]

    # --- samples -----------------------------------------------------------------------------------------------------

    def run_sample(self, sample: Sample) -> None:
        """Create a sample as it is in the operator's module, wait until its pods run, delete it and wait until they are gone."""
        file = _module(self.mode) / sample.file
        documents = [item for item in yaml.safe_load_all(file.read_text()) if item]
        (meta,) = (item["metadata"] for item in documents if item["kind"] == self.mode.kind)
        namespace = meta.get("namespace", self.namespace)

        def phases() -> list[str]:
            return self._phases_in(namespace, meta["name"])

        if sample.first:
            self.plane.apply(sample.first)
        self.plane.kubectl("-n", namespace, "create", "-f", str(file))
        try:
            self.await_true(lambda: phases() == ["Running"] * sample.pods, lambda: f"{sample.file}: {phases()}; {self.gangs()}")
        finally:
            self.plane.kubectl("-n", namespace, "delete", "-f", str(file), f"--timeout={WAIT_SECONDS:.0f}s")
        self.await_true(lambda: not phases(), lambda: f"{sample.file}: {phases()} after it was deleted")

    def _phases_in(self, namespace: str, start: str) -> list[str]:
        pods = json.loads(self.plane.kubectl("-n", namespace, "get", "pods", "-o", "json"))["items"]
        return [pod["status"]["phase"] for pod in pods if pod["metadata"]["name"].startswith(f"{start}-")]


def _module(mode: OperatorMode) -> Path:
    """Return where the source of an operator is; Go fetches it if only its binary was kept."""
    command = [go(), "mod", "download", "-json", mode.module]
    done = subprocess.run(command, cwd=MODULES / PROGRAMS[mode.operator].module, capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])
