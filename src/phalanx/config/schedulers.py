"""Whose pods are ours where no cluster says so: the schedulers that usually read the dialects which are read here.

`phalanx run` schedules pods of the names that it is given. `schedule`, `simulate` and `up` stand in for whatever scheduler the
manifests were written for; a name that none of these has is most likely a mistake.
"""

from collections.abc import Iterable

from phalanx.dialects.convert.pods import SCHEDULERS
from phalanx.model.task import DEFAULT_SCHEDULER

OWN = "phalanx"


def our_schedulers(names: Iterable[str] = ()) -> frozenset[str]:
    """Return the scheduler names of pods that are ours: those that were given, or else all that are known."""
    return frozenset(names) or frozenset({OWN, DEFAULT_SCHEDULER, *SCHEDULERS.values()})
