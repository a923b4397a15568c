"""Dialects in which pods alone make a gang, and how each reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from phalanx.dialects import gates, koordinator, kueue, yunikorn
from phalanx.model.gang import Gang
from phalanx.model.task import Task


def _nobody(task: Task) -> bool:
    return False


def _nothing(gang: Gang, agreed: Gang) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Maker:
    """How pods of one dialect say what their gang is."""

    gang: Callable[[Task], Gang | None]
    """Returns the gang as a pod describes it; None if it leaves that to others. Raises if what it says is wrong."""
    comes_first: Callable[[Task], bool] = _nobody
    """Tells whether a pod is to be believed before others, though they are older."""
    disagreement: Callable[[Gang, Gang], str] = _nothing
    """Says what is wrong with a pod that describes the gang otherwise than was agreed; empty if that does not matter."""
    forgives: bool = False
    """A pod that says nonsense is a member all the same where somebody else says what the gang is."""


MAKERS: Mapping[str, Maker] = MappingProxyType({
    "gates": Maker(gates.gang, forgives=True),
    "koordinator": Maker(koordinator.gang_of_pod, forgives=True),
    "kueue": Maker(kueue.gang, disagreement=kueue.disagreement),
    "yunikorn": Maker(yunikorn.gang, yunikorn.comes_first),
})  # fmt: skip
"""By dialect."""
