"""The controllers that every cluster runs, in the order in which they are asked at one moment."""

from collections.abc import Sequence

from phalanx.controllers.base import Controller
from phalanx.controllers.volcano_job.controller import VolcanoJobs
from phalanx.controllers.volcano_job.plugins.plugin import MakePair


def standard_controllers(make_pair: MakePair, *, has_admission: bool) -> Sequence[Controller]:
    """Return one of each; `make_pair` makes keys for ssh, and `has_admission` tells whether the scheduler admits groups first."""
    return (VolcanoJobs(make_pair, has_admission=has_admission),)
