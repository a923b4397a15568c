"""Why an action that evicts finds no victims for a gang: a verdict on the gang and, where it is traced, gang by gang.

The verdict has one cause. Every gang for which evictions were in vain gets one, so it is made from nouns (`_Runners`), once for all
gangs that are alike, and plugins are asked only about a few gangs that the action itself would let go. The trace has all.

Nothing here decides anything: the action has searched and found nothing.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from phalanx.actions.dry_run import DryRun, GangNoun, Running, RunningNoun, SpareRule
from phalanx.actions.victim_units import spare_of
from phalanx.model.gang import Gang
from phalanx.model.task import GangKey
from phalanx.model.task_status import EVICTABLE
from phalanx.placement import Amounts
from phalanx.placement.fit import copies
from phalanx.session.session import Session
from phalanx.session.spared import Spared, queue_keeps
from phalanx.session.trace_searches import NearestNode, NoVictimsFound, SparedGang
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import YES, FitError, Verdict

NEVER_PREEMPTS = Verdict.refuse("", "PreemptionNever", "its preemptionPolicy is Never")
OVER_QUOTA = "QueueQuotaExceeded"
MOST_ASKED = 16
"""For a verdict plugins are asked about so many gangs; if none of them may go, the others are not looked at."""
FARTHEST = tuple(
    reason.code
    for reason in (
        Spared.NOT_PREEMPTABLE, Spared.NOT_RUNNING, Spared.NOT_LOWER, Spared.KEEPS_ALL, Spared.NOT_RECLAIMABLE, Spared.SAME_QUEUE,
        Spared.OTHER_QUEUE,
    )
)  # fmt: skip
"""Codes of those that are further and further from being victims; every other code is nearer than these."""


@dataclass(frozen=True, slots=True)
class SearchRule:
    """By which rule an action looks for victims."""

    action: str
    purpose: str
    """preempt: inside the queue; reclaim: in other queues."""
    hook: str
    """The question that plugins are asked."""
    spared: SpareRule
    takes_wholes: bool
    """Gangs go as a whole, or give what they can spare; else task by task."""


@dataclass(frozen=True, slots=True)
class _RuleAnswer:
    """What the rule of an action alone says of all gangs in its reach."""

    willing: list[GangKey]
    """The first gangs that plugins are asked about."""
    nearest: tuple[GangKey, Verdict] | None
    """The one that is nearest to being a victim of those that stay."""
    staying: int


@dataclass(slots=True)
class _Runners:
    """The gangs by queue, a running task of each, and what was found out about them already."""

    gangs: dict[str, list[Gang]]
    running: dict[str, list[RunningNoun]] = field(default_factory=dict)
    answers: dict[Hashable, _RuleAnswer] = field(default_factory=dict)
    causes: dict[Hashable, Verdict] = field(default_factory=dict)

    def of_queue(self, snapshot: Snapshot, queue: str) -> list[RunningNoun]:
        """Return the running gangs of a queue by name; each is looked up once."""
        if queue not in self.running:
            gangs = sorted(self.gangs.get(queue, ()), key=lambda gang: gang.key)
            self.running[queue] = [runner for gang in gangs if (runner := _runner(snapshot, gang)) is not None]
        return self.running[queue]


def record_no_victims(session: Session, task: TaskState, rule: SearchRule, refusal: Verdict = YES) -> None:
    """Leave on a gang why nobody is evicted for it, asked for one of its tasks; `refusal` is what is known of the gang itself."""
    gang, survey = task.gang, VictimSurvey(session, task, rule)
    cause = survey.cause() if refusal.ok else refusal
    numbers = {**cause.numbers, "cause": cause.reason, "purpose": rule.purpose, "in_reach": int(survey.has_runners())}
    gang.no_victims.append(Verdict.refuse(rule.action, "NoVictims", cause.message or cause.reason, **numbers))
    if session.trace.wants(NoVictimsFound.at_level, gang.key):
        survey.note(cause)


class VictimSurvey:
    """Looks at all running gangs for one task that found no room."""

    def __init__(self, session: Session, task: TaskState, rule: SearchRule) -> None:
        """Prepare for a task and the rule of the action that searched for it."""
        self._session, self._task, self._rule = session, task, rule
        self._mine = task.gang.gang
        self._runners = session.read_state(_Runners) or _find_runners(session)

    def cause(self) -> Verdict:
        """Return the first cause: no node suits the task, nobody may go, or those who may go are not enough."""
        key = (*self._rule_key(), self._mine.min_member, self._session.class_of(self._task.task.shape))
        if key not in self._runners.causes:
            self._runners.causes[key] = self._cause()
        return self._runners.causes[key]

    def _rule_key(self) -> tuple[object, ...]:
        """Return what gangs have in common to which the action offers the same victims."""
        mine, task = self._mine, self._task
        itself = mine.key if task.gang.tally.ready else ""  # which others may name, and it may not
        return (
            self._rule.action,
            mine.queue,
            mine.priority,
            itself,
            task.task.is_best_effort,
            len(self._session.decisions.evictions),
        )

    def has_runners(self) -> bool:
        """Tell whether anybody runs in the queues that the action looks at."""
        return next(self._in_reach(), None) is not None

    def _in_reach(self) -> Iterator[RunningNoun]:
        mine = self._mine
        queues = [mine.queue] if self._rule.purpose == "preempt" else sorted(self._runners.gangs.keys() - {mine.queue})
        runners = (runner for name in queues for runner in self._runners.of_queue(self._session.snapshot, name))
        return (runner for runner in runners if runner.gang.gang.key != mine.key)

    def _cause(self) -> Verdict:
        refusal = self._prefilter() if self._task.task.may_preempt else NEVER_PREEMPTS
        if not refusal.ok:
            return refusal
        if not self._suits_some_node():
            return self._no_node_suits()
        key = self._rule_key()
        if key not in self._runners.answers:
            self._runners.answers[key] = self._rule_answer()
        return self._cause_among(self._runners.answers[key])

    def _cause_among(self, answer: _RuleAnswer) -> Verdict:
        stays: list[tuple[GangKey, Verdict]] = []
        for number, key in enumerate(answer.willing):
            gang = self._session.gang(key)
            verdict = None if gang is None else self._why_stays(gang)
            if verdict is not None and verdict.ok:
                return self._still_no_room(key, answer.willing[number + 1 :])
            if verdict is not None:
                stays.append((key, verdict))
        nearest = min(stays, key=lambda entry: rank(entry[1]), default=answer.nearest)
        return _about(nearest, len(stays) + answer.staying)

    def _rule_answer(self) -> _RuleAnswer:
        """Ask the rule of the action about everybody in its reach."""
        willing: list[GangKey] = []
        first: dict[Spared, RunningNoun] = {}
        staying = 0
        for runner in self._in_reach():
            reason = self._rule.spared(runner)
            if reason:
                staying += 1
                first.setdefault(reason, runner)
            elif len(willing) < MOST_ASKED:
                willing.append(runner.gang.gang.key)
        stays = [(runner.gang.gang.key, self._why_out_of_rule(runner)) for runner in first.values()]
        return _RuleAnswer(willing, min(stays, key=lambda entry: rank(entry[1]), default=None), staying)

    def _suits_some_node(self) -> bool:
        """Tell whether some node would take the task if it had room."""
        error = self._task.error
        if isinstance(error, FitError) and error.final is not None and error.final.all():
            return False
        return bool(DryRun(self._session, self._task).candidates.any())

    def _still_no_room(self, first: GangKey, others: list[GangKey]) -> Verdict:
        """Say what stands against it even without those that may go: nodes, or where they would have room, its queue.

        Whether the other gangs may go is asked only where the room that they leave matters.
        """
        if any(verdict.reason == OVER_QUOTA for verdict in self._task.gang.verdicts):
            gangs = [gang for key in others if (gang := self._session.gang(key)) is not None]
            mine = self._session.gang(first)
            nearest = self._nearest_node([*([mine] if mine else []), *(gang for gang in gangs if self._why_stays(gang).ok)])
            if nearest is not None and nearest.places >= nearest.needed:
                text = f"queue {self._mine.queue} may not have enough for it even without those that may go, such as {first}"
                return Verdict.refuse("", OVER_QUOTA, text, victim=first, queue=self._mine.queue)
        text = f"too few nodes have room for it even without those that may go, such as {first}"
        return Verdict.refuse("", "StillNoRoom", text, victim=first)

    def _no_node_suits(self) -> Verdict:
        """Name the filter that refuses the most nodes for good."""
        screens = self._session.screen(self._task.task.shape, slice(None))
        layers = [layer for _, layers in screens for layer in layers if layer.is_final]
        worst = max(layers, key=lambda layer: int(layer.refused.sum()), default=None)
        reason = "" if worst is None or not worst.refused.any() else worst.reason
        text = f"no node suits it, whoever leaves{f': {reason}' if reason else ''}"
        return Verdict.refuse("", "NoNodeSuits", text, filter=reason)

    def _prefilter(self) -> Verdict:
        """Ask for refusals that hold for every node, without marking the task as tried."""
        was_prepared = self._task.is_prepared
        verdict = self._session.prefilter(self._task)
        self._task.is_prepared = was_prepared
        return verdict

    def _is_in_reach(self, runner: Running) -> bool:
        return (runner.gang.gang.queue == self._mine.queue) == (self._rule.purpose == "preempt")

    def _why_out_of_rule(self, runner: Running) -> Verdict:
        """Say by which rule of the action a task stays; yes if plugins are asked about it."""
        action, its = self._rule.action, runner.gang.gang
        if not self._is_in_reach(runner):
            reason: Spared | None = Spared.OTHER_QUEUE if self._rule.purpose == "preempt" else Spared.SAME_QUEUE
        else:
            reason = self._rule.spared(runner)
        if reason is Spared.KEEPS_ALL:
            return queue_keeps(action, its.queue, self._figures(its.queue), self._task.task.shape.request)
        return YES if reason is None else reason.verdict(action, its, self._mine)

    def _not_running(self, gang: Gang) -> Verdict:
        return Spared.NOT_RUNNING.verdict(self._rule.action, gang, self._mine)

    def _figures(self, queue: str) -> Mapping[str, Mapping[str, float]]:
        return self._session.decisions.queues.get(queue, {})

    def _why_stays(self, gang: GangState) -> Verdict:
        """Say why nothing of a gang goes; yes if some of it may."""
        tasks = [task for task in gang.tasks if task.status in EVICTABLE and task.node >= 0]
        if not tasks:
            return self._not_running(gang.gang)
        willing = [task for task in tasks if not self._rule.spared(task)] if self._is_in_reach(tasks[0]) else []
        if not willing:
            return self._why_out_of_rule(tasks[0])
        allowed = self._session.who_may_go(self._rule.hook, self._task, willing, self._rule.purpose)
        if self._is_enough(allowed, tasks):
            return YES
        if len(allowed) < len(willing):
            return self._session.why_protected(self._rule.hook, self._task, willing, self._rule.purpose)
        minimum = gang.gang.min_member
        text = f"would fall below its minimum of {minimum}, and not all of it may go"
        return Verdict.refuse(self._rule.action, "GangWouldBreak", text, ready=gang.tally.ready, minimum=minimum)

    def _is_enough(self, allowed: list[TaskState], tasks: list[TaskState]) -> bool:
        return bool(allowed) and (not self._rule.takes_wholes or len(allowed) == len(tasks) or bool(spare_of(allowed)))

    # --- for the trace ---------------------------------------------------------------------------------------------------

    def note(self, cause: Verdict) -> None:
        """Record who may go and who stays, gang by gang, the nearest first."""
        session, gang = self._session, self._task.gang
        runners = [runner for name in self._runners.gangs for runner in self._runners.of_queue(session.snapshot, name)]
        others = sorted((runner for runner in runners if runner.gang.gang.key != gang.key), key=lambda runner: runner.gang.gang.key)
        answers = [(runner.gang.gang, self._why_it_stays(runner)) for runner in others]
        stays = sorted(((noun, verdict) for noun, verdict in answers if not verdict.ok), key=lambda entry: rank(entry[1]))
        may_go = [state for noun, verdict in answers if verdict.ok and (state := session.gang(noun.key)) is not None]
        session.trace.note(
            NoVictimsFound, gang.key, self._rule.action, cause.reason, cause.message or cause.reason,
            [state.key for state in may_go], [_spared_gang(*entry) for entry in stays], self._nearest_node(may_go),
        )  # fmt: skip

    def _why_it_stays(self, runner: RunningNoun) -> Verdict:
        """Say why nothing of a gang goes; yes if some of it may.

        Most are out of the question by a rule that the nouns answer. The state of a gang, which takes far longer to make, is looked
        at only for the others, and where members may differ: some run already, or were evicted in this session.
        """
        verdict = self._why_out_of_rule(runner)
        is_uniform = verdict.reason != Spared.NOT_RUNNING.code and not self._session.decisions.evictions
        if not verdict.ok and is_uniform:
            return verdict
        state = self._session.gang(runner.gang.gang.key)
        return self._not_running(runner.gang.gang) if state is None else self._why_stays(state)

    def _nearest_node(self, may_go: list[GangState]) -> NearestNode | None:
        """Return the node that would come nearest to having room if everybody left who may; None if no node suits the task."""
        session, shape = self._session, self._task.task.shape
        nodes, request = DryRun(session, self._task).nodes(), session.request_of(shape)
        if not len(nodes) or not request.rows:
            return None
        leaving = [task for gang in may_go for task in gang.tasks if task.status in EVICTABLE and task.node >= 0]
        room = session.ledger.future[:, nodes] + _gains(session, leaving)[:, nodes]
        lacks = np.array([np.clip(amount - room[row], 0, amount) for row, amount in request.rows])
        best = int(np.argmin(sum(lack / amount for lack, (_, amount) in zip(lacks, request.rows, strict=True))))
        names = [session.snapshot.space.names[row] for row, _ in request.rows]
        short = {name: int(lack[best]) for name, lack in zip(names, lacks, strict=True) if lack[best]}
        leave = [task.task.key for task in leaving if task.node == nodes[best]]
        needed = max(self._mine.min_member - self._task.gang.tally.ready - self._task.gang.tally.pipelined, 1)
        places = int(np.minimum(copies(room, request), needed).sum())
        return NearestNode(session.node_name(int(nodes[best])), short, leave, min(places, needed), needed)


def _find_runners(session: Session) -> _Runners:
    found = _Runners({})
    for gang in session.snapshot.gangs.values():
        if gang.queue in session.queues:
            found.gangs.setdefault(gang.queue, []).append(gang)
    session.write_state(found)
    return found


def _runner(snapshot: Snapshot, gang: Gang) -> RunningNoun | None:
    """Return a running task of a gang, one that may be preempted if there is one."""
    nodes, members = snapshot.nodes.number_by_name, snapshot.members_of(gang.key).values()
    running = (task for task in members if task.status in EVICTABLE and task.node in nodes)
    first = next(running, None)
    if first is None:
        return None
    chosen = first if first.is_preemptable else next((task for task in running if task.is_preemptable), first)
    return RunningNoun(chosen, GangNoun(gang), chosen.status)


def rank(verdict: Verdict) -> int:
    """Return how far from being a victim a gang is for which this is said."""
    return FARTHEST.index(verdict.reason) + 1 if verdict.reason in FARTHEST else 0


def _about(nearest: tuple[str, Verdict] | None, staying: int) -> Verdict:
    """Make a cause of what is said about the gang that is nearest to being a victim; others may stay for other reasons."""
    if nearest is None:
        return Verdict.refuse("", "NobodyRuns", "nobody else runs there")
    key, verdict = nearest
    text = f"{'for example ' if staying > 1 else ''}{key} {verdict.message}"
    return Verdict.refuse(verdict.plugin, verdict.reason, text, **{**verdict.numbers, "victim": key})


def _spared_gang(gang: Gang, verdict: Verdict) -> SparedGang:
    return SparedGang(gang.key, gang.queue, verdict.plugin, verdict.reason, verdict.message, dict(verdict.numbers))


def _gains(session: Session, leaving: list[TaskState]) -> Amounts:
    """Return what each node gains when tasks leave."""
    gains = np.zeros_like(session.ledger.future)
    for task in leaving:
        gains[:, task.node] += session.request_of(task.task.shape).amounts
    return gains
