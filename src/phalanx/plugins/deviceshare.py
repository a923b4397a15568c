"""Shared GPUs: a task goes where single cards have what it asks for, not only the node as a whole.

What cards are and how they are chosen is in `kubernetes/gpu_cards.py`. Here is the book of one session: the cards of every node,
who has which, and how many tasks of a class each node can still take. Nodes whose cards are in the same state share one plan.
"""

from dataclasses import dataclass, field
from math import floor

import numpy as np
from numpy.typing import NDArray

from phalanx.errors import ConfigError
from phalanx.kubernetes.gpu_cards import (
    CardGrant,
    CardRequest,
    Cards,
    NodeCards,
    SharingKind,
    annotations_for,
    card_request_of,
    cards_of,
    granted_to,
    take,
)
from phalanx.model.shape import Shape
from phalanx.model.task import TaskKey
from phalanx.placement import NO_LIMIT, Counts, Index, Scores
from phalanx.session.arguments import Arguments
from phalanx.session.node_answers import Layer, Site
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind

NO_CARDS = "node(s) had no GPUs to share"
OTHER_MODE = "node(s) share their GPUs in another mode"
TOO_FEW = "node(s) had too few GPUs with enough left"
BINPACK, SPREAD = "binpack", "spread"
FULL = 100.0

State = tuple[Cards, str]
"""The cards of a node and the mode in which they are shared."""


@dataclass(slots=True)
class _Plan:
    """What nodes in one state give to tasks of one class, one after the other."""

    grants: list[CardGrant] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    refusal: str = TOO_FEW


