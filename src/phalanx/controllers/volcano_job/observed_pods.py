"""The pods of a Job as they are observed, and how many of them are in each phase."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phalanx.controllers.objects import annotations_of, is_leaving, meta_of
from phalanx.controllers.volcano_job.job import TASK, TASK_INDEX, VERSION, ParsedJob, ParsedTask
from phalanx.model.kinds import Document
from phalanx.model.moment import moment_of

SUCCEEDED, FAILED, RUNNING, PENDING = "Succeeded", "Failed", "Running", "Pending"
ENDED = (SUCCEEDED, FAILED)


@dataclass(frozen=True, slots=True)
class JobPod:
    """One pod."""

    name: str
    uid: str
    task: str
    index: int
    version: int
    phase: str
    is_leaving: bool
    created: float
    exit_code: int = 0
    restarts: int = 0

    @property
    def is_alive(self) -> bool:
        """Tell whether it has not ended: it holds a node, or may get one."""
        return self.phase not in ENDED

    @property
    def place(self) -> tuple[str, int]:
        """Its task and number."""
        return self.task, self.index


def job_pods(pods: Iterable[Document]) -> list[JobPod]:
    """Return the pods that say which pod of which task they are."""
    return [_job_pod(pod) for pod in pods if annotations_of(pod).get(TASK_INDEX, "").isdigit()]


def _job_pod(pod: Document) -> JobPod:
    meta, annotations, status = meta_of(pod), annotations_of(pod), pod.get("status") or {}
    version = annotations.get(VERSION, "0")
    return JobPod(
        name=meta["name"], uid=meta["uid"], task=annotations.get(TASK, ""), index=int(annotations[TASK_INDEX]),
        version=int(version) if version.isdigit() else 0, phase=status.get("phase") or PENDING, is_leaving=is_leaving(pod),
        created=moment_of(str(meta.get("creationTimestamp") or "")) or 0.0, exit_code=_exit_code(status),
        restarts=_restarts(status),
    )  # fmt: skip


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [item for group in ("initContainerStatuses", "containerStatuses") for item in status.get(group) or ()]


def _exit_code(status: Mapping[str, Any]) -> int:
    """Return the first exit code that is not 0."""
    ends = ((item.get("state") or {}).get("terminated") or {} for item in _containers(status))
    return next((int(end["exitCode"]) for end in ends if end.get("exitCode")), 0)


def _restarts(status: Mapping[str, Any]) -> int:
    return sum(int(item.get("restartCount") or 0) for item in _containers(status))


@dataclass(frozen=True, slots=True)
class PodCounts:
    """How many pods there are by phase; those that are leaving count as nothing else."""

    phases: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By task and phase."""
    leaving: int = 0

    def of(self, phase: str) -> int:
        """Return how many pods are in a phase."""
        return sum(counts.get(phase, 0) for counts in self.phases.values())

    def of_task(self, task: ParsedTask, phase: str) -> int:
        """Return how many pods of a task are in a phase."""
        return self.phases.get(task.name, {}).get(phase, 0)

    @property
    def alive(self) -> int:
        """All that are not over yet."""
        return self.leaving + sum(count for counts in self.phases.values() for phase, count in counts.items() if phase not in ENDED)

    @property
    def known(self) -> int:
        """All that run or ran."""
        return sum(self.of(phase) for phase in (RUNNING, SUCCEEDED, FAILED))


def count_pods(job: ParsedJob, pods: Sequence[JobPod], gone: Iterable[str] = ()) -> PodCounts:
    """Count the pods; those in `gone`, by uid, are being deleted by this reconciliation and count as leaving."""
    going = set(gone)
    staying = [pod for pod in pods if not pod.is_leaving and pod.uid not in going]
    names = {task.name for task in job.tasks}
    counts = {name: Counter(pod.phase for pod in staying if pod.task == name) for name in sorted(names)}
    return PodCounts({name: dict(sorted(found.items())) for name, found in counts.items() if found}, len(pods) - len(staying))
