"""How much of a cluster was held over time: by everybody, and by gangs that had their minimum and single pods that ran.

That is what a simulation counts too, so that both can be compared. A gang is whole while its minimum runs (see gang_lives.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from phalanx.model.held_amount import held_amount
from phalanx.model.kinds import Document
from phalanx.model.quantity import parse_quantity
from phalanx.model.resources import CPU, GPU
from phalanx.model.task import GangKey, Task
from phalanx.model.task_status import ENDED

COUNTED = (GPU, CPU)
"""The resources that are counted; whoever reports takes the first one that the cluster has."""
Amounts = tuple[float, ...]
NOTHING: Amounts = (0.0,) * len(COUNTED)


@dataclass(frozen=True, slots=True)
class _Hold:
    amounts: Amounts
    gang: GangKey | None
    runs: bool
    is_given: bool


@dataclass(slots=True)
class Totals:
    """Amounts times seconds."""

    held: Amounts = NOTHING
    by_whole: Amounts = NOTHING
    """By gangs that were whole, and by single pods that ran."""
    offered: Amounts = NOTHING
    """By nodes that were ready."""
    given: Amounts = NOTHING
    """By single pods that ran and had their nodes before the recording began: nobody decides about them, in no world."""

    def of(self, resource: str) -> tuple[float, float, float, float]:
        """Return the four of one resource."""
        row = COUNTED.index(resource)
        return self.held[row], self.by_whole[row], self.offered[row], self.given[row]


@dataclass(slots=True)
class UseOverTime:
    """Adds up what is held from one moment to the next."""

    totals: Totals = field(default_factory=Totals)
    _now: Totals = field(default_factory=Totals)
    """What is so at this moment."""
    _pods: dict[str, _Hold] = field(default_factory=dict)
    _gangs: dict[GangKey, Amounts] = field(default_factory=dict)
    _nodes: dict[str, Amounts] = field(default_factory=dict)
    _whole: set[GangKey] = field(default_factory=set)

    def pass_time(self, seconds: float) -> None:
        """Everything was as it is now for so long."""
        now, sums = self._now, self.totals
        sums.held = _sum(sums.held, now.held, seconds)
        sums.by_whole = _sum(sums.by_whole, now.by_whole, seconds)
        sums.offered = _sum(sums.offered, now.offered, seconds)
        sums.given = _sum(sums.given, now.given, seconds)

    # --- pods --------------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Document, task: Task, gang: GangKey | None, *, is_given: bool = False) -> None:
        """A pod came or changed; one that is given had its node before the recording began."""
        phase, uid = (pod.get("status") or {}).get("phase"), pod["metadata"].get("uid", "")
        hold = _Hold(tuple(held_amount(task, resource) for resource in COUNTED), gang, phase == "Running", is_given)
        if self._pods.get(uid) == hold:
            return
        self.remove_pod(uid)
        if pod["spec"].get("nodeName") and phase not in ENDED:
            self._pods[uid] = hold
            self._count(hold, 1)

    def remove_pod(self, uid: str) -> None:
        """A pod holds nothing any more."""
        hold = self._pods.pop(uid, None)
        if hold is not None:
            self._count(hold, -1)

    def _count(self, hold: _Hold, times: int) -> None:
        self._now.held = _sum(self._now.held, hold.amounts, times)
        if hold.gang is not None:
            self._gangs[hold.gang] = _sum(self._gangs.get(hold.gang, NOTHING), hold.amounts, times)
        if hold.runs if hold.gang is None else hold.gang in self._whole:
            self._now.by_whole = _sum(self._now.by_whole, hold.amounts, times)
        if hold.gang is None and hold.runs and hold.is_given:
            self._now.given = _sum(self._now.given, hold.amounts, times)

    def set_whole(self, gang: GangKey, *, is_whole: bool) -> None:
        """A gang is whole from now on, or not."""
        if is_whole != (gang in self._whole):
            (self._whole.add if is_whole else self._whole.discard)(gang)
            self._now.by_whole = _sum(self._now.by_whole, self._gangs.get(gang, NOTHING), 1 if is_whole else -1)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def put_node(self, node: Document) -> None:
        """A node came or changed."""
        status = node.get("status") or {}
        conditions, offers = status.get("conditions") or (), status.get("allocatable") or {}
        is_ready = not any(item.get("type") == "Ready" and item.get("status") != "True" for item in conditions)
        self._set_node(node["metadata"]["name"], _offered(offers) if is_ready else NOTHING)

    def remove_node(self, name: str) -> None:
        """A node went."""
        self._set_node(name, NOTHING)

    def _set_node(self, name: str, amounts: Amounts) -> None:
        before, self._nodes[name] = self._nodes.get(name, NOTHING), amounts
        self._now.offered = _sum(_sum(self._now.offered, before, -1), amounts, 1)

    def begin_anew(self) -> None:
        """After a gap all that is there comes again."""
        self._now = Totals()
        self._pods, self._gangs, self._nodes, self._whole = {}, {}, {}, set()


def _sum(total: Amounts, level: Amounts, seconds: float) -> Amounts:
    return tuple(before + amount * seconds for before, amount in zip(total, level, strict=True))


def _offered(offers: Mapping[str, object]) -> Amounts:
    return tuple(float(parse_quantity(str(offers.get(resource, "0")))) for resource in COUNTED)
