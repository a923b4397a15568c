"""Ask another process: it may refuse nodes, score them, choose victims, hold gangs and queues back, and is told of placements.

The process is reached through a `Line`, which the edge hands in; nothing here knows HTTP. Without one, as in tests and replays,
every question goes unanswered. What happens then is up to `extender.ignorable`: the plugin has no say, or it refuses.

A question that was answered once in a session gets the same answer again, and a process that failed to answer is not asked again
until the next session: both are the line's duty, so that a process that hangs costs one timeout and not one per node.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from phalanx.errors import ConfigError
from phalanx.model.queue import Queue
from phalanx.model.redaction import redacted_text
from phalanx.placement import Index, Mask, Scores
from phalanx.session.arguments import Arguments
from phalanx.session.node_answers import Layer
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.session.trace_events import PluginNote
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import ABSTAINED, YES, Verdict, Vote

VERBS = (
    "onSessionOpen", "onSessionClose", "predicate", "prioritize", "preemptable", "reclaimable", "queueOverused", "jobEnqueueable",
    "jobReady", "allocateFunc", "deallocateFunc",
)  # fmt: skip
UNRESOLVABLE = 3
"""The code of a refusal that no eviction can cure."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the process listens and how long it may take."""

    url_prefix: str = ""
    timeout_seconds: float = 1.0
    path_by_verb: Mapping[str, str] = field(default_factory=dict)
    """Verbs that are not in here are not asked."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question, or one thing to be told; the verb says which of the fields matter."""

    verb: str
    session: Session
    task: TaskState | None = None
    nodes: tuple[int, ...] = ()
    victims: Sequence[TaskState] = ()
    gang: GangState | None = None
    queue: Queue | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; the verb says which of the fields matter."""

    problem: str = ""
    """Why there is no answer; empty when there is one."""
    message: str = ""
    """Why a node is refused; empty when it is not."""
    code: int = 0
    vote: int = 0
    is_true: bool = False
    score_by_node: Mapping[str, float] = field(default_factory=dict)
    victim_uids: frozenset[str] = frozenset()


Line = Callable[[Question], Answer]
"""Carries a question to the process and its answer back; never raises because of the process."""


def no_line(endpoint: Endpoint) -> Line:
    """Return a line to nowhere, for programs that talk to nobody."""
    return _unanswered


def _unanswered(question: Question) -> Answer:
    return Answer(problem="there is no connection to other processes here")


class ExtenderPlugin:
    """Asks another process to filter, score and hold back."""

    name = "extender"
    protects = "the extender protects it"

    def __init__(self, policy: PluginPolicy, connect: Callable[[Endpoint], Line] = no_line) -> None:
        """Read where the process is and what it wants to be asked."""
        settings = Arguments(self.name, policy.arguments)
        prefix = settings.text("extender.urlPrefix", "")
        timeout = settings.seconds("extender.httpTimeout", "1s")
        self._is_ignorable = settings.switch("extender.ignorable", False)
        self._managed = _names(settings.raw("extender.managedResources"))
        paths = {verb: settings.text(f"extender.{verb}Verb", "") for verb in VERBS}
        settings.done()
        self._verbs = {verb for verb, path in paths.items() if path}
        if self._verbs and not prefix.startswith(("http://", "https://")):
            raise ConfigError(
                f"plugin 'extender', argument 'extender.urlPrefix': {redacted_text(prefix)!r} is no address; write 'http://HOST:PORT'"
            )
        self.line = connect(Endpoint(prefix, timeout or 1.0, {verb: paths[verb] for verb in self._verbs}))
        """Whoever wants to hear questions and answers puts a line of its own in front."""

    def _concerns(self, verb: str, task: TaskState) -> bool:
        """Tell whether the process wants to be asked about this task."""
        return verb in self._verbs and (not self._managed or not self._managed.isdisjoint(task.task.shape.request))

    def _no_answer(self, answer: Answer) -> Verdict:
        """Return what to make of no answer: yes if that may be ignored."""
        if self._is_ignorable:
            return YES
        return Verdict.refuse(self.name, "ExtenderFailed", f"the extender did not answer: {answer.problem}")

    def open(self, session: Session) -> None:
        """Tell the process that a session begins."""
        if "onSessionOpen" in self._verbs:
            self._tell(Question("onSessionOpen", session))

    def close(self, session: Session) -> None:
        """Tell the process that the session ends."""
        if "onSessionClose" in self._verbs:
            self._tell(Question("onSessionClose", session))

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Tell the process of tasks allocated or pipelined, and of those evicted."""
        verb = "deallocateFunc" if (operation.kind is OperationKind.EVICT) != undone else "allocateFunc"
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            if self._concerns(verb, task):
                self._tell(Question(verb, session, task, (node,)))

    def _tell(self, question: Question) -> None:
        answer = self.line(question)
        problem = answer.problem or answer.message
        if problem:
            question.session.trace.note(PluginNote, self.name, f"{question.verb}: {problem}")

    def task_screen(self, session: Session, task: TaskState, nodes: Index | slice) -> list[Layer] | None:
        """Ask about each node; all are refused when the process should score them and cannot."""
        scoring = self._scoring_problem(session, task)
        if not self._concerns("predicate", task) and scoring.ok:
            return None
        numbers = np.arange(len(session.snapshot.nodes), dtype=np.int64)[nodes]
        if not scoring.ok:
            return [Layer(np.ones(len(numbers), dtype=np.bool_), scoring.message)]
        return _layers([self._refusal(session, task, node) for node in numbers.tolist()])

    def _refusal(self, session: Session, task: TaskState, node: int) -> tuple[str, int]:
        answer = self.line(Question("predicate", session, task, (node,)))
        return (self._no_answer(answer).message, 0) if answer.problem else (answer.message, answer.code)

    def _scoring_problem(self, session: Session, task: TaskState) -> Verdict:
        if not self._concerns("prioritize", task):
            return YES
        answer = self._priorities(session, task)
        return self._no_answer(answer) if answer.problem else YES

    def _priorities(self, session: Session, task: TaskState) -> Answer:
        return self.line(Question("prioritize", session, task, tuple(range(len(session.snapshot.nodes)))))

    def task_scores(self, session: Session, task: TaskState, candidates: Mask | None) -> Scores | None:
        """Ask for a score of each node; nodes that are left out score 0."""
        if not self._concerns("prioritize", task):
            return None
        scores = self._priorities(session, task).score_by_node
        return np.array([scores.get(name, 0.0) for name in session.snapshot.nodes.names]) if scores else None

    def preemptable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState] | None:
        """Ask whom of its own queue the task may push out."""
        return self._victims("preemptable", session, preemptor, candidates)

    def reclaimable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState] | None:
        """Ask whom of other queues the task may push out."""
        return self._victims("reclaimable", session, preemptor, candidates)

    def _victims(self, verb: str, session: Session, task: TaskState, candidates: Sequence[TaskState]) -> list[TaskState] | None:
        if verb not in self._verbs:
            return None
        answer = self.line(Question(verb, session, task, victims=candidates))
        if answer.problem:
            return None if self._is_ignorable else []
        return [victim for victim in candidates if victim.task.uid in answer.victim_uids] if answer.vote else None

    def gang_enqueueable(self, session: Session, gang: GangState) -> Vote:
        """Ask whether a gang may be admitted."""
        if "jobEnqueueable" not in self._verbs:
            return ABSTAINED
        answer = self.line(Question("jobEnqueueable", session, gang=gang))
        if answer.problem:
            verdict = self._no_answer(answer)
            return ABSTAINED if verdict.ok else Vote(-1, verdict)
        return Vote(answer.vote, YES if answer.vote >= 0 else self._refuse(f"the extender does not admit gang {gang.key}"))

    def gang_ready(self, session: Session, gang: GangState) -> Verdict:
        """Ask whether a gang may start."""
        if "jobReady" not in self._verbs:
            return YES
        answer = self.line(Question("jobReady", session, gang=gang))
        if answer.problem:
            return self._no_answer(answer)
        return YES if answer.is_true else self._refuse(f"the extender does not let gang {gang.key} start yet")

    def queue_overused(self, session: Session, queue: Queue) -> Verdict:
        """Ask whether a queue has all it should have."""
        if "queueOverused" not in self._verbs:
            return YES
        answer = self.line(Question("queueOverused", session, queue=queue))
        if answer.problem:
            return self._no_answer(answer)
        return self._refuse(f"the extender says that queue {queue.name} has all it should have") if answer.is_true else YES

    def _refuse(self, message: str) -> Verdict:
        return Verdict.refuse(self.name, "ExtenderRefused", message)


def _layers(refusals: Sequence[tuple[str, int]]) -> list[Layer]:
    """Return one filter per reason."""
    found = []
    for reason in dict.fromkeys(refusal for refusal in refusals if refusal[0]):
        refused = np.array([refusal == reason for refusal in refusals], dtype=np.bool_)
        found.append(Layer(refused, reason[0], is_final=reason[1] == UNRESOLVABLE))
    return found


def _names(value: object) -> frozenset[str]:
    if value is not None and not isinstance(value, list | tuple):
        raise ConfigError("plugin 'extender', argument 'extender.managedResources': expected a list of resource names")
    return frozenset(map(str, value or ()))
