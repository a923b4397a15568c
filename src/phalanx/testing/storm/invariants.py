"""What holds of a cluster that Phalanx schedules, told from its objects alone: the same for storms and for a real API server.

At every moment no node holds more than it offers, and no bind takes a queue beyond its limit. At rest, once faults have stopped and
time has passed: no gang is partly bound, nothing that could start waits, whoever waits says why, nobody was evicted in vain, every
status is what a recount gives, and controllers have nothing to do.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from phalanx.controllers.controller import Controller, Patch, RecordEvent, Try, Write
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.model.conditions import POD_SCHEDULED
from phalanx.model.kinds import NODE, POD, Document, kind_of, object_key
from phalanx.model.resources import amount_of, read_resources
from phalanx.model.task_status import ENDED
from phalanx.scheduling.gates import gated_gangs
from phalanx.scheduling.shards import decide
from phalanx.scheduling.status_writer import StatusWriter
from phalanx.session.cycle import Decider, Profile
from phalanx.session.shard_decisions import as_one
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot
from phalanx.state.staleness import stale_parts
from phalanx.store.kube.mirror import Mirror
from phalanx.store.patches import MERGE, STRATEGIC, patched

PASSING = frozenset({"lastTransitionTime", "lastProbeTime", "transitionID", "lastUpdateTime"})
"""Parts of conditions that say when, and not what."""
Amounts = Mapping[str, float]
_Change = tuple[str, Any, Any]  # Any: JSON
"""A path in a document, and what stands there before and after."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not be so."""

    invariant: str
    text: str

    def __str__(self) -> str:
        """Return it as a line."""
        return f"{self.invariant}: {self.text}"


# --- at every moment -----------------------------------------------------------------------------------------------------


def requests_of(pod: Document) -> Amounts:
    """Return what a pod takes from its node; init containers and overhead are left to those who schedule them."""
    found: dict[str, float] = defaultdict(float)
    for container in pod["spec"].get("containers") or ():
        for name, amount in read_resources((container.get("resources") or {}).get("requests"), where="requests").items():
            found[name] += amount
    found["pods"] += amount_of("pods", 1)
    return found


def holds_room(pod: Document) -> bool:
    """Tell whether a pod takes room of a node."""
    return bool(pod["spec"].get("nodeName")) and (pod.get("status") or {}).get("phase") not in ENDED


def has_place(pod: Document) -> bool:
    """Tell whether a pod takes room of a node and is not about to leave it."""
    return holds_room(pod) and "deletionTimestamp" not in pod["metadata"]


def excess(node: Document, pods: Iterable[Document]) -> Iterator[str]:
    """Yield the resources of which the pods of a node take more than it offers."""
    return _beyond(pods, read_resources((node.get("status") or {}).get("allocatable"), where="allocatable"), otherwise=0.0)


def _beyond(pods: Iterable[Document], limits: Amounts, *, otherwise: float) -> Iterator[str]:
    """Yield the resources of which pods take more than they may: `otherwise` where no limit is named."""
    taken: dict[str, float] = defaultdict(float)
    for pod in pods:
        for name, amount in requests_of(pod).items():
            taken[name] += amount
    for name, amount in taken.items():
        if amount > (limit := limits.get(name, otherwise)) + 1e-6:
            yield f"{amount:g} of {limit:g} {name}"


def over_commitment(documents: Iterable[Document]) -> list[Violation]:
    """Return the nodes that hold more than they offer."""
    nodes, pods = {}, defaultdict[str, list[Document]](list)
    for document in documents:
        kind = kind_of(document)
        if kind is NODE:
            nodes[document["metadata"]["name"]] = document
        elif kind is POD and holds_room(document):
            pods[document["spec"]["nodeName"]].append(document)
    return [
        Violation("over-commitment", f"node {name} holds {', '.join(found)}: {', '.join(map(object_key, pods[name]))}")
        for name, node in nodes.items()
        if (found := list(excess(node, pods[name])))
    ]


