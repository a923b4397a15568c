"""Volumes, claims, devices, namespaces, services, budgets and quotas: what plugins read besides nodes and pods."""

from phalanx.dialects import schema, storage_schema
from phalanx.dialects.field_values import key_of, label_selector, node_terms, requirement
from phalanx.errors import SnapshotError
from phalanx.model.disruption import DisruptionBudget
from phalanx.model.quantity import to_units
from phalanx.model.quota import ResourceQuota, unit_name
from phalanx.model.resources import amount_of
from phalanx.model.selectors import LabelSelector, NodeSelectorTerm, Requirement
from phalanx.model.storage import (
    Device,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
    StorageCapacity,
    StorageClass,
    Volume,
    VolumeClaim,
    VolumeLimits,
)

TEMPLATE = "resource.kubernetes.io/pod-claim-name"
BOUND = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
LEGACY_CLASS = "volume.beta.kubernetes.io/storage-class"
CLAIMED_STORAGE = "requests.storage"


def storage_class(read: storage_schema.StorageClassRead) -> StorageClass:
    """Read a storage class."""
    terms = [NodeSelectorTerm(tuple(map(_in, term.match_label_expressions or ()))) for term in read.allowed_topologies or ()]
    driver = (read.parameters or {}).get("csi.storage.k8s.io/csi-driver-name", "")
    return StorageClass(
        read.metadata.name, read.provisioner, read.volume_binding_mode == "WaitForFirstConsumer", tuple(terms), driver
    )


def _in(read: schema.Expression) -> Requirement:
    return Requirement(read.key, "In", requirement(read).values)


def volume(read: storage_schema.VolumeRead) -> Volume:
    """Read a persistent volume."""
    spec = read.spec or storage_schema.VolumeSpec()
    affinity = spec.node_affinity.required if spec.node_affinity else None
    claim = spec.claim_ref
    return Volume(
        name=read.metadata.name, storage_class=spec.storage_class_name or "",
        capacity_bytes=to_units((spec.capacity or {}).get("storage", 0)), phase=(read.status and read.status.phase) or "Available",
        labels=read.metadata.labels or {}, node_terms=node_terms(affinity), access_modes=frozenset(spec.access_modes or ()),
        volume_mode=spec.volume_mode or "Filesystem", attributes_class=spec.volume_attributes_class_name or "",
        claimed_by=f"{claim.namespace or 'default'}/{claim.name}" if claim else "", csi_driver=spec.csi.driver if spec.csi else "",
        csi_handle=spec.csi.volume_handle if spec.csi else "", is_deleting=read.metadata.deletion_timestamp is not None,
    )  # fmt: skip


def volume_claim(read: storage_schema.VolumeClaimRead) -> VolumeClaim:
    """Read a persistent volume claim."""
    spec, annotations = read.spec or storage_schema.ClaimSpec(), read.metadata.annotations or {}
    requests = (spec.resources or schema.ResourceRequirements()).requests or {}
    return VolumeClaim(
        key=key_of(read.metadata), storage_class=annotations.get(LEGACY_CLASS, spec.storage_class_name),
        volume=spec.volume_name or "", is_bound=bool(spec.volume_name) and BOUND in annotations,
        request_bytes=to_units(requests.get("storage", 0)), access_modes=frozenset(spec.access_modes or ()),
        volume_mode=spec.volume_mode or "Filesystem", attributes_class=spec.volume_attributes_class_name or "",
        selector=label_selector(spec.selector), selected_node=annotations.get(SELECTED_NODE, ""),
        is_lost=read.status is not None and read.status.phase == "Lost", is_deleting=read.metadata.deletion_timestamp is not None,
    )  # fmt: skip


def volume_limits(read: storage_schema.CsiNode) -> VolumeLimits:
    """Read how many volumes of each driver a node can attach."""
    drivers = (read.spec or storage_schema.CsiNodeSpec()).drivers or ()
    return VolumeLimits(read.metadata.name, {item.name: item.allocatable.count if item.allocatable else None for item in drivers})


def storage_capacity(read: storage_schema.StorageCapacityRead) -> StorageCapacity:
    """Read room for new volumes."""
    return StorageCapacity(read.storage_class_name, to_units(read.capacity or 0), label_selector(read.node_topology))


