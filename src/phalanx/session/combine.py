"""How the answers of several plugins become one. Each hook in `hooks.py` names its rule, one of these functions.

A rule gets the methods that are asked, tier by tier in order, and the question: the session and what the hook is about.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, TypeVarTuple

import numpy as np

from phalanx.placement import NO_LIMIT, Counts, Scores, Vector
from phalanx.state.verdict import PERMIT, REJECT, YES, Room, Verdict, Vote

if TYPE_CHECKING:
    from phalanx.session.session import Session

Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)
Answer_contra = TypeVar("Answer_contra", contravariant=True)
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)
Question = TypeVarTuple("Question")
Array = TypeVar("Array", Counts, Vector)


class Asked(Protocol[Answer_co]):
    """A method of a plugin."""

    __self__: Any

    def __call__(self, *question: Any) -> Answer_co: ...


Tiers = Sequence[Sequence[Asked[Answer_co]]]
"""The methods to ask, tier by tier."""


class Rule(Protocol[Answer_contra, Result_co]):
    """Asks some methods and makes one result of their answers."""

    def __call__(self, tiers: Sequence[Sequence[Asked[Answer_contra]]], /, *question: Any) -> Result_co: ...


class Hook(Generic[Result, *Question]):
    """A question to plugins: the method that answers it, the rule that combines the answers, the switch that turns it off.

    A rule that does not suit the answers of the method is a type error, and so is a question that it does not take.
    """

    __slots__ = ("method", "name", "rule", "switch")

    def __init__(
        self, method: Callable[[Any, "Session", *Question], Answer], rule: Rule[Answer, Result], switch: str | None = None
    ) -> None:
        """Declare a hook by the method of its Protocol."""
        self.name: str = method.__name__
        self.method: Callable[..., object] = method
        self.rule: Rule[Any, Result] = rule
        self.switch = switch


AnyHook = Hook[Any, *tuple[Any, ...]]


def flat(tiers: Tiers[Answer]) -> Iterable[Asked[Answer]]:
    """Return every method in order."""
    return tiers[0] if len(tiers) == 1 else [method for tier in tiers for method in tier]


def _answers(tiers: Tiers[Any], question: Sequence[Any]) -> Iterator[Any]:
    """Yield every answer that is not None, in order; nobody is asked before the answer is wanted."""
    return (answer for method in flat(tiers) if (answer := method(*question)) is not None)


def told(tiers: Tiers[None], *question: Any) -> None:
    """Every method is called; nobody answers."""
    for method in flat(tiers):
        method(*question)


def any_says_so(tiers: Tiers[bool], *question: Any) -> bool:
    """One yes is enough."""
    for tier in tiers:
        for method in tier:
            if method(*question):
                return True
    return False


def first_answer(tiers: Tiers[Answer], *question: Any) -> Answer | None:
    """The first answer that is not None decides; None when nobody has one."""
    for tier in tiers:
        for method in tier:
            answer = method(*question)
            if answer is not None:
                return answer
    return None


def collected(tiers: Tiers[Any], *question: Any) -> list[Any]:
    """Every answer that is not None counts."""
    return [answer for method in flat(tiers) if (answer := method(*question)) is not None]


def collected_by_plugin(tiers: Tiers[Answer], *question: Any) -> list[tuple[str, Answer]]:
    """Every answer counts, each with the name of its plugin."""
    return [(method.__self__.name, method(*question)) for method in flat(tiers)]


def sort_key(tiers: Tiers[Any], *question: Any) -> tuple[Any, ...]:
    """The keys in order, so that the first ones that differ decide; empty when nobody has one."""
    # A list, not a chain of generators: this is asked for every task of every gang.
    return tuple([answer for tier in tiers for method in tier if (answer := method(*question)) is not None])


def sort_keys(tiers: Tiers[Any], session: "Session", items: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The key of each of many items as `sort_key` makes it; each method is asked about all of them in turn."""
    columns = [[method(session, item) for item in items] for method in flat(tiers)]
    if not columns:
        return [()] * len(items)
    if not any(None in column for column in columns):
        return list(zip(*columns, strict=True))
    return [tuple([answer for answer in row if answer is not None]) for row in zip(*columns, strict=True)]


