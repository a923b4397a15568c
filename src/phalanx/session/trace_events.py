"""Every kind of step that a trace records, with its level and its sentence: queues, gangs, tasks and nodes.

Here, in `trace_operations.py` (statements) and in `trace_searches.py` (domains, victims, scenarios) sentences of the trace are
made, and nowhere else. The fields are keys of JSON too (`phalanx schedule -v 5 -o json`): names and numbers, and no objects of the
session.
"""

from collections.abc import Mapping, Sequence

import msgspec

from phalanx.model.listing import listed
from phalanx.model.moment import moment_text
from phalanx.model.resources import CPU, readable
from phalanx.session.trace import TraceEvent, TrialEvent
from phalanx.state.verdict import SearchScope

Amounts = Mapping[str, int]
"""Amounts in the engine's units."""


def amounts_text(amounts: Amounts) -> str:
    """Write amounts as a person would: ``cpu 4, memory 32Gi``."""
    return ", ".join(f"{name} {readable(name, amount)}" for name, amount in amounts.items()) or "nothing"


def _figures_text(figures: Mapping[str, float]) -> str:
    """Write the figures of a queue: cpu in thousandths, memory in bytes, everything else in units; KAI has -1 for no limit."""
    texts = {name: readable(name, each) if name in (CPU, "memory") else f"{each:g}" for name, each in figures.items()}
    return ", ".join(f"{name} {'unlimited' if figures[name] == -1 else text}" for name, text in texts.items()) or "nothing"


def scope_text(scope: SearchScope) -> str:
    """Name where nodes are looked for: ``HyperNode s0``, ``rack=r1``; empty for the whole cluster."""
    if scope.hypernode:
        return f"HyperNode {scope.hypernode}"
    return f"{scope.label}={scope.value}" if scope.label else ""


# --- the session and its queues --------------------------------------------------------------------------------------------


class ActionEntered(TraceEvent, frozen=True):
    """An action begins."""

    at_level, event, sentence = 5, "enter", "enter action {action}"
    action: str


class ActionLeft(TraceEvent, frozen=True):
    """An action is over."""

    at_level, event, sentence = 5, "leave", "leave action {action}"
    action: str


class HyperNodesSeen(TraceEvent, frozen=True):
    """The network domains of the cluster."""

    at_level, event, sentence = 3, "hypernodes", "{count} HyperNode(s) in {tiers} tier(s) are ready"
    count: int
    tiers: int


class HyperNodeSeen(TraceEvent, frozen=True):
    """One network domain."""

    at_level, event, sentence = 5, "hypernode", "HyperNode {hypernode} in session: tier {tier}, {nodes} node(s)"
    hypernode: str
    tier: int
    nodes: int


class QueueFigures(TraceEvent, frozen=True):
    """What a queue has and deserves when the session opens."""

    at_level, event = 4, "queue"
    queue: str
    figures: Mapping[str, Mapping[str, float]]

    @property
    def text(self) -> str:
        """The figures by kind."""
        parts = [f"{kind.replace('_', ' ')} {_figures_text(each)}" for kind, each in self.figures.items()]
        return f"queue {self.queue}: {'; '.join(parts)}"


class QueuesOrdered(TraceEvent, frozen=True):
    """The queues that `allocate` serves, in their order at the start."""

    at_level, event = 3, "queues"
    queues: Sequence[str]

    @property
    def text(self) -> str:
        """All queues by name."""
        return f"try to allocate for {len(self.queues)} queue(s): {', '.join(self.queues)}"


class QueueNext(TraceEvent, frozen=True):
    """A queue has its turn."""

    at_level, event, sentence = 4, "queue next", "queue {queue} is next in {action}: {count} gang(s) wait"
    action: str
    queue: str
    count: int


class QueueOverused(TraceEvent, frozen=True):
    """A queue is passed over because it has all it should have."""

    at_level, event, sentence = 3, "overused", "queue {queue} is overused, ignore it ({plugin}: {reason})"
    queue: str
    plugin: str
    reason: str


class NoPreemptors(TraceEvent, frozen=True):
    """No gang of a queue starves, or none is left that has not been tried."""

    at_level, event, sentence = 3, "no preemptors", "no preemptors in queue {queue}, or none left"
    queue: str


class PluginNote(TraceEvent, frozen=True):
    """Something that a plugin has to say."""

    at_level, event, sentence = 3, "plugin", "{plugin}: {message}"
    plugin: str
    message: str
    gang: str = ""


# --- gangs -----------------------------------------------------------------------------------------------------------------


class GangAdmitted(TraceEvent, frozen=True):
    """`enqueue` admits a gang."""

    at_level, event = 4, "enqueued"
    gang: str
    votes: Mapping[str, str]

    @property
    def text(self) -> str:
        """Who voted for it."""
        return f"gang {self.gang} is admitted{_votes_text(self.votes)}"


