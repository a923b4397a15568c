"""What a group asks for and does not get, though its gang may start: constraints and sub-groups that have no effect.

Nobody would notice otherwise: a hard network constraint that no plugin of the configuration heeds, or that means no tier where such
constraints restrict nothing; a policy of sub-groups that fits no pod; a minimum beside sub-groups that alone count.
"""

from collections.abc import Iterable, Iterator

from phalanx.explain.domain_text import UNRESOLVED_TIERS
from phalanx.explain.reading import Reading
from phalanx.explain.reason_text import counted
from phalanx.model.gang import Gang, SubGroup
from phalanx.model.task_status import Status
from phalanx.session.decision import Decisions, Outcome
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot
from phalanx.state.unresolved_tiers import PLUGIN, hard_constraints, unresolved_tier

NO_EFFECT = "NoEffect"
MOST_NAMED = 3
"""Groups that a note names."""


def notes_without_effect(parts: Iterable[tuple[Snapshot, Decisions]]) -> Iterator[str]:
    """Say once for all groups alike what has no effect."""
    groups_by_text: dict[str, list[str]] = {}
    for snapshot, decisions in parts:
        for gang, text in without_effect(snapshot, decisions):
            groups_by_text.setdefault(text, []).append(gang.key)
    for text, keys in groups_by_text.items():
        rest = f" and {counted(len(keys) - MOST_NAMED, 'other')}" if len(keys) > MOST_NAMED else ""
        yield f"PodGroup {', '.join(keys[:MOST_NAMED])}{rest}: {text}"


def constraints_without_effect(reading: Reading) -> list[str]:
    """Return which network constraints of one gang have no effect."""
    return list(_constraints(reading.gang, reading.snapshot, reading.decisions)) if _is_looked_at(reading.outcome) else []


def members_without_effect(reading: Reading) -> list[str]:
    """Return what one gang says about its members and has no effect."""
    return list(_members(reading.gang)) if _is_looked_at(reading.outcome) else []


def without_effect(snapshot: Snapshot, decisions: Decisions) -> Iterator[tuple[Gang, str]]:
    """Yield what has no effect in the groups of which members wait or were just placed, each with a sentence."""
    for outcome in decisions.outcomes:
        gang = outcome.state
        if _is_looked_at(outcome):
            yield from ((gang.gang, text) for text in (*_constraints(gang, snapshot, decisions), *_members(gang)))


def _is_looked_at(outcome: Outcome) -> bool:
    """Tell whether waiting members of a gang that asks for such things were looked at.

    Where every gang is tried, none has to be admitted before.
    """
    gang = outcome.state
    is_admitted = outcome.was_tried or gang.phase not in ("", "Pending")
    asks = gang.topology is not None or bool(gang.gang.subgroups)
    return asks and is_admitted and any(task.task.status is Status.PENDING for task in gang.tasks)


def _constraints(gang: GangState, snapshot: Snapshot, decisions: Decisions) -> Iterator[str]:
    where = next((where for where, _ in hard_constraints(gang.gang)), "")
    if where and not decisions.heeds_tiers:
        yield f"{where} is hard, but has no effect: no plugin of the configuration heeds HyperNodes; add {PLUGIN}"
        return
    problem = unresolved_tier(gang.gang, snapshot.hypernodes)
    if problem is not None and not any(verdict.reason in UNRESOLVED_TIERS for verdict in gang.verdicts):
        yield f"{problem.message} (it has no effect now)"


def _members(gang: GangState) -> Iterator[str]:
    yield from _policies(gang)
    yield from _minimum(gang)


def _policies(gang: GangState) -> Iterator[str]:
    """Yield the policies that make no sub-group."""
    for policy in gang.gang.subgroups:
        if policy.match_keys and not any(policy.instance(task.task.labels) for task in gang.tasks):
            yield f"spec.subGroupPolicy[{policy.name}]: makes no sub-group, because {_misfit(policy, gang)}"


def _minimum(gang: GangState) -> Iterator[str]:
    if gang.gang.unheeded_minimum:
        needed = counted(gang.declared.min_member, "pod")
        yield (
            f"spec.minMember is {gang.gang.unheeded_minimum}, but has no effect beside subGroups, which need {needed};"
            " write as minSubGroup how many of them are needed, or leave minMember out if all are"
        )


def _misfit(policy: SubGroup, gang: GangState) -> str:
    if policy.selector is not None and not any(policy.selector.matches(task.task.labels) for task in gang.tasks):
        return "its labelSelector fits no pod of the gang; write one that does"
    keys = ", ".join(map(repr, policy.match_keys or ()))
    return f"no pod of the gang has a value of {keys}; write labels of the pods in matchLabelKeys, or add these to the pods"
