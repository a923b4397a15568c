"""Who does what with which kind of object: the one table from which roles are made.

Sessions have a row, and so has every controller, under its own name. What a controller hears of, it may read; what it writes stands
here once more, kind by kind. Nobody may do anything that stands in no row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from phalanx.controllers.binder.controller import Binder
from phalanx.controllers.binder.gpu_reservations import GpuReservations
from phalanx.controllers.cronjob import CronJobController
from phalanx.controllers.first_queues import FirstQueues
from phalanx.controllers.gates import GateLifter, GateTimeouts
from phalanx.controllers.grouper.controller import PodGrouper
from phalanx.controllers.grouper.group_spec import CONFIG_MAP
from phalanx.controllers.grouper.rules import owner_kinds, read_kinds
from phalanx.controllers.hypernode import HyperNodeController
from phalanx.controllers.hypernode_checks import HyperNodeChecks
from phalanx.controllers.jobflow import JobFlowController, JobTemplateController
from phalanx.controllers.kueue import KueueGateController
from phalanx.controllers.owner_deadlines import OwnerDeadlines
from phalanx.controllers.podgroup import OwnedGroupController, PodGroupController
from phalanx.controllers.podgroup_protection import PodGroupProtection
from phalanx.controllers.provisioning.controller import ProvisioningController
from phalanx.controllers.quarantine import QuarantineController
from phalanx.controllers.queue import QueueController
from phalanx.controllers.queue_status import QueueStatusController
from phalanx.controllers.volcano_job.controller import HOSTS, SECRET, SERVICE, VolcanoJobController
from phalanx.controllers.yunikorn import YuniKornController
from phalanx.dialects.cluster import kinds_read
from phalanx.model.kinds import (
    BIND_REQUEST,
    CLAIM_TEMPLATE,
    COMMAND,
    EVENT,
    GROUP_BY_DIALECT,
    HYPERNODE,
    JOB_FLOW,
    JOB_TEMPLATE,
    KAI_QUEUE,
    KINDS,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    POD,
    POD_TEMPLATE,
    PRIORITY,
    PROVISIONING_REQUEST,
    QUEUE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    RUNTIME_CLASS,
    SILENT,
    STORAGE_CLASS,
    VOLCANO_CRON_JOB,
    VOLCANO_JOB,
    VOLUME,
    VOLUME_CLAIM,
    Kind,
    kind_of,
)

READ = ("get", "list", "watch")
FOLLOW = ("list", "watch")
"""What the process needs to know all objects of a kind; nobody gets them one by one."""
SESSIONS = "sessions"
"""The row of the scheduler itself."""
SSH = "ssh"
"""What only the plugin `ssh` of Volcano's Jobs needs; it can be left out."""
KEPT_NODES = "kept-nodes"
"""What it takes to keep nodes from autoscalers that gangs are nominated to; it has to be asked for."""
NETWORK_POLICY = kind_of({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"})
NODE_METRICS = kind_of({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics"})
LEASE = kind_of({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"})
TOKEN_REVIEW = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", is_namespaced=False, has_status=False)
ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", is_namespaced=False, has_status=False
)
_READ_OTHERWISE = {NODE_METRICS: ("list",), SECRET: (), CONFIG_MAP: ()}
"""What is measured cannot be watched, and who may list secrets and ConfigMaps reads what is no business of a scheduler."""
_NEVER_LOOKED_UP = frozenset({EVENT, SECRET})
"""Events have names of their own; the one Secret that is read has its permission where it is made."""
_GROUPS = tuple(GROUP_BY_DIALECT.values())
_VOLCANO, _NATIVE = GROUP_BY_DIALECT["volcano"], GROUP_BY_DIALECT["native"]
_OWNERS = (*owner_kinds(), VOLCANO_JOB, VOLCANO_CRON_JOB, JOB_FLOW)
"""Whose pods are grouped, and who stands above those."""


@dataclass(frozen=True, slots=True)
class Permission:
    """What somebody may do with all objects of a kind, or with a part of them such as their status."""

    kind: Kind
    verbs: tuple[str, ...]
    part: str = ""
    option: str = ""
    """What it is for, if it can be left out."""

    @property
    def resource(self) -> str:
        """As a role names it."""
        return f"{self.kind.plural}/{self.part}" if self.part else self.kind.plural


def _reads(*kinds: Kind) -> tuple[Permission, ...]:
    return tuple(Permission(kind, verbs) for kind in kinds if (verbs := _READ_OTHERWISE.get(kind, FOLLOW)))


def _may(verbs: str, *kinds: Kind, part: str = "", option: str = "") -> tuple[Permission, ...]:
    return tuple(Permission(kind, tuple(verbs.split()), part, option) for kind in kinds) + _looked_up(verbs, kinds, part, option)


def _looked_up(verbs: str, kinds: Iterable[Kind], part: str, option: str) -> tuple[Permission, ...]:
    """Return that a single object may be read where a create finds it there already, or a patch does not find it."""
    if part not in ("", "status") or not {"create", "patch"} & {*verbs.split()}:
        return ()
    return tuple(Permission(kind, ("get",), option=option) for kind in kinds if kind not in _NEVER_LOOKED_UP)


def _reports(*kinds: Kind) -> tuple[Permission, ...]:
    return _may("patch", *kinds, part="status")


def _owns(*kinds: Kind) -> tuple[Permission, ...]:
    """Return what is asked of those who make objects that keep their owner from going first, where an admission plugin asks."""
    return _may("update", *kinds, part="finalizers")


TABLE: Mapping[str, tuple[Permission, ...]] = MappingProxyType({
    SESSIONS: (
        *_reads(*kinds_read()), *_may("patch", POD, *_GROUPS), *_reports(POD, *_GROUPS),
        *_may("create", POD, part="binding"), *_may("create", POD, part="eviction"), *_may("create delete", BIND_REQUEST),
        *_may("create patch", EVENT), *_may("patch", NODE, option=KEPT_NODES),
    ),
    VolcanoJobController.name: (
        *_reads(*VolcanoJobController.watches, PRIORITY, VOLUME_CLAIM), *_may("patch delete", VOLCANO_JOB),
        *_reports(VOLCANO_JOB), *_owns(VOLCANO_JOB), *_may("create delete", POD), *_may("create patch delete", _VOLCANO),
        *_may("delete", COMMAND), *_may("create patch", HOSTS), *_may("create", SERVICE, NETWORK_POLICY, VOLUME_CLAIM),
        *_may("get create", SECRET, option=SSH),
    ),
    CronJobController.name: (
        *_reads(*CronJobController.watches), *_may("patch", VOLCANO_CRON_JOB), *_reports(VOLCANO_CRON_JOB),
        *_owns(VOLCANO_CRON_JOB), *_may("create delete", VOLCANO_JOB),
    ),
    JobFlowController.name: (
        *_reads(*JobFlowController.watches), *_reports(JOB_FLOW), *_owns(JOB_FLOW),
        *_may("create delete", VOLCANO_JOB),
    ),
    JobTemplateController.name: (*_reads(*JobTemplateController.watches), *_reports(JOB_TEMPLATE)),
    Binder.name: (
        *_reads(*Binder.watches, *_GROUPS, STORAGE_CLASS, RESOURCE_SLICE, VOLUME),
        *_may("patch", BIND_REQUEST, POD, VOLUME, VOLUME_CLAIM, RESOURCE_CLAIM), *_reports(BIND_REQUEST, POD, RESOURCE_CLAIM),
        *_may("patch", RESOURCE_CLAIM, part="binding"), *_may("create", POD, part="binding"),
        *_may("create", POD, part="eviction"), *_may("create", POD),
    ),
    GpuReservations.name: (*_reads(*GpuReservations.watches), *_may("delete", POD)),
    PodGrouper.name: (*_reads(*read_kinds(), *_OWNERS, *_GROUPS), *_may("create patch delete", *_GROUPS), *_may("patch", POD)),
    PodGroupController.name: (
        *_reads(*PodGroupController.watches, *_OWNERS, _VOLCANO, NAMESPACE), *_may("create", _VOLCANO), *_may("patch", POD),
        *_owns(POD, *_OWNERS),
    ),
    OwnedGroupController.name: (*_reads(*OwnedGroupController.watches, _VOLCANO, POD), *_may("patch delete", _VOLCANO)),
    OwnerDeadlines.name: (*_reads(*_OWNERS, *_GROUPS, POD), *_may("patch", *_GROUPS)),
    FirstQueues.name: (*_reads(*FirstQueues.watches), *_may("create", QUEUE)),
    QueueController.name: (
        *_reads(*QueueController.watches), *_may("patch", QUEUE), *_reports(QUEUE), *_may("delete", COMMAND),
    ),
    QueueStatusController.name: (*_reads(*QueueStatusController.watches), *_reports(QUEUE)),
    PodGroupProtection.name: (*_reads(*PodGroupProtection.watches), *_may("patch", _NATIVE)),
    GateLifter.name: (*_reads(*GateLifter.watches), *_may("patch delete", POD)),
    GateTimeouts.name: (*_reads(*GateTimeouts.watches), *_may("delete", POD)),
    YuniKornController.name: (
        *_reads(*YuniKornController.watches), *_may("create patch delete", POD), *_owns(POD), *_reports(POD),
    ),
    QuarantineController.name: (*_reads(*QuarantineController.watches), *_may("patch", *_GROUPS), *_reports(POD, *_GROUPS)),
    HyperNodeController.name: (*_reads(*HyperNodeController.watches), *_may("create patch delete", HYPERNODE)),
    HyperNodeChecks.name: (*_reads(*HyperNodeChecks.watches), *_reports(HYPERNODE)),
    ProvisioningController.name: (
        *_reads(*ProvisioningController.watches), *_may("create patch delete", PROVISIONING_REQUEST),
        *_may("create delete", POD_TEMPLATE), *_may("patch", POD, QUEUE, KAI_QUEUE, *_GROUPS),
    ),
    KueueGateController.name: (*_reads(*KueueGateController.watches, *kinds_read()), *_may("patch", POD)),
})  # fmt: skip
"""By the name of a controller."""


def permissions(option: str = "") -> tuple[Permission, ...]:
    """Return what has to be allowed, whoever needs it: all that is always needed, or what one option needs."""
    return tuple(access for row in TABLE.values() for access in row if access.option == option)


def permissions_of_shadows() -> tuple[Permission, ...]:
    """Return what it takes to watch everything that sessions depend on; nothing else is needed beside other schedulers."""
    return _reads(*kinds_read())


def permissions_of_pages() -> tuple[Permission, ...]:
    """Return what it takes to serve the page to others: to follow what it shows, to list events, and to ask who may see what."""
    return (*_reads(*kinds_listed()), Permission(EVENT, ("list",)), *permissions_of_reviews())


def permissions_of_reviews() -> tuple[Permission, ...]:
    """Return what it takes to ask the API server whose token it is that somebody shows, and what he may do."""
    return tuple(Permission(kind, ("create",)) for kind in (TOKEN_REVIEW, ACCESS_REVIEW))


@cache
def kinds_listed() -> tuple[Kind, ...]:
    """Return the kinds that commands list on a live cluster to hold a session of their own, in the order of all kinds.

    These are the kinds that sessions read, those that complete new objects, and the owners by which pods are grouped.
    """
    wanted = {*kinds_read(), *_OWNERS, NAMESPACE, PRIORITY, LIMIT_RANGE, RUNTIME_CLASS, CLAIM_TEMPLATE}
    return tuple(kind for kind in KINDS if kind in wanted and kind.kind not in SILENT)
