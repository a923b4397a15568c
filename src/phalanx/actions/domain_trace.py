"""Network domains as entries of the trace."""

from collections.abc import Sequence

from phalanx.session.session import Session
from phalanx.session.trace_searches import DomainsOrdered, NoDomain
from phalanx.state.gang_state import GangState, SubGroupState
from phalanx.state.hypernodes import HyperTree


def domain_name(tree: HyperTree, hypernode: int) -> str:
    """Name a domain; the virtual top of the tree is the whole cluster."""
    return "the whole cluster" if hypernode == tree.top else f"HyperNode {tree.names[hypernode]}"


def note_domains(
    session: Session, scope: GangState | SubGroupState, action: str, gradients: Sequence[Sequence[int]], root: int | None = None
) -> None:
    """Record the domains that a gang or a part of it may use, all or those below a root; without any, why there is none."""
    tree = session.snapshot.hypernodes
    gang = scope if isinstance(scope, GangState) else scope.gang
    if not session.trace.wants(3, gang.key):
        return
    if gradients:
        groups = [[domain_name(tree, number) for number in gradient] for gradient in gradients]
        session.trace.note(DomainsOrdered, gang.key, action, groups)
        return
    most = f"up to tier {scope.allowed_tier} " if scope.allowed_tier is not None else ""
    where = "" if root is None else f" in {domain_name(tree, root)}"
    session.trace.note(NoDomain, gang.key, action, f"no HyperNode {most}that it may use could have room{where}")
