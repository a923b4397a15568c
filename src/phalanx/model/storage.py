"""Volumes, claims and devices: what the volume and claim filters read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from phalanx.model.selectors import Labels, LabelSelector, NodeSelectorTerm

NO_PROVISIONER = "kubernetes.io/no-provisioner"
ONE_POD = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True, eq=False)
class StorageClass:
    """How volumes of a class are made, and when."""

    name: str
    provisioner: str = ""
    waits_for_consumer: bool = False
    allowed_topologies: tuple[NodeSelectorTerm, ...] = ()
    csi_driver: str = ""

    @property
    def can_provision(self) -> bool:
        """Tell whether a volume can be made on demand."""
        return self.provisioner not in ("", NO_PROVISIONER)


@dataclass(frozen=True, slots=True, eq=False)
class Volume:
    """A persistent volume."""

    name: str
    storage_class: str = ""
    capacity_bytes: int = 0
    phase: str = "Available"
    labels: Labels = field(default_factory=dict)
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    claimed_by: str = ""
    """Key of the claim that it is bound to or reserved for; empty for neither."""
    csi_driver: str = ""
    csi_handle: str = ""
    is_deleting: bool = False

    def is_big_enough(self, claim: "VolumeClaim") -> bool:
        """Tell whether the volume has what a claim asks for, whoever it is reserved for."""
        fits = self.capacity_bytes >= claim.request_bytes and self.volume_mode == claim.volume_mode
        return fits and self.attributes_class == claim.attributes_class and not self.is_deleting

    def is_offered(self, claim: "VolumeClaim") -> bool:
        """Tell whether nobody has the volume and a claim may have it."""
        is_free = self.phase == "Available" and not self.claimed_by
        is_wanted = claim.selector is None or claim.selector.matches(self.labels)
        return is_free and is_wanted and claim.access_modes <= self.access_modes

    def is_reached_from(self, labels: Labels) -> bool:
        """Tell whether a node with these labels reaches the volume."""
        return self.node_terms is None or any(term.matches(labels) for term in self.node_terms)


@dataclass(frozen=True, slots=True, eq=False)
class VolumeClaim:
    """A persistent volume claim."""

    key: str
    storage_class: str | None = None
    volume: str = ""
    is_bound: bool = False
    request_bytes: int = 0
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    selector: LabelSelector | None = None
    selected_node: str = ""
    is_lost: bool = False
    """Its volume is gone: phase Lost."""
    is_deleting: bool = False

    @property
    def is_for_one_pod(self) -> bool:
        """Tell whether only one pod in the cluster may use it."""
        return ONE_POD in self.access_modes


@dataclass(frozen=True, slots=True)
class AttachRules:
    """Whose volumes count towards what a node can attach."""

    ignored: frozenset[str] = frozenset()
    """Drivers whose volumes do not."""
    counts_unknown: bool = False
    """Those of drivers that no CSINode names do, so that no node can attach them."""


@dataclass(frozen=True, slots=True, eq=False)
class VolumeLimits:
    """How many volumes of each CSI driver a node can attach; None means without limit."""

    node: str
    limit_by_driver: Mapping[str, int | None] = field(default_factory=dict)
    attached: frozenset[tuple[str, str]] = frozenset()
    """Volumes that are attached whoever uses them: driver, handle."""


@dataclass(frozen=True, slots=True, eq=False)
class StorageCapacity:
    """Room for new volumes of a class on matching nodes."""

    storage_class: str
    capacity_bytes: int
    node_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A number of devices of a class that a claim asks for."""

    name: str
    device_class: str
    count: int = 1
    takes_all: bool = False
    expressions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrantedDevice:
    """A device that a session gives to a request of a claim."""

    request: str
    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True, eq=False)
class ResourceClaim:
    """A claim on devices."""

    key: str
    requests: tuple[DeviceRequest, ...] = ()
    is_allocated: bool = False
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    devices: tuple[tuple[str, str, str], ...] = ()
    """Devices it holds: driver, pool, device."""
    reserved_for: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    is_templated: bool = False
    """Made for one pod from a template, rather than named by its users."""
    is_deleting: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DeviceClass:
    """What makes a device one of this class."""

    name: str
    expressions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a slice."""

    name: str
    attributes: tuple[tuple[str, object], ...] = ()
    capacity: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ResourceSlice:
    """Devices that a driver offers on a node, or on every node."""

    name: str
    driver: str
    pool: str
    node: str = ""
    for_all_nodes: bool = False
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    devices: tuple[Device, ...] = ()
