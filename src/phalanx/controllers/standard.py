"""The controllers that every cluster runs, in the order in which they are asked at one moment."""

from collections.abc import Sequence

from phalanx.controllers.base import Controller
from phalanx.controllers.grouper.controller import PodGrouper


def standard_controllers() -> Sequence[Controller]:
    """Return one of each."""
    return (PodGrouper(),)