class DeviceSharePlugin:
    """Shares GPU cards between tasks: by memory, by number, or as vGPUs."""

    name = "deviceshare"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read how cards are shared, and whether full or empty cards score higher."""
        settings = Arguments(self.name, policy.arguments)
        kinds: dict[str, SharingKind] = {"GPUSharingEnable": "memory", "GPUNumberEnable": "number", "VGPUEnable": "vgpu"}
        on = [key for key in kinds if settings.switch(f"{self.name}.{key}", False)]
        settings.switch(f"{self.name}.NodeLockEnable", False)
        self._policy = settings.text(f"{self.name}.SchedulePolicy", "")
        self._weight = settings.integer(f"{self.name}.ScheduleWeight", 0)
        settings.done()
        if len(on) > 1:
            raise ConfigError(f"plugin {self.name!r}: {self.name}.{on[0]} and {self.name}.{on[1]} exclude each other; keep one")
        if self._policy not in ("", BINPACK, SPREAD):
            raise ConfigError(f"plugin {self.name!r}, argument '{self.name}.SchedulePolicy': write {BINPACK!r} or {SPREAD!r}")
        self._kind = kinds[on[0]] if on else None
        self._requests: dict[Shape, CardRequest | None] = {}
        self._plans: dict[CardRequest, list[_Plan]] = {}

    def open(self, session: Session) -> None:
        """Read the cards of every node and who has which."""
        nodes = session.snapshot.nodes
        self._most_pods = int(nodes.max_pods.max(initial=0))
        self._code_by_state: dict[State, int] = {}
        self._states: list[State] = []
        self._held: dict[TaskKey, CardGrant] = {}
        self._cards = [cards_of(node, self._kind) if self._kind else NodeCards() for node in nodes.nodes]
        codes = [self._code(self._initial(session, number)) for number in range(len(nodes))]
        self._codes: NDArray[np.int64] = np.array(codes, dtype=np.int64)

    def _initial(self, session: Session, number: int) -> State:
        node_cards = self._cards[number]
        cards = node_cards.cards
        for task in session.snapshot.on_node.get(session.node_name(number), {}).values() if cards and self._kind else ():
            assert self._kind is not None
            grant = granted_to(task.annotations, task.shape, node_cards, self._kind)
            self._held[task.key] = grant
            cards = take(cards, (share for shares in grant for share in shares))
        return cards, node_cards.mode

    def _code(self, state: State) -> int:
        if state not in self._code_by_state:
            self._code_by_state[state] = len(self._states)
            self._states.append(state)
        return self._code_by_state[state]

    def _request(self, shape: Shape) -> CardRequest | None:
        if shape not in self._requests:
            self._requests[shape] = card_request_of(shape, self._kind) if self._kind else None
        return self._requests[shape]

    def _plans_for(self, request: CardRequest) -> list[_Plan]:
        """Return the plan for each state, making only new ones."""
        known = self._plans.setdefault(request, [])
        known.extend(self._make_plan(request, state) for state in self._states[len(known) :])
        return known

    def _make_plan(self, request: CardRequest, state: State) -> _Plan:
        cards, mode = state
        if not cards or mode == "mig":
            return _Plan(refusal=NO_CARDS)
        if request.mode and request.mode != mode:
            return _Plan(refusal=OTHER_MODE)
        plan = _Plan()
        granted = request.grant(cards)
        while granted is not None and len(plan.grants) < self._most_pods:
            grant, cards = granted
            plan.grants.append(grant)
            plan.scores.append(self._score(grant, cards))
            granted = request.grant(cards)
        return plan

    def _score(self, grant: CardGrant, cards: Cards) -> float:
        """Score the cards of a grant once they are taken: how full they are, or whether they were idle."""
        total = 0.0
        for share in (share for shares in grant for share in shares):
            card = cards[share.card]
            if self._policy == BINPACK:
                total += FULL * card.memory_taken / card.memory if card.memory else 0.0
            elif self._policy == SPREAD:
                total += FULL if card.takers == 1 else 0.0
        return float(floor(total + 0.5) * self._weight)

    def screen(self, session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Refuse nodes whose cards have too little left."""
        request = self._request(shape)
        if request is None:
            return []
        plans, codes = self._plans_for(request), self._codes[nodes]
        refusals = np.array(["" if plan.grants else plan.refusal for plan in plans] or [""])[codes]
        return [
            Layer(refusals == reason, reason, is_final=reason != TOO_FEW)
            for reason in (NO_CARDS, OTHER_MODE, TOO_FEW)
            if (refusals == reason).any()
        ]

    def node_room(self, session: Session, shape: Shape, nodes: Index | slice) -> Counts:
        """Return how many tasks of the class the cards of each node can take."""
        request = self._request(shape)
        if request is None:
            return np.full(self._codes[nodes].shape, NO_LIMIT, dtype=np.int64)
        rooms = np.array([len(plan.grants) for plan in self._plans_for(request)] or [0], dtype=np.int64)
        return rooms[self._codes[nodes]]

    def node_scores(self, session: Session, shape: Shape, site: Site) -> Scores:
        """Return the score of the cards that the next task would get."""
        codes, request = self._codes[site.nodes], self._request(shape)
        if request is None or not self._policy:
            return np.zeros(codes.shape)
        more = np.broadcast_to(np.maximum(site.extra, site.extra_booked), codes.shape)
        plans, span = self._plans_for(request), int(more.max(initial=0)) + 1
        pairs, places = np.unique(codes * span + more, return_inverse=True)
        scores = [plans[pair // span].scores[pair % span :][:1] or [0.0] for pair in pairs.tolist()]
        return np.array([score for (score,) in scores], dtype=np.float64)[places]

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Take cards for allocated and pipelined tasks, give them back for evicted ones; the other way round when undone."""
        request, evicts = self._request(operation.shape), operation.kind is OperationKind.EVICT
        if request is None:
            return
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            key = task.task.key
            if not evicts and not undone:
                self._held[key] = next(iter(self._plans_for(request)[self._codes[node]].grants), ())
            self._change(node, self._held.get(key, ()), -1 if evicts != undone else 1)
            if not evicts and undone:
                del self._held[key]

    def _change(self, node: int, grant: CardGrant, sign: int) -> None:
        cards, mode = self._states[self._codes[node]]
        self._codes[node] = self._code((take(cards, (share for shares in grant for share in shares), sign), mode))

    def close(self, session: Session) -> None:
        """Say which cards each bound task got."""
        numbers, decisions = session.snapshot.nodes.number_by_name, session.decisions
        for key, node in decisions.binds.items():
            grant = self._held.get(key)
            if grant and self._kind is not None:
                node_cards = self._cards[numbers[node]]
                texts = annotations_for(grant, node_cards, node, self._kind, session.now)
                decisions.annotations[key] = {**decisions.annotations.get(key, {}), **texts}