def chained(tiers: Tiers[Sequence[Any] | None], *question: Any) -> list[Any] | None:
    """All parts of all answers; one None ends the asking and is the result."""
    found: list[Any] = []
    for method in flat(tiers):
        answer = method(*question)
        if answer is None:
            return None
        found += answer
    return found


def added(tiers: Tiers[Scores | None], *question: Any) -> Scores | None:
    """The sum of all answers that are not None, in order; None when there is none."""
    total: Scores | float = 0.0
    for answer in _answers(tiers, question):
        total = total + answer
    return None if isinstance(total, float) else total


def added_pairs(tiers: Tiers[tuple[Scores, Scores]], *question: Any) -> tuple[Scores, Scores] | None:
    """The sums of the left and of the right parts; None when nobody is asked."""
    pairs = list(_answers(tiers, question))
    return (sum(left for left, _ in pairs), sum(right for _, right in pairs)) if pairs else None


def smallest(tiers: Tiers[Array], *question: Any) -> Array | None:
    """Of each entry the smallest answer; None when nobody is asked: no bound."""
    found: Array | None = None
    for method in flat(tiers):
        answer = method(*question)
        found = answer.copy() if found is None else np.minimum(found, answer)  # callers may change what they get
    return found


def lowest(tiers: Tiers[int], *question: Any) -> int:
    """The smallest number; no limit when nobody is asked."""
    return min((method(*question) for method in flat(tiers)), default=NO_LIMIT)


def first_refusal(tiers: Tiers[Verdict], *question: Any) -> Verdict:
    """Ask until somebody refuses; yes when nobody does. This is also how all must agree, and how any refusal decides."""
    for tier in tiers:
        for method in tier:
            verdict = method(*question)
            if not verdict.ok:
                return verdict
    return YES


def vote(tiers: Tiers[Vote], *question: Any) -> Vote:
    """Tier by tier: a vote against ends it, and so does a tier with a vote for it and none against. Permitted without any vote."""
    for tier in tiers:
        permitted = None
        for method in tier:
            answer = method(*question)
            if answer.value <= REJECT:
                return answer
            if answer.value >= PERMIT:
                permitted = answer
        if permitted is not None:
            return permitted
    return Vote(PERMIT)


def first_tier_agrees(tiers: Tiers[Verdict], *question: Any) -> Verdict:
    """All plugins of the first tier that has any must agree; refused when no tier has."""
    for tier in tiers:
        if tier:
            return first_refusal((tier,), *question)
    return Verdict.refuse("", "NobodyAsked")


def smallest_room(tiers: Tiers[Room], *question: Any) -> Room:
    """The plugin that leaves the least room decides; without one there is no limit."""
    rooms = [method(*question) for method in flat(tiers)]
    return min(rooms, key=lambda room: room.tasks, default=Room(NO_LIMIT, YES))


def first_difference(tiers: Tiers[int], *question: Any) -> int:
    """The first answer that is not zero decides."""
    for method in flat(tiers):
        answer = method(*question)
        if answer:
            return answer
    return 0


class Choice(NamedTuple):
    """Who may be evicted, and the methods of the plugins that had a say in it."""

    victims: list[Any]
    voters: list[Any]


def victims(tiers: Tiers[list[Any] | None], *question: Any) -> Choice:
    """The first tier that agrees on somebody decides.

    Inside a tier the answers are intersected; no say is skipped. A plugin that answers with nobody ends its tier, and the next
    tier is asked. An intersection that becomes empty is forgotten: the next plugin of the tier starts anew.
    """
    for tier in tiers:
        chosen: list[Any] | None = None
        voters = []
        for method in tier:
            answer = method(*question)
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


def victims_all_agree(tiers: Tiers[list[Any] | None], *question: Any) -> Choice:
    """Every plugin that has a say must agree, in every tier; without one there are no victims."""
    chosen: list[Any] | None = None
    voters = []
    for method in flat(tiers):
        answer = method(*question)
        if answer is not None:
            voters.append(method)
            allowed = set(map(id, answer))
            chosen = list(answer) if chosen is None else [item for item in chosen if id(item) in allowed]
    return Choice(chosen or [], voters)


def first_tier_together(tiers: Tiers[list[Any]], *question: Any) -> list[tuple[Any, str]]:
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
