"""The status of a Job, as its users know it."""

from collections.abc import Mapping
from typing import Any

from phalanx.controllers.volcano_job.job import VolcanoJob, VolcanoJobState
from phalanx.controllers.volcano_job.observed_pods import FAILED, PENDING, RUNNING, SUCCEEDED, PodCounts
from phalanx.controllers.volcano_job.state_machine import Transition
from phalanx.model.kinds import Document
from phalanx.model.moment import moment_text

REFUSED = "Refused"
COUNTED = {"pending": PENDING, "running": RUNNING, "succeeded": SUCCEEDED, "failed": FAILED, "unknown": "Unknown"}


def status_of(job: VolcanoJob, step: Transition, tally: PodCounts, now: float) -> dict[str, Any]:
    """Return the status where a Job goes, with the counts of its pods."""
    old: Document = job.document.get("status") or {}
    return {
        "state": _state(old.get("state") or {}, step, now), "conditions": _conditions(old.get("conditions") or [], step, now),
        "version": step.standing.version, "retryCount": step.standing.retries, "minAvailable": job.min_available,
        **{name: tally.of(phase) for name, phase in COUNTED.items()}, "terminating": tally.leaving,
        "taskStatusCount": {task: {"phase": dict(counts)} for task, counts in tally.phases.items()},
        "controlledResources": _controlled(job),
    }  # fmt: skip


def _state(old: Document, step: Transition, now: float) -> dict[str, Any]:
    if old.get("phase") == step.standing.phase and not step.reason:
        kept = {name: text for name, text in old.items() if old.get("reason") != REFUSED or name not in ("reason", "message")}
        return {"lastTransitionTime": _stamp(now), **kept}
    texts = {"reason": step.reason, "message": step.message} if step.reason else {}
    return {"phase": str(step.standing.phase), "lastTransitionTime": _stamp(now), **texts}


def _conditions(old: list[Document], step: Transition, now: float) -> list[Document]:
    if old and old[-1].get("status") == step.standing.phase:
        return old
    return [*old, {"status": str(step.standing.phase), "lastTransitionTime": _stamp(now)}]


def _controlled(job: VolcanoJob) -> dict[str, str]:
    claims = {f"volume-pvc-{volume.claim}": volume.claim for volume in job.volumes if volume.new_claim is not None}
    return {**{f"plugin-{name}": name for name in job.plugins}, **claims}


def _stamp(now: float) -> str:
    return moment_text(int(now))


def refused_status(document: Document, problem: str, now: float) -> dict[str, Any]:
    """Return the status of a Job that cannot be run: it stays where it is, and says why."""
    old: Document = (document.get("status") or {}).get("state") or {}
    state = {"phase": str(VolcanoJobState().phase), "lastTransitionTime": _stamp(now), **old, "reason": REFUSED, "message": problem}
    return {"state": state}


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that makes the old of the new; what stands only in the old is taken away."""
    found: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = difference(before, value)
            found |= {name: inner} if inner else {}
        elif value != before or name not in old:
            found[name] = value
    return found