def resource_claim(read: storage_schema.ResourceClaimRead) -> ResourceClaim:
    """Read a claim on devices."""
    devices = (read.spec or storage_schema.ResourceClaimSpec()).devices or storage_schema.DeviceClaim()
    status = read.status or storage_schema.ResourceClaimStatus()
    allocation = status.allocation
    results = (allocation.devices.results if allocation and allocation.devices else None) or ()
    return ResourceClaim(
        key_of(read.metadata), tuple(map(_device_request, devices.requests or ())), allocation is not None,
        node_terms(allocation.node_selector) if allocation else None,
        tuple((item.driver, item.pool, item.device) for item in results), tuple(item.uid for item in status.reserved_for or ()),
        labels=read.metadata.labels or {}, is_templated=TEMPLATE in (read.metadata.annotations or {}),
        is_deleting=read.metadata.deletion_timestamp is not None,
    )  # fmt: skip


def _device_request(read: storage_schema.DeviceRequestRead) -> DeviceRequest:
    exact = read.exactly or storage_schema.ExactRequest(
        device_class_name=read.device_class_name or "",
        count=read.count,
        allocation_mode=read.allocation_mode,
        selectors=read.selectors,
    )
    count = 1 if exact.count is None else exact.count
    return DeviceRequest(read.name, exact.device_class_name, count, exact.allocation_mode == "All", _expressions(exact.selectors))


def _expressions(selectors: list[storage_schema.DeviceSelector] | None) -> tuple[str, ...]:
    return tuple(selector.cel.expression for selector in selectors or () if selector.cel)


def device_class(read: storage_schema.DeviceClassRead) -> DeviceClass:
    """Read what makes a device one of a class."""
    return DeviceClass(read.metadata.name, _expressions((read.spec or storage_schema.DeviceClassSpec()).selectors))


def resource_slice(read: storage_schema.ResourceSliceRead) -> ResourceSlice:
    """Read the devices that a driver offers."""
    spec = read.spec or storage_schema.ResourceSliceSpec()
    return ResourceSlice(
        read.metadata.name, spec.driver, spec.pool.name if spec.pool else "", spec.node_name or "", bool(spec.all_nodes),
        node_terms(spec.node_selector), tuple(map(_device, spec.devices or ())),
    )  # fmt: skip


def _device(read: storage_schema.DeviceRead) -> Device:
    facts = read.basic or read
    attributes = tuple((name, next(iter(value.values()), None)) for name, value in sorted((facts.attributes or {}).items()))
    capacity = tuple((name, to_units(value.get("value", 0))) for name, value in sorted((facts.capacity or {}).items()))
    return Device(read.name, attributes, capacity)


def service_selector(read: schema.Service) -> tuple[str, LabelSelector]:
    """Read the namespace of a service and the pods it selects."""
    pairs = (read.spec or schema.ServiceSpec()).selector or {}
    return read.metadata.namespace or "default", LabelSelector().plus(pairs)


def disruption_budget(read: schema.DisruptionBudgetRead) -> DisruptionBudget:
    """Read a PodDisruptionBudget; one that no controller has seen yet allows no disruption."""
    spec, status = read.spec or schema.DisruptionBudgetSpec(), read.status or schema.DisruptionBudgetStatus()
    disrupted = frozenset(status.disrupted_pods or ())
    return DisruptionBudget(key_of(read.metadata), label_selector(spec.selector), status.disruptions_allowed, disrupted)


def resource_quota(read: schema.QuotaRead) -> ResourceQuota:
    """Read a ResourceQuota; before any controller has seen it, its spec holds and nothing is used."""
    spec, status = read.spec or schema.QuotaSpec(), read.status or schema.QuotaStatus()
    hard = _quota_amounts(status.hard or spec.hard, where="status.hard" if status.hard else "spec.hard")
    is_scoped = bool(spec.scopes or spec.scope_selector)
    return ResourceQuota(key_of(read.metadata), hard, _quota_amounts(status.used, where="status.used"), is_scoped)


def _quota_amounts(quantities: schema.Quantities, *, where: str) -> dict[str, int]:
    # Volume claims are left out: no gang asks for them, and whole disk arrays exceed what an amount may be.
    counted = {name: quantity for name, quantity in (quantities or {}).items() if not name.endswith(CLAIMED_STORAGE)}
    return {name: _quota_amount(name, quantity, where) for name, quantity in counted.items()}


def _quota_amount(name: str, quantity: object, where: str) -> int:
    try:
        return amount_of(unit_name(name), quantity)
    except SnapshotError as problem:
        raise SnapshotError(f"{where}.{name}: {problem}") from problem
