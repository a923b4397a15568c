"""Binds of a session, gang by gang. A gang that cannot be bound whole is rolled back: what has landed of it is told to go again.

A bind that nobody answered is sent again, and one that has landed meanwhile is known by the node that the refusal names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic

import msgspec

from phalanx.controllers.controller import Evict, Patch, RecordEvent
from phalanx.dialects.bind_requests import FAILED_BINDS, failed_binds_document
from phalanx.errors import ClusterError, Conflict, Missing, Unreachable
from phalanx.live.cache import Picture
from phalanx.live.outbox import Outbox, Rank
from phalanx.live.writing import Writer, is_bound_to
from phalanx.model.bind_request import remember
from phalanx.model.kinds import POD, split_key
from phalanx.model.status import Status
from phalanx.model.task import FailedBind, GangKey, Task, TaskKey
from phalanx.session.decision import Decisions
from phalanx.state.gang_state import GangState
from phalanx.state.staleness import lacks
from phalanx.store.kube.client import Client
from phalanx.store.kube.mirror import Mirror

BINDING_ERROR = "BindingError"
GONE = ("is being deleted", "not found")
"""What a refusal says when the pod is no more; its gang gets another one."""


@dataclass(slots=True)
class Round:
    """The binds of one gang."""

    gang: GangKey | None
    left: int
    counts_unplaced: bool = False
    """As the session that decided it counts members without requests."""
    landed: list[tuple[Task, str]] = field(default_factory=list)
    refused: dict[TaskKey, tuple[Task, str, str]] = field(default_factory=dict)
    """Pods with the node that was asked for and why it was refused."""


@dataclass(frozen=True, slots=True)
class Hands:
    """What binding works with."""

    client: Client
    outbox: Outbox
    writer: Writer
    picture: Picture
    mirror: Mirror


class Binding:
    """Binds pods and takes care that gangs stay whole."""

    def __init__(self, hands: Hands, *, wake: Callable[[], None]) -> None:
        """Bind nothing yet; `wake` asks for another session."""
        self._hands, self._wake = hands, wake
        self.bound: list[Callable[[Task, str, float], None]] = []
        """Told of every pod that is bound, of its node, and how many seconds it took."""
        self.refused: list[Callable[[Task, ClusterError, float], None]] = []
        """Told of every bind that was refused, why, and after how many seconds."""

    def start(self, decisions: Decisions, left_out: frozenset[TaskKey] = frozenset()) -> None:
        """Send the binds of a session, those of one gang together."""
        by_gang: dict[str, list[tuple[Task, str]]] = {}
        for key, node in decisions.binds.items():
            task = self._hands.picture.cluster.state.task(key)
            if task is not None and key not in left_out:
                by_gang.setdefault(task.gang or key, []).append((task, node))
        for binds in by_gang.values():
            bound = Round(binds[0][0].gang, len(binds), decisions.counts_unplaced)
            for task, node in binds:
                self._hands.picture.expect(task, Status.BINDING, node)
                self._send(bound, task, node, decisions.annotations.get(task.key))

    def _send(self, bound: Round, task: Task, node: str, annotations: Mapping[str, str] | None) -> None:
        client, begun = self._hands.client, monotonic()

        async def send() -> None:
            await client.bind(task.namespace, task.name, node, uid=task.uid if task.knows_uid else "", annotations=annotations)

        def done(problem: ClusterError | None) -> None:
            if problem is None or (isinstance(problem, Conflict) and is_bound_to(problem, node)):
                bound.landed.append((task, node))
                for listener in self.bound:
                    listener(task, node, monotonic() - begun)
            elif isinstance(problem, Unreachable):
                return  # dropped: whoever leads now finishes this gang or rolls it back
            else:
                for refusal in self.refused:
                    refusal(task, problem, monotonic() - begun)
                self._note_refusal(bound, task, node, problem)
            bound.left -= 1
            if not bound.left and bound.refused:
                self._settle(bound)

        self._hands.outbox.put(Rank.BIND, (POD, task.namespace, task.name), send, done)

    # --- what was refused --------------------------------------------------------------------------------------------

    def _note_refusal(self, bound: Round, task: Task, node: str, problem: ClusterError) -> None:
        """Keep a pod that was refused where it was sent, until the whole gang has answers: no session tries it again before."""
        if isinstance(problem, Missing) or any(word in str(problem) for word in GONE):
            self._give_up(task)
        else:
            bound.refused[task.key] = (task, node, str(problem))

    def _give_up(self, task: Task) -> None:
        self._hands.picture.give_up(task, self._hands.mirror.find(POD, task.namespace, task.name))
        self._wake()

    def _settle(self, bound: Round) -> None:
        """Let refused pods remember where they were refused; if the gang is not whole without them, let the others go."""
        for task, node, reason in bound.refused.values():
            self._give_up(task)
            self._remember(task, node)
            self._tell(task, f"binding to node {node} was refused: {reason}")
        if bound.gang is None or not self._lacks(bound.gang, counts_unplaced=bound.counts_unplaced):
            return
        _, _, reason = next(iter(bound.refused.values()))
        first = next(iter(bound.refused))
        for task, node in bound.landed:
            self._take_back(task, node, f"rolled back: pod {split_key(first)[1]} of its gang could not be bound: {reason}")

    def _take_back(self, task: Task, node: str, text: str) -> None:
        self._tell(task, text)
        self._hands.picture.expect(task, Status.RELEASING, node)
        evict = Evict(task.namespace, task.name, task.uid, text)

        def done(problem: ClusterError | None) -> None:
            if problem is not None:
                self._give_up(task)
            self._wake()

        place = (POD, task.namespace, task.name)
        self._hands.outbox.put(Rank.EVICT, place, lambda: self._hands.writer.evict(evict), done, is_endless=True)

    def _lacks(self, key: GangKey, *, counts_unplaced: bool) -> bool:
        state = self._hands.picture.cluster.state
        gang, members = state.gang(key), ((task, -1) for task in state.members(key).values())
        return gang is not None and bool(lacks(GangState(gang, members, counts_unplaced=counts_unplaced)))

    def _remember(self, task: Task, node: str) -> None:
        """Write on a pod that a bind of it failed, so that sessions wait before they try the same again."""
        failure = FailedBind(node, 1, self._hands.mirror.now)
        text = msgspec.json.encode(failed_binds_document(remember(task.failed_binds, failure))).decode()
        self._hands.writer.leave(Patch(POD, task.namespace, task.name, {"metadata": {"annotations": {FAILED_BINDS: text}}}))
        known = self._hands.picture.cluster.state.task(task.key)
        if known is not None and known.uid == task.uid:
            self._hands.picture.cluster.state.put_task(replace(known, failed_binds=remember(known.failed_binds, failure)))

    def _tell(self, task: Task, text: str) -> None:
        pod = self._hands.mirror.find(POD, task.namespace, task.name)
        if pod is not None:
            self._hands.writer.leave(RecordEvent(pod, BINDING_ERROR, text, is_warning=True, is_expected=True))
