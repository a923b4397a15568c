"""Which node a task goes to. Each score outweighs all that come after it in strength, so they can simply be added."""

import numpy as np

from phalanx.kubernetes.podaffinity import AffinityBook
from phalanx.kubernetes.shared_gpus import SharedGpus, uses_gpu
from phalanx.model.resources import GPU
from phalanx.placement import Amounts, Counts, Mask, Scores
from phalanx.placement.fit import fits
from phalanx.session.arguments import Arguments, PlainPlugin
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState

IDLE, NO_GPU, SHARED, NOMINATED, AFFINITY = 100.0, 10.0, 1000.0, 1_000_000.0, 100_000.0
MOST_PACKED = 9.0


class NodeAvailabilityPlugin(PlainPlugin):
    """Room that is free now before room that is being released."""

    name = "nodeavailability"
    keeps_order = True

    def placement_scores(self, session: Session, task: TaskState, offered: Mask) -> Scores:
        """Score nodes where the task fits on idle room; room on a shared device counts even if somebody is still leaving it."""
        now = fits(session.ledger.idle, session.request_of(task.task.shape))
        if task.task.shape.gpu_share is not None:
            now &= session.book(SharedGpus).seems_free(task.task.shape)
        return np.where(now, IDLE, 0.0)


class ResourceTypePlugin(PlainPlugin):
    """Tasks without GPUs to nodes without GPUs."""

    name = "resourcetype"
    keeps_order = True

    def placement_scores(self, session: Session, task: TaskState, offered: Mask) -> Scores:
        """Score nodes that fit the kind of task."""
        if uses_gpu(task.task.shape):
            return np.zeros(len(offered))
        return np.where(_gpus(session, session.ledger.allocatable) > 0, 0.0, NO_GPU)


class GpuSharingOrderPlugin(PlainPlugin):
    """Parts of GPUs to devices that are shared already.

    A task that asks for nothing of a GPU fits any device, so it is drawn there too, as in KAI 0.13; later versions do not do it.
    """

    name = "gpusharingorder"
    keeps_order = True

    def placement_scores(self, session: Session, task: TaskState, offered: Mask) -> Scores:
        """Score nodes with a shared device that has room."""
        shape, shared = task.task.shape, session.book(SharedGpus)
        if shape.gpu_share is not None:
            return np.where(shared.room(shape)[2], SHARED, 0.0)
        scores = np.zeros(len(offered))
        if not uses_gpu(shape):
            scores[shared.open_nodes(0.0)] = SHARED
        return scores


class NominatedNodePlugin(PlainPlugin):
    """The nominated node of a task before others."""

    name = "nominatednode"
    keeps_order = True

    def placement_scores(self, session: Session, task: TaskState, offered: Mask) -> Scores:
        """Score the nominated node above everything."""
        scores = np.zeros(len(offered))
        number = session.snapshot.nodes.number_by_name.get(task.task.nominated_node)
        if number is not None:
            scores[number] = NOMINATED
        return scores


class PodAffinityPlugin(PlainPlugin):
    """Preferred affinity to other pods."""

    name = "podaffinity"
    keeps_order = True

    def open(self, session: Session) -> None:
        """Prepare what the score reads."""
        self._affinity = AffinityBook(session)

    def placement_scores(self, session: Session, task: TaskState, offered: Mask) -> Scores:
        """Score by preferred terms, over the offered nodes."""
        scores = np.zeros(len(offered))
        if self._affinity.concerns(task.task.shape):
            candidates = np.flatnonzero(offered)
            for term in self._affinity.score(task.task.shape, 1):
                if term.among is not None:
                    scores[candidates] += term.among(candidates) * AFFINITY
        return scores


class NodePlacementPlugin:
    """Pack or spread: the fullest node first, or the emptiest."""

    name = "nodeplacement"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the strategy for GPUs and for tasks without."""
        settings = Arguments(self.name, policy.arguments)
        self._strategies = {kind: settings.choice(kind, "binpack", ("binpack", "spread")) for kind in ("gpu", "cpu")}
        settings.done()
        self.keeps_order = set(self._strategies.values()) == {"binpack"}

    def placement_scores(self, session: Session, task: TaskState, offered: Mask) -> Scores:
        """Score by what is free now or soon, of GPUs or of cpu."""
        is_gpu = uses_gpu(task.task.shape)
        amounts = _gpus if is_gpu else _cpu
        free, total = amounts(session, session.ledger.future), amounts(session, session.ledger.allocatable)
        owners = total > 0
        if self._strategies["gpu" if is_gpu else "cpu"] == "spread":
            return np.where(owners, free / np.where(owners, total, 1), 0.0)
        asked = owners & offered
        if not asked.any():
            return np.zeros(len(offered))
        low, high = int(free[asked].min()), int(free[asked].max())
        packed = np.full(len(offered), MOST_PACKED) if high == low else MOST_PACKED * (1.0 - (free - low) / (high - low))
        return np.where(owners, packed, 0.0)


def _gpus(session: Session, amounts: Amounts) -> Counts:
    row = session.snapshot.space.row_by_name.get(GPU)
    return np.zeros(amounts.shape[1], dtype=np.int64) if row is None else np.asarray(amounts[row])


def _cpu(session: Session, amounts: Amounts) -> Counts:
    return np.asarray(amounts[0])


class GpuPackPlugin(PlainPlugin):
    """Inside a node, the fullest shared device first."""

    name = "gpupack"

    def open(self, session: Session) -> None:
        """Choose devices by how full they are."""
        session.book(SharedGpus).packs = True


class GpuSpreadPlugin(PlainPlugin):
    """Inside a node, the emptiest device first."""

    name = "gpuspread"

    def open(self, session: Session) -> None:
        """Choose devices by how empty they are."""
        session.book(SharedGpus).packs = False
