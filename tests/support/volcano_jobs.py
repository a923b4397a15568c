"""Jobs of Volcano's in a few words, for tests.

ward = jobs.ward(nodes=2, gpus=4)
ward.submit(jobs.job("train", jobs.task("worker", 2, duration="10m", gpus=1)))
ward.run(60)
assert ward.phase("train") == "Running"
"""

from dataclasses import dataclass, field
from typing import Any

from phalanx.config.builtin import catalogue_of
from phalanx.controllers.controller import Create, Delete, Key, Patch, RecordEvent
from phalanx.controllers.volcano_job.controller import VolcanoJobController
from phalanx.controllers.volcano_job.job import COMMAND, JOB, ParsedJob
from phalanx.controllers.volcano_job.parse import read_job
from phalanx.controllers.volcano_job.plugins.plugin import MakePair
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document, Kind
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.sim.running_work import DURATION
from phalanx.sim.sshkeys import pair_for
from phalanx.sim.world import World
from phalanx.testing import build

GROUP = GROUP_BY_DIALECT["volcano"]


def task(name: str, replicas: int = 1, *, duration: str = "", spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a task; `cpu`, `memory` and `gpus` are what a pod asks for, everything else is a field of the task."""
    amounts = build.resources({name: more.pop(name) for name in ("cpu", "memory", "gpus") if name in more} or {"cpu": 1})
    container = {"name": "main", "image": "train:1", "resources": {"requests": amounts}}
    meta = {"annotations": {DURATION: duration}} if duration else {}
    template = {"metadata": meta, "spec": {"containers": [container], **(spec or {})}}
    return {"name": name, "replicas": replicas, "template": template, **more}


def job(name: str, *tasks: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a Job in the namespace default; `spec` holds its other fields."""
    meta = {"name": name, "namespace": "default", "annotations": annotations or {}}
    return {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": meta, "spec": {"tasks": list(tasks), **spec}}


def read(name: str, *tasks: dict[str, Any], **spec: Any) -> ParsedJob:
    """Return a Job as the controller reads it, with the uid u-1."""
    document = job(name, *tasks, **spec)
    return read_job({**document, "metadata": {**document["metadata"], "uid": "u-1"}})


def policy(action: str, *events: str, **more: Any) -> dict[str, Any]:
    """Return a policy of a Job or a task."""
    return {"action": action, **({"events": list(events)} if events else {}), **more}


def command(name: str, target: str, action: str) -> Document:
    """Return a command for a Job."""
    meta = {"name": name, "namespace": "default"}
    aim = {"apiVersion": JOB.api_version, "kind": JOB.kind, "name": target}
    return {"apiVersion": COMMAND.api_version, "kind": COMMAND.kind, "metadata": meta, "action": action, "target": aim}


@dataclass(slots=True)
class Ward:
    """A world with the controller of Jobs, and short words for what one asks about it."""

    world: World
    controller: VolcanoJobController
    told: list[RecordEvent] = field(default_factory=list)

    def submit(self, *documents: Document) -> None:
        """Create objects now."""
        for document in documents:
            self.world.store.create(document)

    def run(self, seconds: float) -> None:
        """Let time pass until so many seconds after the start."""
        self.world.advance(self.world.start + seconds)

    def fail(self, pod: str) -> None:
        """Let a pod fail."""
        self.world.faults.fail("default", pod)

    def job(self, name: str) -> Document:
        """Return a Job as it is."""
        return self.world.store.get(JOB, "default", name)

    def status(self, name: str) -> Document:
        """Return the status of a Job."""
        found: Document = self.job(name).get("status") or {}
        return found

    def phase(self, name: str) -> str:
        """Return where a Job stands."""
        return str(self.status(name)["state"]["phase"])

    def group(self, name: str) -> Document:
        """Return the PodGroup of a Job."""
        return self.world.store.get(GROUP, "default", f"{name}-{self.job(name)['metadata']['uid']}")

    def pods(self) -> dict[str, str]:
        """Return the phases of all pods."""
        return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.world.store.items(POD)}

    def pod(self, name: str) -> Document:
        """Return a pod."""
        return self.world.store.get(POD, "default", name)

    def change(self, kind: Kind, name: str, patch: Document, *, is_status: bool = False) -> None:
        """Change an object, as its user would, or its status, as a kubelet would."""
        self.world.store.patch(kind, "default", name, patch, is_status=is_status)

    def writes(self, name: str) -> list[Create | Delete | Patch]:
        """Return what the controller would write now, besides events."""
        result = self.controller.reconcile(self.world.store, Key("default", name))
        return [write for write in result.writes if isinstance(write, Create | Delete | Patch)]


def ward(chosen: Policy | None = None, *, nodes: int = 4, make_pair: MakePair = pair_for, **offers: Any) -> Ward:
    """Return a world with equal nodes and a queue, in which Jobs are kept."""
    profile = chosen or build.policy()
    controller = VolcanoJobController(make_pair, has_admission=profile.has_admission)
    world = World(Profile(profile, catalogue_of(profile.catalogue)), controllers=[controller])
    world.load([*(build.node(f"node-{number}", **offers) for number in range(nodes)), build.queue("default")])
    found = Ward(world, controller)
    world.on_event(found.told.append)
    return found
