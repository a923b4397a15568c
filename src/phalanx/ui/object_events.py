"""Events of the API server: which are about some objects, and what the page shows of one."""

from collections.abc import Collection, Iterable

from phalanx.explain.recorded import event_order, event_time
from phalanx.model.kinds import Document
from phalanx.ui.views import Json

MOST_EVENTS = 200


def about(events: Iterable[Document], namespace: str, names: Collection[str]) -> list[Document]:
    """Return the events about objects of these names, the latest last."""
    wanted = frozenset(names)
    found = [event for event in events if _place(event)[0] == namespace and _place(event)[1] in wanted]
    return sorted(found, key=event_order)[-MOST_EVENTS:]


def _place(event: Document) -> tuple[str, str]:
    involved = event.get("involvedObject") or event.get("regarding") or {}
    return str(involved.get("namespace") or "default"), str(involved.get("name", ""))


def event_row(event: Document) -> Json:
    """Return what the page shows of an event."""
    involved = event.get("involvedObject") or event.get("regarding") or {}
    return {
        "type": str(event.get("type", "")), "reason": str(event.get("reason", "")),
        "about": f"{involved.get('kind', '')} {involved.get('name', '')}",
        "text": str(event.get("message") or event.get("note") or ""), "from": _reporter(event),
        "last": event_time(event),
        "count": int((event.get("series") or {}).get("count") or event.get("count") or 1),
    }  # fmt: skip


def _reporter(event: Document) -> str:
    source = event.get("source") or {}
    return str(event.get("reportingComponent") or event.get("reportingController") or source.get("component") or "")
