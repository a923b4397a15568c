"""KAI's BindRequest v1alpha2, and the annotation that keeps the failed binds of a pod.

On a request, `phalanx.dev/last-attempt` says when an attempt last failed, which its status has no place for, and
`phalanx.dev/rolled-back` that it failed only because another one of its gang did.
The annotation `phalanx.dev/failed-binds` is a JSON list with an entry per node: how often, when last, and what was said then.
Whoever deletes a failed request writes it, so that the next session still knows of the failures.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from phalanx.dialects.field_values import key_of, seconds
from phalanx.dialects.kinds.kai import BindRequestMeta, BindRequestSpec, BindRequestStatus, KaiBindRequest
from phalanx.dialects.kinds.reader import blank
from phalanx.dialects.reading import decode_as
from phalanx.dialects.schema import Int32, Read
from phalanx.dialects.storage_schema import ClaimAllocation, DeviceAllocation
from phalanx.errors import SnapshotError
from phalanx.kai.bind_orders import BindOrder
from phalanx.model.bind_request import PENDING, PHASES, BindRequest
from phalanx.model.moment import moment_text
from phalanx.model.shard import NODE_POOL
from phalanx.model.storage import GrantedDevice
from phalanx.model.task import FailedBind, TaskKey

FAILED_BINDS = "phalanx.dev/failed-binds"
LONGEST_MESSAGE = 256
LAST_ATTEMPT, ROLLED_BACK = "phalanx.dev/last-attempt", "phalanx.dev/rolled-back"


def bind_request(read: KaiBindRequest) -> BindRequest:
    """Read a BindRequest; one that names no pod or no node is refused."""
    meta, spec, status = read.metadata, read.spec, read.status or blank(BindRequestStatus)
    _check(spec, status)
    return BindRequest(
        key=key_of(meta), task=TaskKey(f"{meta.namespace or 'default'}/{spec.pod_name}"), node=spec.selected_node,
        gpu_groups=tuple(spec.selected_gpu_groups or ()), devices=tuple(_devices(spec)), phase=status.phase or PENDING,
        failed_attempts=status.failed_attempts or 0, most_attempts=spec.backoff_limit, latest=_latest(meta),
        owner_uid=next((owner.uid for owner in meta.owner_references or () if owner.kind == "Pod"), ""),
        is_rolled_back=ROLLED_BACK in (meta.annotations or {}), reason=status.reason or "",
    )  # fmt: skip


def _check(spec: BindRequestSpec, status: BindRequestStatus) -> None:
    if not spec.pod_name:
        raise SnapshotError("spec.podName: missing; write the name of the pod to bind")
    if not spec.selected_node:
        raise SnapshotError("spec.selectedNode: missing; write the name of the node to bind it to")
    if status.phase and status.phase not in PHASES:
        raise SnapshotError(f"status.phase: {status.phase!r} is unknown; write one of {', '.join(PHASES)}")
    if (status.failed_attempts or 0) < 0:
        raise SnapshotError(f"status.failedAttempts: {status.failed_attempts} is negative; write 0 or more")


def _devices(spec: BindRequestSpec) -> Iterator[tuple[str, str, str]]:
    for entry in spec.resource_claim_allocations or ():
        given = (entry.allocation or ClaimAllocation()).devices or DeviceAllocation()
        yield from ((result.driver, result.pool, result.device) for result in given.results or ())


def _latest(meta: BindRequestMeta) -> float:
    """Return when an attempt last failed, if the binder says so, else when the request last changed."""
    if stamp := (meta.annotations or {}).get(LAST_ATTEMPT):
        return seconds(stamp, where=f"metadata.annotations[{LAST_ATTEMPT!r}]")
    changes = [seconds(entry.time, where="metadata.managedFields.time") for entry in meta.managed_fields or ()]
    return max([seconds(meta.creation_timestamp, where="metadata.creationTimestamp"), *changes])


def bind_request_document(order: BindOrder) -> dict[str, Any]:
    """Write the BindRequest of a pod that got a node."""
    task, received = order.task, order.received
    spec: dict[str, Any] = {
        "podName": task.name, "selectedNode": order.node, "receivedResourceType": received.kind.value,
        "receivedGPU": {"count": received.devices, "portion": f"{received.portion:.2f}"},
    }  # fmt: skip
    if order.gpu_groups:
        spec["selectedGPUGroups"] = list(order.gpu_groups)
    if order.devices_by_claim:
        spec["resourceClaimAllocations"] = [_allocation(name, devices) for name, devices in order.devices_by_claim.items()]
    if order.most_attempts is not None:
        spec["backoffLimit"] = order.most_attempts
    owner = {"apiVersion": "v1", "kind": "Pod", "name": task.name, **({"uid": task.uid} if task.knows_uid else {})}
    labels = {"selected-node": order.node, **({NODE_POOL: order.node_pool} if order.node_pool else {})}
    meta = {"name": task.name, "namespace": task.namespace, "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest", "metadata": meta, "spec": spec}


def _allocation(name: str, devices: Iterable[GrantedDevice]) -> dict[str, Any]:
    results = [
        {"request": each.request, "driver": each.driver, "pool": each.pool, "device": each.device} for each in devices
    ]  # fmt: skip
    return {"name": name, "allocation": {"devices": {"results": results}}}


class FailedBindRead(Read):
    """One entry of the annotation."""

    node: str
    attempts: Int32
    latest: str
    message: str = ""


def failed_binds(annotations: Mapping[str, str]) -> tuple[FailedBind, ...]:
    """Read which binds of a pod failed; an annotation that cannot be read is refused."""
    text = annotations.get(FAILED_BINDS)
    if text is None:
        return ()
    where = f"metadata.annotations[{FAILED_BINDS!r}]"
    try:
        entries = decode_as(text, list[FailedBindRead])
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        example = '[{"node": "n1", "attempts": 2, "latest": "2026-01-01T12:00:00Z"}]'
        raise SnapshotError(f"{where}: {problem}; write for example {example}") from problem
    found = (FailedBind(entry.node, entry.attempts, seconds(entry.latest, where=where), entry.message) for entry in entries)
    return tuple(sorted((each for each in found if each.attempts > 0), key=lambda each: each.node))


def failed_binds_document(failures: Iterable[FailedBind]) -> list[dict[str, Any]]:
    """Write which binds of a pod failed; as JSON text this is the annotation."""
    return [
        {"node": each.node, "attempts": each.attempts, "latest": moment_text(each.latest), **_message(each.message)}
        for each in failures
    ]  # fmt: skip


def _message(text: str) -> dict[str, str]:
    """Return a message as a field, cut off where it is long: annotations of a pod have little room."""
    short = text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 3]}..."
    return {"message": short} if short else {}
