"""What the answer says besides when the profile is kai: what KAI's binder, controllers and scheduler would write."""

from typing import Any

from phalanx.core.decision import Decisions
from phalanx.core.snapshot import Snapshot
from phalanx.dialects.binding import bind_request_document
from phalanx.dialects.kai_events import Event, events
from phalanx.dialects.kai_status import queue_status, resources_status
from phalanx.kai.accounts import group_account, queue_accounts
from phalanx.kai.binding import bind_orders
from phalanx.kai.reservations import plan_reservations


def with_kai(answer: dict[str, Any], snapshot: Snapshot, decisions: Decisions) -> dict[str, Any]:
    """Add bind requests, reservations of shared GPUs, events, and the status and stamps of groups and queues."""
    gangs = [outcome.state for outcome in decisions.outcomes if outcome.state.gang.dialect == "kai"]
    accounts = {gang.key: group_account(gang, snapshot) for gang in gangs}
    groups = {gang.key: {"resourcesStatus": resources_status(accounts[gang.key])} for gang in gangs}
    stamps = {key: {"annotations": dict(sorted(texts.items()))} for key, texts in decisions.stamps.items()}
    totals = queue_accounts(snapshot.queues, ((gang.gang.queue, accounts[gang.key]) for gang in gangs))
    queues = {name: {"status": queue_status(snapshot.queues, name, account)} for name, account in totals.items()}
    return {
        **answer,
        "groups": _with(_with(answer["groups"], groups), stamps),
        "queues": dict(sorted(_with(answer["queues"], queues).items())),
        "bindRequests": [bind_request_document(order) for order in bind_orders(snapshot, decisions)],
        "deleteBindRequests": dict(sorted(snapshot.lost_requests.items())),
        "gpuReservations": _reservations(snapshot, decisions),
        "events": [_event(event) for event in events(snapshot, decisions)],
    }


def _with(entries: dict[str, Any], more: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    return {**entries, **{key: {**entries.get(key, {}), **part} for key, part in more.items()}}


def _reservations(snapshot: Snapshot, decisions: Decisions) -> dict[str, Any]:
    plan = plan_reservations(snapshot, decisions)
    create = [{"group": group, "node": node} for group, node in plan.create]
    return {"create": create, "delete": list(plan.delete), "unreserved": list(plan.unreserved)}


def _event(event: Event) -> dict[str, Any]:
    marks = {"annotations": dict(event.annotations)} if event.annotations else {}
    told = {"type": event.type, "reason": event.reason, "message": event.message}
    return {"kind": event.kind, "object": event.key, **told, **marks}
