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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
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
LATE_SECONDS = 120.0
"""Where a Job makes four pods anew."""
LOOK_SECONDS = 0.25
GRACE_SECONDS = 5
"""How long a gang may be stale in lanes."""
BEYOND_SECONDS = GRACE_SECONDS + 2.0
"""Past every grace: what has not been killed by then stays."""
URGENT = "lane-urgent"
"""A PriorityClass."""
STALENESS_GRACE = "phalanx.dev/staleness-grace"
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
        self.create(*(item for document in documents for item in document.get("items", [document])))

    def create(self, *documents: Mapping[str, Any]) -> None:
        """Create objects."""
        self.kubectl("create", "-f", "-", text=json.dumps(_list(documents)))

    def delete(self, name: str) -> None:
        """Delete a workload and wait until its pods are gone."""
        self.mode.delete(self, self.mode.address(name))
        self.await_true(lambda: not self.pods(name), lambda: f"{name} was deleted, and has {self.phases(name)}")

    def suspend(self, name: str) -> None:
        """Suspend a workload."""
        self.mode.suspend(self, self.mode.address(name), True)

    def resume(self, name: str) -> None:
        """Resume a workload."""
        self.mode.suspend(self, self.mode.address(name), False)

    def scale(self, name: str, pods: int) -> None:
        """Let a workload have another number of pods."""
        assert self.mode.scale is not None, f"{self.mode.label} names no reason why it has no lane 'scale'"
        self.mode.scale(self, self.mode.address(name), pods)

    def fail_one(self, name: str) -> set[str]:
        """Let the containers of a pod fail, as its kubelet would report it, and return the uids of the others, which run."""
        concerned = [pod["metadata"] for pod in self.pods(name) if self.mode.failing in pod["metadata"]["name"]]
        failed = max(concerned, key=lambda meta: str(meta["name"]))
        others = self.running(name) - {failed["uid"]}
        status = {"phase": "Failed", "reason": "Error", "message": "a lane lets it fail"}
        self.kubectl("patch", "pod", failed["name"], "--subresource=status", "-p", json.dumps({"status": status}))
        self.await_true(lambda: failed["uid"] not in self.running(name), lambda: self.phases(name))
        return others

    def be_patient(self) -> None:
        """Let gangs be stale for longer than it takes their owners to replace a member."""
        self.kubectl("annotate", ",".join(GROUPS), "--all", f"{STALENESS_GRACE}={WAIT_SECONDS:.0f}s")

    # --- what a user types -------------------------------------------------------------------------------------------

    def patch(self, address: str, patch: Patch) -> None:
        """Change an object."""
        form = "json" if isinstance(patch, Sequence) else "merge"
        self.kubectl("patch", address, f"--type={form}", "-p", json.dumps(patch))

    def kubectl(self, *arguments: str, text: str = "") -> str:
        """Run kubectl in the namespace and return what it prints."""
        return self.plane.kubectl("-n", self.namespace, *arguments, text=text)

    def phalanx(self, *arguments: str) -> str:
        """Run a command of ours in the namespace and return what it prints; "no" is an answer too."""
        command = [sys.executable, "-m", "phalanx", *arguments, "-n", self.namespace, f"--kubeconfig={self.plane.kubeconfig}"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode in (0, 3), done.stderr
        return done.stdout

    @contextmanager
    def one_node_less(self) -> Iterator[None]:
        """Close a node to new pods while the block runs."""
        node = self.plane.kubectl("get", "nodes", "-o", "name").split()[0]
        self.plane.kubectl("cordon", node)
        try:
            yield
        finally:
            self.plane.kubectl("uncordon", node)

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

    def await_waiting(self, name: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until the scheduler says that a workload waits."""
        self.await_true(
            lambda: any(gang["status"] == "Waits" and gang["why"] for gang in self.gangs(name).values()),
            lambda: f"nobody says that {name} waits: {self.gangs()}", seconds,
        )  # fmt: skip

    def await_true(self, holds: Callable[[], object], problem: Callable[[], object], seconds: float = WAIT_SECONDS) -> None:
        """Wait until something is so; say what is so instead if it takes too long."""
        assert wait_until(holds, seconds, step=LOOK_SECONDS), problem()

    def watch(self, holds: Callable[[], bool], problem: Callable[[], object], seconds: float = BEYOND_SECONDS) -> None:
        """See that something stays so, beyond every grace."""
        assert not wait_until(lambda: not holds(), seconds, step=LOOK_SECONDS), problem()

    # --- what is said ------------------------------------------------------------------------------------------------

    def gangs(self, name: str = "") -> dict[str, dict[str, Any]]:
        """Return what `phalanx get gangs` shows, by name."""
        shown = json.loads(self.phalanx("get", "gangs", "-o", "json"))["items"]
        return {gang["metadata"]["name"]: gang for gang in shown if name in gang["metadata"]["name"]}

    def explained(self, gang: str) -> dict[str, Any]:
        """Return what `phalanx explain` says of a gang, in a session with the profile of the scheduler."""
        profile = f"--profile={self.mode.profile}"
        found: dict[str, Any] = json.loads(self.phalanx("explain", gang, profile, "--timeout=0", "-o", "json"))
        return found

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
        found = self.kubectl("get", kinds, "-o", "name").split()
        return [*found, *(f"gang {name}" for name in self.gangs())]

    # --- samples -----------------------------------------------------------------------------------------------------

    def run_sample(self, sample: Sample) -> None:
        """Create a sample as it is in the operator's module, wait until its pods run, delete it and wait until they are gone."""
        if sample.first:
            self.plane.apply(sample.first)
        with ExitStack() as made:
            for file in sample.files:
                text = (_module(self.mode) / file).read_text()
                made.enter_context(self._created(text, _namespace_of(text) or self.namespace))
            if sample.then:
                made.enter_context(self._created(json.dumps(_list(sample.then)), self.namespace))
            self.await_true(
                lambda: self._all_phases() == ["Running"] * sample.pods,
                lambda: f"{sample.files}: {self._all_phases()}; {self.gangs()}",
            )
        self.await_true(lambda: not self._all_phases(), lambda: f"{sample.files}: {self._all_phases()} after they were deleted")

    @contextmanager
    def _created(self, text: str, namespace: str) -> Iterator[None]:
        """Let objects be there; some get their names only when they are created."""
        made = self.plane.kubectl("-n", namespace, "create", "-f", "-", "-o", "json", text=text)
        try:
            yield
        finally:
            self.plane.kubectl("delete", "-f", "-", f"--timeout={WAIT_SECONDS:.0f}s", text=made)

    def _all_phases(self) -> list[str]:
        """Return the phases of all pods that there are; a lane begins with none."""
        return [pod["status"]["phase"] for pod in json.loads(self.plane.kubectl("get", "pods", "-A", "-o", "json"))["items"]]


def _list(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(documents)}


def _namespace_of(text: str) -> str:
    """Return the namespace that a file names, if it names one."""
    named = (item["metadata"].get("namespace") for item in yaml.safe_load_all(text) if item)
    return next(filter(None, named), "")


def _module(mode: OperatorMode) -> Path:
    """Return where the source of an operator is; Go fetches it if only its binary was kept."""
    command = [go(), "mod", "download", "-json", mode.module]
    done = subprocess.run(command, cwd=MODULES / PROGRAMS[mode.operator].module, capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])
