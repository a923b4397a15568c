"""Network domains as entries of the trace."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from phalanx.model.task_status import Status
from phalanx.session.session import Session
from phalanx.session.trace_searches import DomainRefused, DomainsOrdered, NoDomain
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
    if action == "allocate":
        _note_refused(session, scope, {number for gradient in gradients for number in gradient}, tree.top if root is None else root)
    if gradients:
        groups = [[domain_name(tree, number) for number in gradient] for gradient in gradients]
        session.trace.note(DomainsOrdered, gang.key, action, groups)
        return
    most = f"up to tier {scope.allowed_tier} " if scope.allowed_tier is not None else ""
    where = "" if root is None else f" in {domain_name(tree, root)}"
    session.trace.note(NoDomain, gang.key, action, f"no HyperNode {most}that it may use could have room{where}")


def _note_refused(session: Session, scope: GangState | SubGroupState, usable: set[int], root: int) -> None:
    """Record the domains that a constraint allows and a first check left out, each with how many tasks have room there.

    A soft constraint allows all: if not even the whole cluster will do, this alone is worth knowing.
    """
    gang, tree = scope if isinstance(scope, GangState) else scope.gang, session.snapshot.hypernodes
    waiting = Counter(task.task.shape for task in scope.tasks if task.status is Status.PENDING)
    if scope.allowed_tier is None or scope.topology is None or scope.allocated_hypernode or not waiting:
        return
    part = "" if isinstance(scope, GangState) or scope.policy is None else scope.policy.name
    for number in tree.descendants(root) if scope.topology.is_hard else [root]:
        if tree.tiers[number] > scope.allowed_tier or number in usable:
            continue
        nodes = np.zeros(len(session.snapshot.nodes), dtype=np.bool_)
        nodes[tree.members[number]] = True
        room = sum(min(session.node_view(shape).room_in(nodes), count) for shape, count in waiting.items())
        is_enough = room == waiting.total()
        text = (
            "its nodes together have less than all tasks request"
            if is_enough
            else f"it has room for {room} of {waiting.total()} task(s)"
        )
        session.trace.note(DomainRefused, gang.key, domain_name(tree, number), text, room, waiting.total(), part=part)
