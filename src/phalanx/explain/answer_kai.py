"""The part of the answer for the profile kai: what KAI's binder, controllers and scheduler would write."""

from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.dialects.bind_requests import bind_request_document
from phalanx.dialects.kai_events import KaiEvent, events
from phalanx.dialects.kai_status import queue_status, resources_status
from phalanx.dialects.traits import traits_of
from phalanx.kai.accounts import KaiAccount, group_account, queue_accounts
from phalanx.kai.bind_orders import bind_orders
from phalanx.kai.gpu_reservations import plan_reservations
from phalanx.model.queue import Queue
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.state.gang_state import GangState


def with_kai(answer: dict[str, Any], parts: Sequence[ShardDecisions]) -> dict[str, Any]:
    """Add bind requests, reservations of shared GPUs, events, and the status and stamps of groups and queues."""
    accounts = [(gang, group_account(gang, part.snapshot)) for part in parts for gang in _gangs(part)]
    groups = {gang.key: {"resourcesStatus": resources_status(account)} for gang, account in accounts}
    stamps = {key: {"annotations": dict(sorted(texts.items()))} for part in parts for key, texts in part.decisions.stamps.items()}
    orders = [order for part in parts for order in bind_orders(part.snapshot, part.decisions)]
    return {
        **answer,
        "groups": _with(_with(answer["groups"], groups), stamps),
        "queues": dict(sorted(_with(answer["queues"], _queues(parts[0].snapshot.queue_objects, accounts)).items())),
        "bindRequests": [bind_request_document(order) for order in sorted(orders, key=lambda order: order.task.key)],
        "deleteBindRequests": dict(sorted(item for part in parts for item in part.snapshot.lost_requests.items())),
        "gpuReservations": _reservations(parts),
        "events": [_event(event) for part in parts for event in events(part.snapshot, part.decisions)],
    }


def _gangs(part: ShardDecisions) -> list[GangState]:
    return [outcome.state for outcome in part.decisions.outcomes if traits_of(outcome.state.gang).has_resources_status]


def _queues(queues: Mapping[str, Queue], accounts: list[tuple[GangState, KaiAccount]]) -> dict[str, dict[str, Any]]:
    """Return the status of every queue; its sums are over the groups of all schedulers."""
    totals = queue_accounts(queues, ((gang.gang.queue, account) for gang, account in accounts))
    return {name: {"status": queue_status(queues, name, account)} for name, account in totals.items()}


def _with(entries: dict[str, Any], more: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    return {**entries, **{key: {**entries.get(key, {}), **part} for key, part in more.items()}}


def _reservations(parts: Sequence[ShardDecisions]) -> dict[str, Any]:
    plans = [plan_reservations(part.snapshot, part.decisions) for part in parts]
    return {
        "create": [{"group": group, "node": node} for group, node in sorted(entry for plan in plans for entry in plan.create)],
        "delete": sorted(key for plan in plans for key in plan.delete),
        "unreserved": sorted(key for plan in plans for key in plan.unreserved),
    }


def _event(event: KaiEvent) -> dict[str, Any]:
    annotations = {"annotations": dict(event.annotations)} if event.annotations else {}
    fields = {"type": event.type, "reason": event.reason, "message": event.message}
    return {"kind": event.kind, "object": event.key, **fields, **annotations}