@dataclass(slots=True)
class QueueUse:
    """What the pods of each queue hold, as whoever watches pods tells it."""

    limits: Mapping[str, Amounts]
    """What the pods of a queue may hold together; queues and resources that are not named have no limit."""
    pods: dict[str, dict[str, Document]] = field(default_factory=lambda: defaultdict(dict))
    """Those that have a place, by queue and uid."""

    def note(self, queue: str, pod: Document, *, is_there: bool) -> None:
        """Take in what has become of a pod."""
        uid = pod["metadata"]["uid"]
        if is_there and has_place(pod):
            self.pods[queue][uid] = pod
        else:
            self.pods[queue].pop(uid, None)

    def beyond(self, queue: str) -> Violation | None:
        """Return what is wrong if a queue holds too much: ask right after a bind, for limits may be lowered later."""
        found = list(_beyond(self.pods[queue].values(), self.limits.get(queue, {}), otherwise=inf))
        names = ", ".join(sorted(str(pod["metadata"]["name"]) for pod in self.pods[queue].values()))
        return Violation("queue limit", f"pods of queue {queue} hold {', '.join(found)}: {names}") if found else None


def evicted_in_vain(
    evictions: Iterable[tuple[float, str, str]], is_excused: Callable[[str, float], bool]
) -> Iterator[Violation]:  # fmt: skip
    """Yield the evictions that served nobody; each is a moment, the pod that went, and for whom.

    They have to be of calm weather. `is_excused` tells of somebody whether he had his place since a moment, or lost it rightly.
    """
    for moment, pod, preemptor in evictions:
        if preemptor and not is_excused(preemptor, moment):
            yield Violation("evicted in vain", f"pod {pod} for {preemptor}, which waits")


# --- at rest -------------------------------------------------------------------------------------------------------------


