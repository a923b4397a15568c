"""How each dialect speaks of a session: the status of its groups, the condition of a pod that waits, and where they are written.

Inside, groups stand in one vocabulary: phases Pending, Inqueue, Running, Unknown, Completed, and the conditions Scheduled,
Unschedulable and Stale. A dialect that has other words reads its own into these and writes these in its own.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from phalanx.dialects import (
    coscheduling_status,
    gates_status,
    kai_status,
    koordinator_status,
    kueue_status,
    native_status,
    volcano_status,
    yunikorn_status,
)
from phalanx.dialects.volcano_status import GroupStatus, GroupWrite, PodCondition
from phalanx.model.gang import Gang
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState


class Words(Protocol):
    """What a dialect says."""

    def group_status(self, outcome: Outcome, names: list[str]) -> GroupStatus:
        """Return phase and conditions after a session; `names` are the node names by number."""
        ...

    def settled_phase(self, gang: GangState) -> str:
        """Return the phase of a group that no session touches."""
        ...

    def pod_condition(self, task: TaskState, names: list[str]) -> PodCondition:
        """Say what became of a pod that is not bound."""
        ...

    def writes(self, gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
        """Return what to write on which objects; nothing where pods alone make the gang."""
        ...


WORDS: Mapping[str, Words] = MappingProxyType({
    "volcano": volcano_status, "kai": kai_status, "coscheduling": coscheduling_status, "koordinator": koordinator_status,
    "native": native_status, "gates": gates_status, "kueue": kueue_status, "yunikorn": yunikorn_status,
})  # fmt: skip
"""By dialect."""


def words_of(gang: Gang) -> Words:
    """Return the words of a gang's dialect."""
    return WORDS[gang.dialect]
