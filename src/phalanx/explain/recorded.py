"""Why a gang waits, as its scheduler has recorded it: in events, on its group and on its pods.

For commands that look at a cluster and run no session. The latest event about the gang counts: it is recorded on the group, or on
a pod where there is none. Without one, the conditions of the group and of its pods are put together, because some schedulers write
the reason on the one and some on the others.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from phalanx.explain.gang_status import is_empty, minimum_of
from phalanx.explain.reason_text import counted, no_pods
from phalanx.model.conditions import POD_SCHEDULED
from phalanx.model.gang import Condition, Gang
from phalanx.model.kinds import Document
from phalanx.model.moment import moment_of
from phalanx.state.gang_state import GangState

MOST_REASONS = 2
"""A sentence names this many different reasons of pods."""


REASON_CODE = "phalanx.dev/reason"
"""The annotation of an event about a gang that has the reason code, where the reason is a general word."""


def recorded_code(state: GangState, events: Sequence[Document]) -> str:
    """Return the reason code of the last event about a gang, the newest last; empty where none was recorded."""
    codes = ((event["metadata"].get("annotations") or {}).get(REASON_CODE) for event in reversed(events))
    return "" if is_empty(state) else str(next(filter(None, codes), ""))


def refusal(gang: Gang) -> Condition | None:
    """Return the condition of a group that says that it cannot start."""
    said = (item for item in gang.conditions if (item.type, item.status) in (("Unschedulable", "True"), ("Scheduled", "False")))
    return next(said, None)


def recorded_reason(state: GangState, pods: Sequence[Document], events: Iterable[Document]) -> str:
    """Return the recorded reason why a gang waits; `events` are warnings about it and its pods, oldest first."""
    if is_empty(state):  # what was recorded is about pods that are gone
        return no_pods(minimum_of(state))
    about_gang, about_pods = _split(events, {str(pod["metadata"]["name"]) for pod in pods})
    if about_gang:
        return str(about_gang[-1].get("message", ""))
    condition = refusal(state.gang)
    said = dict.fromkeys([*([condition.message] if condition is not None and condition.message else ()), *_of_pods(pods)])
    reasons = "; ".join(text for text in said if not any(text in other for other in said if other != text))
    return reasons or next((str(event.get("message", "")) for event in reversed(about_pods)), "") or _nothing_recorded(state)


def pod_refusal(pod: Document) -> tuple[str, str]:
    """Return reason and message of the condition of a pod that has no node; empty without such a condition."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    found: Document = next((item for item in conditions if (item.get("type"), item.get("status")) == (POD_SCHEDULED, "False")), {})
    return str(found.get("reason") or ""), str(found.get("message") or "")


def event_time(event: Document) -> str:
    """Return when an event happened last; events of the newer API have no lastTimestamp."""
    series, meta = event.get("series") or {}, event.get("metadata") or {}
    said = (event.get("lastTimestamp"), series.get("lastObservedTime"), event.get("eventTime"), meta.get("creationTimestamp"))
    return str(next((moment for moment in said if moment), ""))


def event_order(event: Document) -> tuple[float, int]:
    """Return what events are sorted by: their time, which has whole seconds, and within one second their version."""
    version = str((event.get("metadata") or {}).get("resourceVersion") or "")
    return moment_of(event_time(event)) or 0.0, int(version) if version.isdigit() else 0


def is_about_gang(event: Document) -> bool:
    """Tell whether an event is about a whole gang, even where a pod stands for it."""
    return REASON_CODE in ((event.get("metadata") or {}).get("annotations") or {})


def _split(events: Iterable[Document], pods: set[str]) -> tuple[list[Document], list[Document]]:
    """Divide events into those about the gang and those about its pods."""
    parts: tuple[list[Document], list[Document]] = ([], [])
    for event in events:
        involved = event.get("involvedObject") or {}
        is_of_pod = involved.get("kind") == "Pod" and involved.get("name") in pods
        parts[int(is_of_pod and not is_about_gang(event))].append(event)
    return parts


def _of_pods(pods: Sequence[Document]) -> list[str]:
    """Return what is written on pods, the most frequent first; all of them alike need no count."""
    counts = Counter(message for pod in pods if (message := pod_refusal(pod)[1]))
    said = counts.most_common(MOST_REASONS)
    return [text if count == len(pods) else f"{counted(count, 'pod')}: {text}" for text, count in said]


def _nothing_recorded(state: GangState) -> str:
    """Say what can be seen where no scheduler has recorded a reason."""
    members, minimum = state.tasks, state.gang.min_member
    if len(members) < minimum:
        verb = "is" if len(members) == 1 else "are"
        return f"{len(members)} of {counted(minimum, 'pod')} {verb} there; nothing starts before all are"
    names = " or ".join(sorted({task.task.scheduler_name for task in members}))
    return f"no scheduler has said anything; is one running for schedulerName {names}?"