class Rest:
    """The objects of a cluster at rest, read anew, and what a session would decide on them."""

    def __init__(
        self, documents: Iterable[Document], profile: Profile, now: float, schedulers: frozenset[str],
        controllers: Sequence[Controller] = (), gates: Profile | None = None,
    ) -> None:  # fmt: skip
        """Read the objects and hold a dry session; `controllers` are asked what they would write, `gates` what they would plan."""
        self._controllers, self._gates = controllers, gates
        self.documents = {(kind_of(item), object_key(item)): item for item in documents}
        self._schedulers, self._now = schedulers, now
        self.cluster = ObjectCluster(attach=profile.policy.attach_rules, schedulers=schedulers)
        for document in self.documents.values():
            try:
                self.cluster.put(document)
            except SnapshotError:
                continue  # it is left out there too
        self.snapshot = self.cluster.snapshot(now)
        self.parts = decide(self.snapshot, profile, run=Decider(isolates=True).decide)
        self.whole, self.decisions = as_one(self.snapshot, self.parts)

    def violations(self) -> list[Violation]:
        """Return everything that must not be so at rest."""
        checks = (self._half_started, self._could_start, self._without_reason, self._untrue, self._undone, self._faults)
        return [*over_commitment(self.documents.values()), *(found for check in checks for found in check())]

    def _half_started(self) -> Iterator[Violation]:
        for gang in _gangs(self.snapshot):
            for lack in stale_parts(gang):
                part = f" of its {lack.part}" if lack.part else ""
                yield Violation("half-started", f"gang {gang.gang.key}: {lack.have} of {lack.minimum} members{part} are there")

    def _could_start(self) -> Iterator[Violation]:
        for key, node in self.decisions.binds.items():
            yield Violation("could start", f"pod {key} waits, and a session binds it to {node}")
        for key, eviction in self.decisions.evictions.items():
            yield Violation("could start", f"a session evicts pod {key}: {eviction.action} for {eviction.preemptor}")
        held = gated_gangs(self._gates, list(self.documents.values()), self._now) if self._gates is not None else None
        for key, node in held.node_by_pod.items() if held is not None else ():
            yield Violation("could start", f"pod {key} is held back by our gate, and a session behind it plans it for {node}")

    def _without_reason(self) -> Iterator[Violation]:
        """Whoever waits for one of us says why; behind a gate the API server does."""
        for (kind, key), pod in self.documents.items():
            if kind is not POD or pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                continue
            is_ours = not self._schedulers or pod["spec"].get("schedulerName") in self._schedulers
            is_waiting = (pod.get("status") or {}).get("phase", "Pending") == "Pending" and not pod["spec"].get("schedulingGates")
            if is_ours and is_waiting and not any(_says_why(item) for item in (pod.get("status") or {}).get("conditions") or ()):
                yield Violation("no reason", f"pod {key} waits and does not say why")

    def _untrue(self) -> Iterator[Violation]:
        problems = list[Exception]()
        for what, (path, before, after) in self._changes(problems):
            yield Violation("untrue status", f"{what}: {path} is {before!r}, a recount gives {after!r}")
        yield from (Violation("failed", f"a status cannot be made: {problem!r}") for problem in problems)

    def old_messages(self) -> frozenset[str]:
        """Return the objects whose status is right but for a message, which other numbers alone replace only after a while."""
        changes = self._changes([])
        return frozenset(what for what, (_, before, after) in changes if _without_messages(before) == _without_messages(after))

    def _changes(self, problems: list[Exception]) -> Iterator[tuple[str, "_Change"]]:
        """Yield what a writer changes that knows of nothing written before: it must have nothing to change."""
        mirror = self._mirror()
        for part in self.parts:
            for write in StatusWriter(mirror, problems.append).writes(part.snapshot, part.decisions):
                if isinstance(write, Patch) and write.kind is not POD:
                    yield from self._changes_of(write)

    def _changes_of(self, write: Patch) -> Iterator[tuple[str, "_Change"]]:
        key = f"{write.namespace}/{write.name}" if write.namespace else write.name
        document = self.documents.get((write.kind, key))
        if document is None:
            return
        new = patched(document, write.patch, STRATEGIC if write.is_by_type else MERGE)
        yield from ((f"{write.kind.kind} {key}", change) for change in _differences(_what(document), _what(new)))

    def _mirror(self) -> Mirror:
        mirror = Mirror(lambda: self._now)
        for (kind, _), document in self.documents.items():
            mirror.put(kind, {**document, "metadata": dict(document["metadata"])})
        return mirror

    def _undone(self) -> Iterator[Violation]:
        """A controller that is asked about everything anew must have nothing to write; an event may be recorded once more."""
        mirror = self._mirror()
        for controller in self._controllers:
            watched = ((kind, item) for (kind, _), item in self.documents.items() if kind in controller.watches)
            for key in dict.fromkeys(key for kind, item in watched for key in controller.concerns(mirror, kind, item)):
                changes = [write for write in controller.reconcile(mirror, key).writes if _changes(write)]
                yield from (Violation("left undone", f"{controller.name} {key.namespace}/{key.name}: {write}") for write in changes)

    def _faults(self) -> Iterator[Violation]:
        for key, fault in self.decisions.faults.items():
            yield Violation("failed", f"a session fails at gang {key}: {fault.sentence}")


def _changes(write: Write) -> bool:
    return not isinstance(write.write if isinstance(write, Try) else write, RecordEvent)


def _gangs(snapshot: Snapshot) -> Iterator[GangState]:
    for key, gang in snapshot.gangs.items():
        yield GangState(gang, ((task, -1) for task in snapshot.members_of(key).values()))


def _says_why(condition: Document) -> bool:
    return (condition.get("type"), condition.get("status")) == (POD_SCHEDULED, "False") and bool(condition.get("message"))


def _what(value: Any) -> Any:  # Any: JSON
    """Return a document without the moments in it."""
    if isinstance(value, Mapping):
        return {key: _what(item) for key, item in value.items() if key not in PASSING}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_what(item) for item in value]
    return value


def _without_messages(value: Any) -> Any:  # Any: JSON
    if isinstance(value, Mapping):
        return {key: _without_messages(item) for key, item in value.items() if key != "message"}
    return [_without_messages(item) for item in value] if isinstance(value, list) else value


def _differences(before: Any, after: Any, path: str = "") -> Iterator["_Change"]:  # Any: JSON
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            yield from _differences(before.get(key), after.get(key), f"{path}.{key}".lstrip("."))
    elif before != after:
        yield path, before, after
