"""Has one domain room for all of it? The domains that were tried, how far each got, and the best one.

A domain is a HyperNode, the nodes that share a value of a label, or a part of a KAI topology.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from phalanx.explain.domain_text import UNRESOLVED_TIERS
from phalanx.explain.gang_status import has_minimum
from phalanx.explain.no_effect import NO_EFFECT, constraints_without_effect
from phalanx.explain.reading import Reading
from phalanx.explain.reason_code import NO_DOMAIN
from phalanx.explain.reason_text import as_counted, counted
from phalanx.explain.tree import Line, Stage, StageResult
from phalanx.explain.why_kai import level_text
from phalanx.session.trace_events import GangNotReady
from phalanx.session.trace_searches import DomainChosen, DomainLeft, DomainRefused, NoDomain
from phalanx.state.gang_state import GangState, SubGroupState
from phalanx.state.hypernode_problems import hypernode_problems
from phalanx.state.verdict import Number

Scope = GangState | SubGroupState

UNRESOLVED = (*UNRESOLVED_TIERS, "TopologyNotFound", "LevelNotFound")
WHOLE_CLUSTER = "the whole cluster"
MOST_DOMAINS = 5


@dataclass(frozen=True, slots=True)
class Attempt:
    """How far the gang, or a part of it, got in a domain."""

    domain: str
    part: str
    placed: int
    needed: int
    error: str = ""
    """What stopped the next task, where one was tried."""

    @property
    def where(self) -> str:
        """The domain, and the part of the gang where it has parts."""
        return f"{self.domain}, sub-group {self.part}" if self.part else self.domain


def topology(reading: Reading) -> StageResult:
    """Say in which domains the gang was tried."""
    gang = reading.gang
    unresolved = tuple(_unresolved(reading))
    if unresolved:
        return StageResult(Stage.TOPOLOGY, False, unresolved, is_cause=True)
    if not any(scope.topology is not None for scope in _scopes(gang)):
        return StageResult(Stage.TOPOLOGY, None)
    ignored = tuple(Line(text, NO_EFFECT) for text in constraints_without_effect(reading))
    if has_minimum(gang):
        return StageResult(Stage.TOPOLOGY, True, (*_chosen(reading), *ignored))
    attempts, ignored = _attempts(reading), (*ignored, *_mistakes(reading))
    if not attempts:
        return StageResult(Stage.TOPOLOGY, False if any(reading.events(NoDomain)) else None, (*_no_domain(reading), *ignored))
    return _failed(reading, attempts, ignored)


def _unresolved(reading: Reading) -> Iterator[Line]:
    """Yield the constraints that mean nothing here, with the topologies that there are."""
    for text, reason in dict.fromkeys((each.message, each.reason) for each in reading.gang.verdicts if each.reason in UNRESOLVED):
        known = sorted(reading.snapshot.surroundings.label_trees)
        others = f"the topologies are {', '.join(known)}" if known else "there is no topology"
        yield Line(text, reason, {}, (Line(others),) if reason == "TopologyNotFound" else ())


def _mistakes(reading: Reading) -> Iterator[Line]:
    """Say what is wrong with HyperNodes: a domain may have less room than was meant."""
    problems = hypernode_problems(reading.snapshot.hypernodes, reading.snapshot.nodes)
    for name, text in islice(problems.items(), MOST_DOMAINS):
        yield Line(f"HyperNode {name}: {text}", "InvalidMembers", {"hypernode": name})


# --- domains that did not do ---------------------------------------------------------------------------------------------


def _failed(reading: Reading, attempts: list[Attempt], ignored: tuple[Line, ...]) -> StageResult:
    best = attempts[0]
    whole = f"{_one_more(reading.gang)}sub-group {best.part}" if best.part else "it"
    reached = f"{best.domain} with {best.placed} of {counted(best.needed, 'task')}"
    text = f"no {_kind(reading.gang, best.part)} has room for all of {whole}; the best is {reached}"
    things: dict[str, Number] = {"domain": best.domain, "placed": best.placed, "needed": best.needed, "domains": len(attempts)}
    below = [_attempt_line(attempt) for attempt in attempts[:MOST_DOMAINS]]
    if len(attempts) > MOST_DOMAINS:
        below.append(Line(f"and {counted(len(attempts) - MOST_DOMAINS, 'more domain')} with no more room"))
    lines = (Line(text, NO_DOMAIN, things, tuple(below)), *ignored)
    has_room_in_queue = all(task.refusal is None for task in reading.gang.tasks)
    return StageResult(Stage.TOPOLOGY, False, lines, is_cause=has_room_in_queue and _is_enough_in_all(reading, attempts))


def _one_more(gang: GangState) -> str:
    """Say that sub-groups before this one found a domain: how far it got is what they left."""
    return "one more " if any(task.had_place for task in gang.tasks) else ""


def _attempt_line(attempt: Attempt) -> Line:
    things: dict[str, Number] = {"domain": attempt.domain, "placed": attempt.placed, "needed": attempt.needed}
    below = (Line(f"then {attempt.error}"),) if attempt.error else ()
    return Line(f"{attempt.where}: {attempt.placed} of {counted(attempt.needed, 'task')}", "", things, below)


def _attempts(reading: Reading) -> list[Attempt]:
    """Return the domains with how far the gang and its parts got in each at the most, the best one first."""
    found: dict[tuple[str, str], Attempt] = {}
    for attempt in filter(partial(_is_bound, reading.gang), _recorded(reading)):
        known = found.get((attempt.domain, attempt.part))
        if known is None or known.placed < attempt.placed or (not known.error and known.placed == attempt.placed):
            found[attempt.domain, attempt.part] = attempt
    return sorted(found.values(), key=lambda each: (bool(each.part), -each.placed / max(each.needed, 1), as_counted(each.where)))


def _is_bound(gang: GangState, attempt: Attempt) -> bool:
    """Tell whether it is a constraint that has the gang, or a part of it, tried in this domain."""
    scope = _scope_of(gang, attempt.part)
    return scope is not None and scope.topology is not None and (scope.topology.is_hard or attempt.domain == WHOLE_CLUSTER)


def _recorded(reading: Reading) -> Iterator[Attempt]:
    for tried in reading.events(GangNotReady):
        if tried.where:
            yield Attempt(tried.where, tried.part, tried.placed, tried.needed, tried.error)
    domains: list[DomainRefused | DomainLeft] = [*reading.events(DomainRefused), *reading.events(DomainLeft)]
    for domain in domains:
        if domain.placed >= 0 and not domain.is_trial:  # a trial is held on a cluster without its victims
            yield Attempt(domain.domain, domain.part, domain.placed, domain.needed)


def _is_enough_in_all(reading: Reading, attempts: list[Attempt]) -> bool:
    """Tell whether the domains together have room for what none of them has: domains of one tier or label share no node."""
    tree, sums = reading.snapshot.hypernodes, dict[tuple[str, str], int]()
    for attempt in attempts:
        number = tree.number_by_name.get(attempt.domain.removeprefix("HyperNode "))
        level = attempt.domain.partition("=")[0] if number is None else f"tier {tree.tiers[number]}"
        sums[level, attempt.part] = sums.get((level, attempt.part), 0) + attempt.placed
    return max(sums.values(), default=0) >= max(attempt.needed for attempt in attempts)


# --- what it asks for, and what it has -----------------------------------------------------------------------------------


def _kind(gang: GangState, part: str) -> str:
    """Name the domains that it may use: ``HyperNode of tier 1 or narrower``, ``value of the label 'rack'``."""
    scope = _scope_of(gang, part)
    constraint = scope.topology if scope is not None else None
    if constraint is None or scope is None or not constraint.is_hard:
        return "domain, not even the whole cluster,"
    if constraint.is_of_tiers:
        return f"HyperNode of tier {scope.allowed_tier} or narrower"
    return f"group of nodes with one value of {constraint.label!r}" if constraint.label else level_text(constraint)


def _scopes(gang: GangState) -> list[Scope]:
    return [gang, *gang.subgroups.values()]


def _scope_of(gang: GangState, part: str) -> Scope | None:
    """Return the gang, or one of the sub-groups of a name."""
    return (
        next((scope for scope in gang.subgroups.values() if scope.policy is not None and scope.policy.name == part), None)
        if part
        else gang
    )


def _no_domain(reading: Reading) -> Iterator[Line]:
    for text in dict.fromkeys(event.reason for event in reading.events(NoDomain) if event.action == "allocate"):
        yield Line(text, NO_DOMAIN)


def _chosen(reading: Reading) -> Iterator[Line]:
    names = dict.fromkeys(event.where for event in reading.events(DomainChosen) if not event.is_trial)
    if reading.gang.allocated_hypernode and not names:
        names = dict.fromkeys([f"HyperNode {reading.gang.allocated_hypernode}"])
    yield from (Line(f"it is in {name}", "", {"domain": name}) for name in names if name != WHOLE_CLUSTER)
