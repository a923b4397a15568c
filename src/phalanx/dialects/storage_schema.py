"""The fields of volumes, claims and devices that we read, as typed structs; see `schema.py`."""

from phalanx.dialects.schema import Expression, Int32, Meta, NodeTerms, Quantities, Read, ResourceRequirements, Selector, Strings


class StorageClassRead(Read):
    metadata: Meta
    provisioner: str = ""
    volume_binding_mode: str | None = None
    parameters: Strings = None
    allowed_topologies: list["TopologyTerm"] | None = None


class TopologyTerm(Read):
    match_label_expressions: list[Expression] | None = None


class Reference(Read):
    namespace: str | None = None
    name: str = ""


class VolumeNodeAffinity(Read):
    required: NodeTerms | None = None


class CsiSource(Read):
    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(Read):
    capacity: Quantities = None
    storage_class_name: str | None = None
    access_modes: list[str] | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: Reference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None


class PhaseStatus(Read):
    phase: str | None = None


class VolumeRead(Read):
    metadata: Meta
    spec: VolumeSpec | None = None
    status: PhaseStatus | None = None


class ClaimSpec(Read):
    resources: ResourceRequirements | None = None
    storage_class_name: str | None = None
    volume_name: str | None = None
    access_modes: list[str] | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    selector: Selector | None = None


class VolumeClaimRead(Read):
    metadata: Meta
    spec: ClaimSpec | None = None
    status: PhaseStatus | None = None


class Allocatable(Read):
    count: Int32 | None = None


class CsiDriverOnNode(Read):
    name: str = ""
    allocatable: Allocatable | None = None


class CsiNodeSpec(Read):
    drivers: list[CsiDriverOnNode] | None = None


class CsiNode(Read):
    metadata: Meta
    spec: CsiNodeSpec | None = None


class CsiDriverSpec(Read):
    storage_capacity: bool | None = None


class CsiDriver(Read):
    metadata: Meta
    spec: CsiDriverSpec | None = None


class StorageCapacityRead(Read):
    metadata: Meta
    storage_class_name: str = ""
    capacity: str | int | None = None
    node_topology: Selector | None = None


class CelSelector(Read):
    expression: str = ""


class DeviceSelector(Read):
    cel: CelSelector | None = None


class ExactRequest(Read):
    device_class_name: str = ""
    count: Int32 | None = None
    allocation_mode: str | None = None
    selectors: list[DeviceSelector] | None = None


class DeviceRequestRead(Read):
    name: str = ""
    exactly: ExactRequest | None = None
    device_class_name: str | None = None
    count: Int32 | None = None
    allocation_mode: str | None = None
    selectors: list[DeviceSelector] | None = None


class DeviceClaim(Read):
    requests: list[DeviceRequestRead] | None = None


class ResourceClaimSpec(Read):
    devices: DeviceClaim | None = None


class DeviceResult(Read):
    driver: str = ""
    pool: str = ""
    device: str = ""


class DeviceAllocation(Read):
    results: list[DeviceResult] | None = None


class ClaimAllocation(Read):
    devices: DeviceAllocation | None = None
    node_selector: NodeTerms | None = None


class Consumer(Read):
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Read):
    allocation: ClaimAllocation | None = None
    reserved_for: list[Consumer] | None = None


class ResourceClaimRead(Read):
    metadata: Meta
    spec: ResourceClaimSpec | None = None
    status: ResourceClaimStatus | None = None


class DeviceClassSpec(Read):
    selectors: list[DeviceSelector] | None = None


class DeviceClassRead(Read):
    metadata: Meta
    spec: DeviceClassSpec | None = None


class DeviceRead(Read):
    name: str = ""
    attributes: dict[str, dict[str, object]] | None = None
    capacity: dict[str, dict[str, object]] | None = None
    basic: "DeviceRead | None" = None


class Pool(Read):
    name: str = ""


class ResourceSliceSpec(Read):
    driver: str = ""
    pool: Pool | None = None
    node_name: str | None = None
    all_nodes: bool | None = None
    node_selector: NodeTerms | None = None
    devices: list[DeviceRead] | None = None


class ResourceSliceRead(Read):
    metadata: Meta
    spec: ResourceSliceSpec | None = None
