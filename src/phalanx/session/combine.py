"""How the answers of several plugins become one. This table is the whole of it; `Session` calls nothing else.

A hook is asked only of plugins whose switch for it is on (no switch: always). Plugins are asked tier by tier, in order.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from phalanx.placement import NO_LIMIT, Vector
from phalanx.session.hooks import Room
from phalanx.state.verdict import PERMIT, REJECT, YES, Verdict, Vote

Rule = Literal[
    "first difference", "first refusal", "all agree", "vote", "told", "first tier agrees",
    "any refusal", "smallest", "collected", "sum",
    "first answer", "victims", "first tier together",
]  # fmt: skip

RULES: dict[str, tuple[str | None, Rule]] = {
    "gang_order": ("enableJobOrder", "first difference"),
    "queue_order": ("enableQueueOrder", "first difference"),
    "task_order": ("enableTaskOrder", "first difference"),
    "subgroup_order": ("enabledSubJobOrder", "first difference"),
    "victim_queue_order": (None, "first difference"),
    "giving_order": (None, "first difference"),
    "gang_valid": (None, "first refusal"),
    "gang_ready": ("enableJobReady", "all agree"),
    "subgroup_ready": ("enabledSubJobReady", "all agree"),
    "gang_pipelined": ("enableJobPipelined", "vote"),
    "subgroup_pipelined": ("enabledSubJobPipelined", "vote"),
    "gang_enqueueable": ("enableJobEnqueued", "vote"),
    "gang_enqueued": ("enableJobEnqueued", "told"),
    "gang_starving": ("enableJobStarving", "first tier agrees"),
    "tolerated_gap": (None, "first answer"),
    "queue_overused": ("enabledOverused", "any refusal"),
    "queue_room": ("enabledAllocatable", "smallest"),
    "queue_preemptive": ("enablePreemptive", "all agree"),
    "queue_surplus": (None, "smallest"),
    "prefilter": ("enablePredicate", "first refusal"),
    "screen": ("enablePredicate", "collected"),
    "task_screen": ("enablePredicate", "collected"),
    "node_room": ("enablePredicate", "smallest"),
    "node_waits": ("enablePredicate", "collected"),
    "node_scores": ("enableNodeOrder", "sum"),
    "batch_scores": ("enableNodeOrder", "sum"),
    "task_scores": ("enableNodeOrder", "sum"),
    "hypernode_scores": ("enabledHyperNodeOrder", "sum"),
    "placement_scores": (None, "sum"),
    "node_subsets": (None, "first answer"),
    "hypernode_gradients": ("enabledHyperNodeGradient", "first answer"),
    "preemptable": ("enablePreemptable", "victims"),
    "reclaimable": ("enableReclaimable", "victims"),
    "evictable": (None, "victims"),
    "victim_tasks": ("enabledVictim", "first tier together"),
    "changed": (None, "told"),
}


def hooks_of(plugin: Any) -> Sequence[tuple[str, str | None]]:
    """Return the hooks that a class of plugins answers, each with the switch that turns it off."""
    if plugin not in _HOOKS:
        _HOOKS[plugin] = [(hook, flag) for hook, (flag, _) in RULES.items() if hasattr(plugin, hook)]
    return _HOOKS[plugin]


_HOOKS: dict[Any, list[tuple[str, str | None]]] = {}


class Asked(Protocol):
    """A method of a plugin."""

    __self__: Any

    def __call__(self, *question: Any) -> Any: ...


Tiers = Sequence[Sequence[Asked]]
"""The methods to ask, tier by tier."""


def flat(tiers: Tiers) -> Iterable[Asked]:
    """Return every method in order."""
    return (method for tier in tiers for method in tier)


def answers(tiers: Tiers, *question: Any) -> Iterator[Any]:
    """Yield what those say that have a say, in order; nobody is asked before the answer is wanted."""
    return (answer for method in flat(tiers) if (answer := method(*question)) is not None)


def first_refusal(tiers: Tiers, *question: object) -> Verdict:
    """Ask until somebody refuses; yes when nobody does. This is also how all must agree, and how any refusal decides."""
    for method in flat(tiers):
        verdict: Verdict = method(*question)
        if not verdict.ok:
            return verdict
    return YES


def vote(tiers: Tiers, *question: object) -> Vote:
    """A voice against ends it; a tier with a voice for it and none against ends it too; nobody: for it."""
    for tier in tiers:
        permitted = None
        for method in tier:
            answer: Vote = method(*question)
            if answer.value <= REJECT:
                return answer
            if answer.value >= PERMIT:
                permitted = answer
        if permitted is not None:
            return permitted
    return Vote(PERMIT)


def first_tier_agrees(tiers: Tiers, *question: object) -> Verdict:
    """The first tier in which somebody answers decides: all of it must agree. Nobody: no."""
    for tier in tiers:
        if tier:
            return first_refusal((tier,), *question)
    return Verdict.refuse("", "NobodyAsked")


def smallest_room(tiers: Tiers, *question: object) -> Room:
    """The plugin that leaves the least room decides; nobody: no limit."""
    rooms: list[Room] = [method(*question) for method in flat(tiers)]
    return min(rooms, key=lambda room: room.tasks, default=Room(NO_LIMIT, YES))


def smallest_vector(tiers: Tiers, session: Any, *question: object) -> Vector:
    """Of each resource the plugin decides that leaves the least; nobody: no bound."""
    found = np.full(len(session.snapshot.space), np.inf)
    for method in flat(tiers):
        found = np.minimum(found, method(session, *question))
    return found


def first_difference(tiers: Tiers, *question: object) -> int:
    """The first answer that is not zero decides."""
    for method in flat(tiers):
        answer: int = method(*question)
        if answer:
            return answer
    return 0


class Choice(NamedTuple):
    """Who may be evicted, and the methods of the plugins that had a say in it."""

    victims: list[Any]
    voters: list[Any]


def victims(tiers: Tiers, *question: object) -> Choice:
    """The first tier that agrees on somebody decides.

    Inside a tier the answers are intersected; no say is skipped. A plugin that answers with nobody ends its tier, and the next
    tier is asked. An intersection that becomes empty is forgotten: the next plugin of the tier starts anew.
    """
    for tier in tiers:
        chosen: list[Any] | None = None
        voters = []
        for method in tier:
            answer: list[Any] | None = method(*question)
            if answer is None:
                continue
            voters.append(method)
            if not answer:
                chosen = None
                break
            if chosen is None:
                chosen = answer
            else:
                allowed = set(map(id, answer))
                chosen = [item for item in chosen if id(item) in allowed] or None
        if chosen is not None:
            return Choice(chosen, voters)
    return Choice([], [])


def victims_all_agree(tiers: Tiers, *question: object) -> Choice:
    """Everybody who has a say must agree, in every tier; nobody has a say: nobody is a victim."""
    chosen: list[Any] | None = None
    voters = []
    for method in flat(tiers):
        answer: list[Any] | None = method(*question)
        if answer is not None:
            voters.append(method)
            allowed = set(map(id, answer))
            chosen = list(answer) if chosen is None else [item for item in chosen if id(item) in allowed]
    return Choice(chosen or [], voters)


def first_tier_together(tiers: Tiers, *question: object) -> list[tuple[Any, str]]:
    """The first tier that names anybody decides; who is named by several plugins counts once, for the first of them.

    Each comes with the name of the plugin that named it.
    """
    for tier in tiers:
        named: dict[int, tuple[Any, str]] = {}
        for method in tier:
            for item in method(*question):
                named.setdefault(id(item), (item, method.__self__.name))
        if named:
            return list(named.values())
    return []