class GangNotAdmitted(TraceEvent, frozen=True):
    """`enqueue` does not admit a gang."""

    at_level, event = 4, "enqueue refused"
    gang: str
    reason: str
    requested: Amounts
    numbers: Mapping[str, object]
    votes: Mapping[str, str]

    @property
    def text(self) -> str:
        """The reason, what the gang asks for, and the numbers behind the reason."""
        names = [name for name in self.numbers if name in ("factor", "limit", "taken", "wanted")]  # the reason has the others
        parts = [f"asks for {amounts_text(self.requested)}", *(f"{name} {self._number(name)}" for name in names)]
        return f"gang {self.gang} is not admitted: {self.reason} ({', '.join(parts)}){_votes_text(self.votes)}"

    def _number(self, name: str) -> object:
        """Return a number, or an amount of the resource that is short."""
        number, resource = self.numbers[name], self.numbers.get("resource")
        return readable(str(resource), number) if isinstance(number, float) and resource else number


def _votes_text(votes: Mapping[str, str]) -> str:
    return f"; votes: {', '.join(f'{name} {vote}' for name, vote in votes.items())}" if votes else ""


class GangAdded(TraceEvent, frozen=True):
    """A gang stands in the line of its queue."""

    at_level, event = 4, "added"
    gang: str
    queue: str
    order: Mapping[str, str]

    @property
    def text(self) -> str:
        """Its place by what each plugin says; smaller comes first."""
        keys = ", ".join(f"{name} {key}" for name, key in self.order.items())
        return f"gang {self.gang} added to queue {self.queue}{f', order: {keys}' if keys else ''}"


class GangAhead(msgspec.Struct, frozen=True):
    """A gang that comes before another one of its queue, and the first plugin that tells them apart; none where age decides."""

    gang: str
    plugin: str
    part: int
    """The first part of their keys that differs, where keys have several."""
    its: float | str
    mine: float | str
    """The key of the gang that waits; the smaller one comes first."""


class GangsAhead(TraceEvent, frozen=True):
    """The gangs that come before one in its queue."""

    at_level, event = 4, "ahead"
    gang: str
    queue: str
    count: int
    ahead: Sequence[GangAhead]
    """The first of them."""

    @property
    def text(self) -> str:
        """How many there are, the first ones by name."""
        names = [each.gang for each in self.ahead]
        return f"{self.count} gang(s) of queue {self.queue} come before gang {self.gang}: {listed(names)}"


class GangPlace(msgspec.Struct, frozen=True):
    """A gang in the line of its queue, and the one right before it; none before the first."""

    gang: str
    ahead: GangAhead | None = None


class QueueLine(TraceEvent, frozen=True):
    """The gangs of a queue in the order in which an action takes them."""

    at_level, event = 4, "line"
    action: str
    queue: str
    line: Sequence[GangPlace]

    @property
    def gangs(self) -> tuple[str, ...]:
        """All that stand in line."""
        return tuple(place.gang for place in self.line)

    @property
    def text(self) -> str:
        """The first ones by name."""
        return f"{self.action} takes the gangs of queue {self.queue} in this order: {listed(self.gangs)}"


class GangSkipped(TraceEvent, frozen=True):
    """An action passes a gang over."""

    at_level, event, sentence = 4, "skipped", "gang {gang} skipped by {action}: {reason}"
    gang: str
    action: str
    reason: str


class GangTried(TraceEvent, frozen=True):
    """A gang has its turn."""

    at_level, event, sentence = 3, "gang", "try gang {gang} of queue {queue}"
    gang: str
    queue: str
    bound: int = 0
    """How many pods were placed before it in this session: the first so many of the decisions."""


class StartReserved(TraceEvent, frozen=True):
    """A gang that found no room has a start in time, or nodes that are drained for it."""

    at_level, event = 3, "reserve"
    gang: str
    start: float
    nodes: Sequence[str]
    domain: str = ""
    drained: bool = False

    @property
    def text(self) -> str:
        """When and where."""
        where = f"{self.domain}, " if self.domain else ""
        what = "are drained" if self.drained else f"are reserved from {moment_text(int(self.start))} on"
        return f"for gang {self.gang} {where}{listed(self.nodes)} {what}"


class GangHeldBack(TraceEvent, frozen=True):
    """A gang would have room if none were kept for another one."""

    at_level, event, sentence = 3, "held", "gang {gang} is held back: the room is kept for gang {holder}"
    gang: str
    holder: str
    start: float


class GangOverdue(TraceEvent, frozen=True):
    """A gang runs longer than it may, and is evicted."""

    at_level, event, sentence = 3, "overdue", "{reason}"
    gang: str
    reason: str


