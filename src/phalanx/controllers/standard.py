"""The controllers that every cluster runs, in the order in which they are asked at one moment."""

from collections.abc import Sequence

from phalanx.controllers.base import Controller
from phalanx.controllers.gates import GateLifter, GateTimeouts
from phalanx.controllers.podgroup_protection import PodGroupProtection


def standard_controllers() -> Sequence[Controller]:
    """Return one of each."""
    return (PodGroupProtection(), GateLifter(), GateTimeouts())
