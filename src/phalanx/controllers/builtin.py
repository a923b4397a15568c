"""The controllers that every cluster runs, in the order in which they reconcile what is due at the same moment."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from phalanx.controllers.binder.controller import Binder
from phalanx.controllers.binder.gpu_reservations import GpuReservations
from phalanx.controllers.binder.reservation_pod import IMAGE
from phalanx.controllers.controller import Controller
from phalanx.controllers.cronjob import CronJobController
from phalanx.controllers.first_queues import FirstQueues
from phalanx.controllers.gates import GateLifter, GateTimeouts
from phalanx.controllers.grouper.controller import PodGrouper
from phalanx.controllers.grouper.settings import GrouperSettings
from phalanx.controllers.hypernode import HyperNodeController
from phalanx.controllers.hypernode_checks import HyperNodeChecks
from phalanx.controllers.jobflow import JobFlowController, JobTemplateController
from phalanx.controllers.kueue import KueueGateController
from phalanx.controllers.owner_deadlines import OwnerDeadlines
from phalanx.controllers.placeholders import IMAGE as PAUSE_IMAGE
from phalanx.controllers.podgroup import OUR_SCHEDULERS, OwnedGroupController, PodGroupController
from phalanx.controllers.podgroup_protection import PodGroupProtection
from phalanx.controllers.provisioning.controller import ProvisioningController
from phalanx.controllers.quarantine import QuarantineController
from phalanx.controllers.queue import QueueController
from phalanx.controllers.queue_status import QueueStatusController
from phalanx.controllers.volcano_job.controller import VolcanoJobController
from phalanx.controllers.volcano_job.plugins.plugin import MakePair
from phalanx.controllers.yunikorn import YuniKornController
from phalanx.dialects.gates import GangGates
from phalanx.session.cycle import Catalogue
from phalanx.session.policy import Policy, ProcessFlags


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of the controllers."""

    schedulers: frozenset[str] = OUR_SCHEDULERS
    """Pods that name one of these and no group get one."""
    queue_status_seconds: float = 1.0
    """From a change to the update of the counts in the status of queues."""
    hypernode_levels: tuple[str, ...] = ()
    """Labels of nodes, from narrow to wide, from which HyperNodes are made; none are made without any."""
    reservation_image: str = IMAGE
    """What the pods that reserve shared GPUs run."""
    placeholder_image: str = PAUSE_IMAGE
    """What the pods run that keep room for pods of a YuniKorn application that are still to come."""
    own_schedulers: frozenset[str] = frozenset()
    """Applications of other schedulers than these, if any, are left to them."""
    grouper: GrouperSettings = field(default_factory=GrouperSettings)
    """Whose pods are grouped by their owners, and in which dialect."""
    scheduler: tuple[Policy, Catalogue] | None = None
    """The policy and catalogue that place pods; flags of the policy name the gates that are lifted."""


def grouping_controllers(settings: ControllerSettings) -> tuple[Controller, Controller]:
    """Return those that make groups for pods which name none."""
    grouper = PodGrouper(settings.grouper)
    return grouper, PodGroupController(settings.schedulers, grouper.is_responsible_for, grouper.awaits_owner)


def standard_controllers(
    make_pair: MakePair, settings: ControllerSettings | None = None, *, has_admission: bool
) -> Sequence[Controller]:
    """Return one of each; `make_pair` makes keys for ssh, and `has_admission` says whether the scheduler admits groups first."""
    chosen = settings or ControllerSettings()
    flags = chosen.scheduler[0].flags if chosen.scheduler is not None else ProcessFlags()
    found: list[Controller] = [
        VolcanoJobController(make_pair, has_admission=has_admission),
        CronJobController(), JobFlowController(), JobTemplateController(),
        Binder(chosen.reservation_image), GpuReservations(),
        *grouping_controllers(chosen), OwnedGroupController(), OwnerDeadlines(chosen.own_schedulers),
        FirstQueues(), QueueController(), QueueStatusController(chosen.queue_status_seconds),
        PodGroupProtection(), GateLifter(GangGates(flags.gates)), GateTimeouts(),
        YuniKornController(chosen.own_schedulers, chosen.placeholder_image), QuarantineController(chosen.own_schedulers),
        HyperNodeChecks(), ProvisioningController(chosen.own_schedulers),
    ]  # fmt: skip
    if chosen.hypernode_levels:
        found.append(HyperNodeController(chosen.hypernode_levels))
    if chosen.scheduler is not None and flags.lifts_kueue_gate:
        found.append(KueueGateController(*chosen.scheduler))
    return found