class GangStarving(TraceEvent, frozen=True):
    """Whether a gang may take room from others."""

    at_level, event = 4, "starving"
    gang: str
    starves: bool
    plugin: str = ""

    @property
    def text(self) -> str:
        """The answer, and the plugin that says no."""
        said = f" ({self.plugin})" if self.plugin else ""
        return f"gang {self.gang} {'starves' if self.starves else 'does not starve'}{said}"


class GangStale(TraceEvent, frozen=True):
    """A gang runs below a minimum, and what `heal` does about it."""

    at_level, event, sentence = 3, "stale", "gang {gang} is stale, {state}: {outcome}"
    gang: str
    state: str
    outcome: str


class GangRolledBack(TraceEvent, frozen=True):
    """A gang was bound to a node without room for it, and `relieve` takes it back."""

    at_level, event, sentence = 3, "rolled back", "gang {gang} is rolled back: {state}"
    gang: str
    state: str


class GangReady(TraceEvent, frozen=True):
    """A gang has its minimum."""

    at_level, event, sentence = 3, "ready", "gang {gang} is ready"
    gang: str


class GangPipelined(TraceEvent, frozen=True):
    """A gang waits for others to leave."""

    at_level, event, sentence = 3, "pipelined", "gang {gang}: waits, and its places are kept from others"
    gang: str


class GangNominated(TraceEvent, frozen=True):
    """A gang keeps the places that an earlier session found."""

    at_level, event, sentence = 3, "nominated", "gang {gang}: its tasks keep their nominated nodes"
    gang: str


class GangNotReady(TraceEvent, frozen=True):
    """A gang, or a part of it, found too few places; none is left to it."""

    at_level, event = 3, "not ready"
    gang: str
    where: str
    reason: str
    error: str
    part: str = ""
    """The sub-group that it is about; empty for the gang itself."""
    placed: int = 0
    """How many tasks had a node before all of them lost it again."""
    needed: int = 0

    @property
    def text(self) -> str:
        """How far it got, and what stopped the last task."""
        where, error = f" in {self.where}" if self.where else "", f"; {self.error}" if self.error else ""
        return f"gang {self.gang} gets nothing{where}: {self.reason}{error}"


# --- tasks and nodes -------------------------------------------------------------------------------------------------------


class TasksTried(TrialEvent, frozen=True):
    """Some equal tasks look for nodes."""

    at_level, event, sentence = 3, "task", "try {count} task(s) like {task} on {nodes} node(s)"
    gang: str
    task: str
    count: int
    nodes: int


class TaskRefused(TraceEvent, frozen=True):
    """A prefilter refuses a task whatever the node."""

    at_level, event, sentence = 3, "prefilter", "task {task} is refused on every node by {plugin}: {reason}"
    gang: str
    task: str
    plugin: str
    reason: str


class TaskWithoutNode(TrialEvent, frozen=True):
    """No node takes a task."""

    at_level, event, sentence = 3, "no node", "task {task}: {reason}"
    gang: str
    task: str
    reason: str


class TaskSkipped(TraceEvent, frozen=True):
    """A task is not tried because one like it failed."""

    at_level, event, sentence = 5, "skipped", "{reason}"
    gang: str
    task: str
    reason: str


class TaskWithoutQuota(TraceEvent, frozen=True):
    """The queue has no room for a task."""

    at_level, event, sentence = 4, "no quota", "task {task}: {reason} ({plugin})"
    gang: str
    task: str
    plugin: str
    reason: str


class NodesFitting(TraceEvent, frozen=True):
    """How many nodes a task can go to."""

    at_level, event, sentence = 5, "filters", "{count} node(s) fit {task}"
    gang: str
    task: str
    count: int
    refused: Mapping[str, int]


class NodesRefused(TraceEvent, frozen=True):
    """The nodes that a filter refuses."""

    at_level, event = 5, "refused"
    gang: str
    task: str
    reason: str
    nodes: Sequence[str]

    @property
    def text(self) -> str:
        """The reason and the nodes."""
        return f"{len(self.nodes)} node(s) refuse {self.task}, {self.reason}: {listed(self.nodes)}"


class NodeScores(TraceEvent, frozen=True):
    """The best nodes of a task, with what each plugin gives them."""

    at_level, event = 5, "scores"
    gang: str
    task: str
    scores: Mapping[str, float]
    plugins: Mapping[str, Mapping[str, float]]
    """Node, plugin, score."""

    @property
    def text(self) -> str:
        """Each node with its total and its parts."""
        return f"best scores for {self.task}: {', '.join(map(self._node_text, self.scores)) or 'none'}"

    def _node_text(self, node: str) -> str:
        parts = ", ".join(f"{plugin} {score:g}" for plugin, score in self.plugins.get(node, {}).items())
        return f"{node} {self.scores[node]:g}{f' ({parts})' if parts else ''}"
