"""In which network domains room may be made for a whole gang by the fewest victims.

The search puts all tasks that it serves into one domain. So the domain must be narrow enough for the gang and for every sub-group
with a tier of its own, and near enough to what these occupy already.
"""

from phalanx.model.task_status import Status
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, SubGroupState

Scope = GangState | SubGroupState


def narrow_domains(session: Session, gang: GangState) -> list[list[int]]:
    """Return the HyperNodes to try, narrow tiers first."""
    tree = session.snapshot.hypernodes
    scopes: list[Scope] = [gang, *gang.subgroups.values()]
    bound = [scope for scope in scopes if _must_stay(scope)]
    narrowest = min(bound, key=lambda scope: scope.allowed_tier or 0, default=gang)
    gradients = session.hypernode_gradients(narrowest, tree.top, "evict")
    return [[number for number in gradient if all(_may_use(session, scope, number) for scope in bound)] for gradient in gradients]


def _must_stay(scope: Scope) -> bool:
    """Tell whether waiting tasks of it must be within a tier."""
    is_hard = scope.allowed_tier is not None and scope.topology is not None and scope.topology.is_hard
    return is_hard and any(task.status is Status.PENDING for task in scope.tasks)


def _may_use(session: Session, scope: Scope, hypernode: int) -> bool:
    """Tell whether the domain, with what is occupied already, is within the tier."""
    tree = session.snapshot.hypernodes
    widened = tree.number_by_name[tree.widen(scope.allocated_hypernode, hypernode)]
    return scope.allowed_tier is None or tree.tiers[widened] <= scope.allowed_tier
