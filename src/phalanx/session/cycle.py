"""One cycle: open a session on a snapshot, run the actions, close it, return the decisions.

Pure: the same input gives the same output.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Protocol

from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.session import node_hooks
from phalanx.session.contract import hooks_of
from phalanx.session.decision import Aftermath, Decisions, Outcome
from phalanx.session.isolation import Isolation
from phalanx.session.policy import Policy
from phalanx.session.questions import PluginFactory
from phalanx.session.session import Session
from phalanx.session.trace import Trace
from phalanx.session.trace_events import ActionEntered, ActionLeft, HyperNodeSeen, HyperNodesSeen, QueueFigures
from phalanx.state.gang_state import GangState
from phalanx.state.overcommitment import has_over_committed
from phalanx.state.overdue import overdue_in_evicting_queues
from phalanx.state.quorum import MINIMA, minima_text
from phalanx.state.snapshot import Snapshot
from phalanx.state.staleness import is_stale

SETTLED_SECONDS = 60.0
"""After so long a cycle is run though nothing has changed: some decisions depend on time alone."""


class Action(Protocol):
    """One step of a session."""

    name: str

    def run(self, session: Session) -> None: ...


ActionFactory = Callable[[Mapping[str, object]], Action]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The actions and plugins that exist."""

    actions: Mapping[str, ActionFactory] = field(default_factory=dict)
    plugins: Mapping[str, PluginFactory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that every plugin can be asked the hooks that it has; one that is made by a function is checked in the session."""
        for plugin in self.plugins.values():
            if isinstance(plugin, type):
                hooks_of(plugin)


@dataclass(frozen=True, slots=True)
class Profile:
    """Who decides: a policy, and what it chooses from."""

    policy: Policy
    catalogue: Catalogue


def run_cycle(
    snapshot: Snapshot, policy: Policy, catalogue: Catalogue, *, trace_level: int = 0, traced_gangs: Collection[str] = ()
) -> Decisions:
    """Decide what to do with the snapshot; trace it up to a level, for all gangs or only for some."""
    return run_traced(snapshot, policy, catalogue, Trace(trace_level, traced_gangs))


def run_traced(
    snapshot: Snapshot,
    policy: Policy,
    catalogue: Catalogue,
    trace: Trace,
    *,
    opened: Callable[[Session], None] = lambda session: None,
) -> Decisions:
    """Decide what to do with the snapshot, with a trace of the caller; `opened` is called with the session when it has opened."""
    session = Session(_seen_by(policy, snapshot), policy, catalogue.plugins, trace)
    opened(session)
    if trace.level:
        note_opening(session)
    for name in policy.actions:
        if session.is_moot:
            break
        session.trace.note(ActionEntered, name)
        catalogue.actions[name](policy.arguments_by_action.get(name, {})).run(session)
        session.trace.note(ActionLeft, name)
    return close_session(session)


def run_isolated(
    snapshot: Snapshot, policy: Policy, catalogue: Catalogue, *, trace_level: int = 0, traced_gangs: Collection[str] = ()
) -> Decisions:
    """Decide what to do with the snapshot; gangs on which the cycle fails are left out and told so."""
    run = partial(run_cycle, policy=policy, catalogue=catalogue, trace_level=trace_level, traced_gangs=traced_gangs)
    return _isolated(Isolation(), snapshot, policy, run)


def _isolated(isolation: Isolation, snapshot: Snapshot, policy: Policy, run: Callable[[Snapshot], Decisions]) -> Decisions:
    return isolation.run(run, snapshot, suspects=sorted(snapshot.gangs) if policy.counts_all_gangs else snapshot.active)


@dataclass(frozen=True, slots=True)
class _Settled:
    """A cycle that had nothing to carry out, which holds until the cluster changes or some time has passed."""

    snapshot: Snapshot
    policy: Policy
    decisions: Decisions

    def holds_for(self, snapshot: Snapshot, policy: Policy) -> bool:
        """Tell whether another cycle would give the same."""
        until = min(self.snapshot.now + SETTLED_SECONDS, self.decisions.again or inf)
        is_soon = self.snapshot.now <= snapshot.now < until
        return is_soon and policy == self.policy and snapshot.is_same_cluster(self.snapshot)


class Decider:
    """Runs cycles one after the other, and spares those that would decide nothing, or nothing else than the last one."""

    def __init__(self, *, isolates: bool = True) -> None:
        """Start before the first cycle; one that `isolates` leaves out gangs on which a cycle fails."""
        self.is_guarded: bool | None = None
        """A plugin holds gangs to their minima; None before the first cycle."""
        self._isolates = isolates
        self._isolations: dict[str | None, Isolation] = {}
        """By node pool: several shards share the cluster, and each sees its own gangs."""
        self._settled: dict[str | None, _Settled] = {}

    def decide(
        self, snapshot: Snapshot, policy: Policy, catalogue: Catalogue, *, trace_level: int = 0, traced_gangs: Collection[str] = ()
    ) -> Decisions:
        """Decide what to do with the snapshot."""
        quiet = None if self.is_guarded is None else quiet_cycle(snapshot, policy, is_guarded=self.is_guarded)
        if quiet is not None:
            return quiet
        last = self._settled.get(policy.node_pool) if not trace_level else None
        if last is not None and last.holds_for(snapshot, policy):
            return last.decisions.at(snapshot.now)
        run = partial(run_cycle, policy=policy, catalogue=catalogue, trace_level=trace_level, traced_gangs=traced_gangs)
        isolation = self._isolations.setdefault(policy.node_pool, Isolation())
        decisions = _isolated(isolation, snapshot, policy, run) if self._isolates else run(snapshot)
        self.is_guarded = decisions.is_guarded
        self._settled.pop(policy.node_pool, None)
        if decisions.is_settled:  # its lists are changed by whoever carries it out
            self._settled[policy.node_pool] = _Settled(snapshot, policy, decisions.at(snapshot.now))
        return decisions


def quiet_cycle(snapshot: Snapshot, policy: Policy, *, is_guarded: bool) -> Decisions | None:
    """Return the gangs as they are where no session would decide anything for them; None if one might.

    Nobody waits for a place or for admission, no gang lost members, no node holds too much, and no action moves what runs, so none
    has anything to do; figures of queues are not counted anew.
    """
    if policy.relieves and has_over_committed(snapshot):
        return None
    if "overdue" in policy.actions and overdue_in_evicting_queues(snapshot):
        return None
    if policy.counts_all_gangs or policy.moves_running or any(_waits(key, snapshot) for key in snapshot.active):
        return None
    states = [GangState(snapshot.gangs[key], ((task, -1) for task in snapshot.members_of(key).values())) for key in snapshot.active]
    if any(map(is_stale, states)):
        return None
    decisions = Decisions(binds_by_request=policy.binds_by_request, options=policy.options, is_guarded=is_guarded)
    decisions.outcomes.extend(Outcome(state, is_guarded, snapshot.now) for state in states)
    return decisions


def _waits(key: GangKey, snapshot: Snapshot) -> bool:
    """Tell whether a gang waits for places or for admission.

    Without an action `enqueue` it is admitted by the first session that sees it, and for that there has to be one: owners such as
    Volcano's job controller make pods only then.
    """
    if snapshot.gangs[key].phase in ("", "Pending"):
        return True
    return any(task.status is Status.PENDING for task in snapshot.members_of(key).values())


def open_session(
    snapshot: Snapshot, policy: Policy, catalogue: Catalogue, *, trace_level: int = 0, traced_gangs: Collection[str] = ()
) -> Session:
    """Return a session ready for its actions."""
    return Session(_seen_by(policy, snapshot), policy, catalogue.plugins, Trace(trace_level, traced_gangs))


def note_opening(session: Session) -> None:
    """Record what a session begins with: the figures of queues and the network domains."""
    trace, tree = session.trace, session.snapshot.hypernodes
    for name, figures in sorted(session.decisions.queues.items()):
        trace.note(QueueFigures, name, figures)
    if not tree.is_empty:
        trace.note(HyperNodesSeen, tree.top, len(set(tree.tiers[: tree.top])))
        for number in range(tree.top):
            trace.note(HyperNodeSeen, tree.names[number], tree.tiers[number], len(tree.members[number]))


def _seen_by(policy: Policy, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with every gang in it where the policy counts settled ones too."""
    if not policy.counts_all_gangs or len(snapshot.active) == len(snapshot.gangs):
        return snapshot
    return replace(snapshot, active=tuple(sorted(snapshot.gangs)))


def close_session(session: Session) -> Decisions:
    """Close a session and return what it decided."""
    session.close()
    decisions = session.decisions
    if session.policy.heals:
        _note_minima(session)
    decisions.trace, decisions.is_guarded = session.trace.events, session.is_guarded
    decisions.heeds_tiers = session.is_asked(node_hooks.HYPERNODE_GRADIENTS)
    _note_limits(session)
    active, outcome = set(session.snapshot.active), _outcome_maker(session)
    for key, state in session.gangs.items():
        if key not in active and all(task.status is task.task.status for task in state.tasks):
            continue  # somebody only looked at it
        for task in state.tasks if state.tally.pipelined else ():
            if task.status is Status.PIPELINED:
                decisions.pipelined[task.task.key] = session.node_name(task.node)
        decisions.outcomes.append(outcome(state, session.is_guarded))
    decisions.outcomes.extend(outcome(state, False) for state in session.left_out)
    return decisions


def _outcome_maker(session: Session) -> Callable[[GangState, bool], Outcome]:
    """Return what makes the outcome of a gang, given whether it is guarded; the rest is the same for all."""
    policy = session.policy
    return partial(
        Outcome, now=session.now, is_loose=not policy.holds_gangs, was_tried=policy.tries_all_gangs, says_why=policy.says_why,
        aftermath=Aftermath(session.ledger, session.decisions.limits),
    )  # fmt: skip


def _note_limits(session: Session) -> None:
    """Record what the queues of gangs that wait may still take: nodes beyond that would help nobody."""
    for name in {gang.gang.queue for gang in session.gangs.values() if gang.tally.counts[Status.PENDING]}:
        limits = session.queue_limits(session.queues[name]) if name in session.queues else {}
        if limits:
            session.decisions.limits[name] = limits


def _note_minima(session: Session) -> None:
    """Let every pod that is bound say what its gang needs now: the owner may want more or fewer later, which breaks nothing."""
    decisions = session.decisions
    for gang in (gang for gang in session.gangs.values() if gang.tally.counts[Status.BINDING]):
        bound = [state.task.key for state in gang.tasks if state.status is Status.BINDING and state.task.key in decisions.binds]
        text = minima_text(gang.gang)
        for key in bound if text else ():
            decisions.annotations[key] = {**decisions.annotations.get(key, {}), MINIMA: text}
