"""The controllers that every cluster runs, in the order in which they are asked at one moment."""

from collections.abc import Sequence

from phalanx.controllers.base import Controller
from phalanx.controllers.kueue import KueueGateController
from phalanx.controllers.misread import MisreadPodController
from phalanx.controllers.yunikorn import YuniKornController
from phalanx.core.cycle import Catalogue
from phalanx.core.policy import Policy


def standard_controllers() -> Sequence[Controller]:
    """Return one of each."""
    return (YuniKornController(), MisreadPodController())


def chosen_controllers(policy: Policy, catalogue: Catalogue) -> Sequence[Controller]:
    """Return those that a configuration asks for."""
    return (KueueGateController(policy, catalogue),) if policy.flags.lifts_kueue_gate else ()
