"""The network domain in which a gang, or each of its parts, has to be: how sentences name it."""

from collections import Counter

from phalanx.explain.reason_text import asks_text, counted, most_frequent
from phalanx.state.gang_state import GangState, SubGroupState

MOST_KINDS = 3
"""Of tasks that ask for different things, in one sentence."""
UNRESOLVED_TIERS = ("NoHyperNodes", "TierMissing", "TierNotFound")
"""Verdicts on constraints that mean nothing in this cluster."""


def domain_text(gang: GangState) -> str:
    """Say in which domain all tasks have to be, with a blank before it; empty without such a constraint."""
    if gang.gang.label:
        return f" on nodes that share a value of {gang.gang.label!r}"
    return f" in one HyperNode of {_tier(gang)}" if _tier(gang) else ""


def parted_text(gang: GangState) -> str:
    """Say which sub-groups must each be in one domain, where the gang as a whole need not be; empty otherwise."""
    scope = _hard_scope(gang)
    if not isinstance(scope, SubGroupState) or scope.policy is None:
        return ""
    return f" with each sub-group of {scope.policy.name!r} in one HyperNode of {_tier(gang)}"


def untried_text(gang: GangState) -> str:
    """Say why no task was tried: a network domain without room for all tasks is left out before any of them is."""
    if not lacks_domain(gang):
        return "not tried in this session"
    scope = _hard_scope(gang)
    where = "nothing, not even the whole cluster," if scope is None else f"no HyperNode of {_tier(gang)}"
    return f"{where} has room for {_all_tasks(scope or gang)}"


def lacks_domain(gang: GangState) -> bool:
    """Tell whether a gang of which no task was tried was left out because no network domain has room for it."""
    return gang.allowed_tier is not None or gang.has_subgroups


def _all_tasks(scope: GangState | SubGroupState) -> str:
    """Count the tasks and say what each asks for, or how many ask for what: ``all 3 tasks (2 with 1 cpu, 1 with 8 cpu)``."""
    owner = f" of a sub-group of {scope.policy.name!r}" if isinstance(scope, SubGroupState) and scope.policy is not None else ""
    kinds, number = Counter(map(asks_text, scope.tasks)), f"all {counted(len(scope.tasks), 'task')}{owner}"
    if len(kinds) == 1:
        return f"{number}, each {asks_text(scope.tasks[0])}"
    named = most_frequent(kinds)[:MOST_KINDS]
    parts = [f"{count} with {asks}" for asks, count in named]
    rest = len(scope.tasks) - sum(count for _, count in named)
    return f"{number} ({', '.join([*parts, *([f'{rest} with other requests'] if rest else [])])})"


def _tier(gang: GangState) -> str:
    """Say how narrow a network domain must be: ``tier 1 or narrower``; empty without a hard constraint."""
    scope = _hard_scope(gang)
    return "" if scope is None else f"tier {scope.allowed_tier} or narrower"


def _hard_scope(gang: GangState) -> GangState | SubGroupState | None:
    """Return what must be within a tier: the gang, else the largest of its sub-groups that must; None without hard constraints."""
    if _is_within_tier(gang):
        return gang
    return max(filter(_is_within_tier, gang.subgroups.values()), key=lambda part: len(part.tasks), default=None)


def _is_within_tier(scope: GangState | SubGroupState) -> bool:
    return scope.allowed_tier is not None and scope.topology is not None and scope.topology.is_hard
