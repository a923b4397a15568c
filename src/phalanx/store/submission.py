"""What a cluster would have if documents were submitted to it now: the pods that their controllers would make, grouped.

`phalanx try` decides on it. Nothing is written anywhere: the controllers run on a store in memory that holds, of the cluster, only
what they read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phalanx.controllers.builtin import ControllerSettings
from phalanx.model.gang import GangKey
from phalanx.model.kinds import Document
from phalanx.model.task import TaskKey


@dataclass(frozen=True, slots=True)
class Submission:
    """What a submission makes of a cluster."""

    documents: Sequence[Document] = ()
    """Objects to enter into the cluster, complete, in this order; one whose kind and key are there takes the place of the old one."""
    gangs: Sequence[GangKey] = ()
    """The gangs of the submitted objects, in the order of their pods; empty if everything was refused or makes no pods now."""
    pods: Sequence[TaskKey] = ()
    """The pods that the submission adds."""
    refused: Sequence[tuple[str, str]] = ()
    """Objects that the API server would not take, as "Pod ml/train-0", each with its answer; the same form as `Intake.refused`."""
    problems: Sequence[str] = ()
    """Sentences about what is not known, or is made later: they do not keep the session from deciding on the rest."""


def submitted(
    new: Sequence[Document], existing: Iterable[Document], settings: ControllerSettings | None = None, *, now: float
) -> Submission:
    """Return what would come of submitting documents to a cluster with these objects, as `kubectl apply -f` would.

    `new` are manifests as they were written, and `existing` is everything in the cluster, complete and grouped; both are only
    read. `settings` say whose pods are grouped and how, as for `grouping_controllers`. The new objects are completed as the API
    server would, operators that are not ours are stood in for (`controllers/owner_pods`), and all pods get their groups.
    """
    raise NotImplementedError
