"""The status of a Job, as Volcano's users know it."""

from collections.abc import Mapping
from typing import Any

from phalanx.controllers.volcano_job.job import ParsedJob, VolcanoJobState
from phalanx.controllers.volcano_job.observed_pods import FAILED, PENDING, RUNNING, SUCCEEDED, PodCounts
from phalanx.controllers.volcano_job.state_machine import Transition
from phalanx.model.kinds import Document
from phalanx.model.moment import moment_text

REFUSED = "Refused"
COUNTED = {"pending": PENDING, "running": RUNNING, "succeeded": SUCCEEDED, "failed": FAILED, "unknown": "Unknown"}


def status_of(job: ParsedJob, transition: Transition, counts: PodCounts, now: float) -> dict[str, Any]:
    """Return the status of a Job after a transition, with the counts of its pods."""
    old: Document = job.document.get("status") or {}
    return {
        "state": _state(old.get("state") or {}, transition, now),
        "conditions": _conditions(old.get("conditions") or [], transition, now),
        "version": transition.state.version, "retryCount": transition.state.retries, "minAvailable": job.min_available,
        **{name: counts.of(phase) for name, phase in COUNTED.items()}, "terminating": counts.leaving,
        "taskStatusCount": {task: {"phase": dict(by_phase)} for task, by_phase in counts.phases.items()},
        "controlledResources": _controlled(job),
    }  # fmt: skip


def _state(old: Document, transition: Transition, now: float) -> dict[str, Any]:
    if old.get("phase") == transition.state.phase and not transition.reason:
        kept = {name: text for name, text in old.items() if old.get("reason") != REFUSED or name not in ("reason", "message")}
        return {"lastTransitionTime": _stamp(now), **kept}
    texts = {"reason": transition.reason, "message": transition.message} if transition.reason else {}
    return {"phase": str(transition.state.phase), "lastTransitionTime": _stamp(now), **texts}


def _conditions(old: list[Document], transition: Transition, now: float) -> list[Document]:
    if old and old[-1].get("status") == transition.state.phase:
        return old
    return [*old, {"status": str(transition.state.phase), "lastTransitionTime": _stamp(now)}]


def _controlled(job: ParsedJob) -> dict[str, str]:
    claims = {f"volume-pvc-{volume.claim}": volume.claim for volume in job.volumes if volume.new_claim is not None}
    return {**{f"plugin-{name}": name for name in job.plugins}, **claims}


def _stamp(now: float) -> str:
    return moment_text(int(now))


def refused_status(document: Document, problem: str, now: float) -> dict[str, Any]:
    """Return the status of a Job that cannot be read: its phase stays, and the message says why."""
    old: Document = (document.get("status") or {}).get("state") or {}
    state = {"phase": str(VolcanoJobState().phase), "lastTransitionTime": _stamp(now), **old, "reason": REFUSED, "message": problem}
    return {"state": state}


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that turns the old value into the new one; keys that only the old one has become null."""
    found: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = difference(before, value)
            found |= {name: inner} if inner else {}
        elif value != before or name not in old:
            found[name] = value
    return found
