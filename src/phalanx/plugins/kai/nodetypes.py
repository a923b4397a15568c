"""Which nodes a task fits by kind: whole GPUs, MIG devices, claims; part of the filters of the profile kai."""

from collections.abc import Sequence

import numpy as np

from phalanx.kubernetes.shared_gpus import uses_gpu
from phalanx.model.resources import GPU
from phalanx.model.shape import Shape
from phalanx.model.task import Task
from phalanx.placement import Index, Mask
from phalanx.session.arguments import PlainPlugin
from phalanx.session.node_answers import Layer
from phalanx.session.session import Session
from phalanx.session.shards import CPU_WORKER, GPU_WORKER
from phalanx.state.gang_state import TaskState
from phalanx.state.verdict import YES, Verdict

STRATEGY, QUEUE = "nvidia.com/mig.strategy", "kai.scheduler/queue"
MIG = "nvidia.com/mig-"


class NodeTypesPlugin(PlainPlugin):
    """Keeps MIG devices and whole GPUs apart, and claims of another queue out."""

    name = "nodetypes"

    def prefilter(self, session: Session, task: TaskState) -> Verdict:
        """Refuse old-style MIG pods, and shared claims on GPUs that belong to another queue."""
        if is_legacy_mig(task.task):
            return Verdict.refuse(self.name, "LegacyMig", "pods that ask for MIG devices by annotation are not placed")
        claims = session.snapshot.surroundings.resource_claims
        for use in task.task.shape.resource_claims:
            claim = claims.get(f"{task.task.namespace}/{use.claim}")
            is_gpu = claim is not None and any("gpu" in request.device_class.lower() for request in claim.requests)
            if claim is not None and is_gpu and not claim.is_templated and claim.labels.get(QUEUE) != task.gang.gang.queue:
                text = f"claim {use.claim} is shared and not labelled {QUEUE}={task.gang.gang.queue}"
                return Verdict.refuse(self.name, "ClaimOfOtherQueue", text)
        return YES

    def screen(self, session: Session, shape: Shape, nodes: Index | slice) -> Sequence[Layer]:
        """Refuse nodes of the wrong kind."""
        column = session.snapshot.nodes.label(STRATEGY)
        wants_mig = any(name.startswith(MIG) for name in shape.request)
        wants_gpu = bool(shape.request.get(GPU)) or shape.gpu_share is not None
        workers = _workers(session, shape, nodes)
        if wants_mig:
            refused = column.where(lambda value: value == "single") | self._legacy_nodes(session)
            return [*workers, Layer(refused[nodes], "node(s) cannot give MIG devices to the pod", is_final=True)]
        if wants_gpu:
            mixed = column.where(lambda value: value == "mixed")[nodes]
            return [*workers, Layer(mixed, "node(s) give only MIG devices", is_final=True), *_undivided(session, shape, nodes)]
        return workers

    def _legacy_nodes(self, session: Session) -> Mask:
        """Mark nodes with an old-style MIG pod."""
        mask: Mask = np.zeros(len(session.snapshot.nodes), dtype=np.bool_)
        for name, tasks in session.snapshot.on_node.items():
            if any(map(is_legacy_mig, tasks.values())) and name in session.snapshot.nodes.number_by_name:
                mask[session.snapshot.nodes.number_by_name[name]] = True
        return mask


def _undivided(session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
    """Keep parts of GPUs from nodes whose GPUs are divided already: what looks like a whole GPU there is a MIG device."""
    if shape.gpu_share is None:
        return []
    single = session.snapshot.nodes.label(STRATEGY).where(lambda value: value == "single")[nodes]
    return [Layer(single, "node(s) give only whole MIG devices", is_final=True)]


def _workers(session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
    """Keep pods with and without GPUs on the nodes that are labelled for them, if the policy wants that."""
    if session.policy.options.get("restrictNodeScheduling") is not True:
        return []
    label, kind = (GPU_WORKER, "with") if uses_gpu(shape) else (CPU_WORKER, "without")
    outside = ~session.snapshot.nodes.label(label).present
    return [Layer(outside[nodes], f"node(s) are not for pods {kind} GPUs", is_final=True)]


def is_legacy_mig(task: Task) -> bool:
    """Tell whether a pod asks for MIG devices by annotation."""
    return any(key.startswith(MIG) for key in task.annotations)
