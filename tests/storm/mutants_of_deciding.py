"""Planted bugs of sessions: minima, limits, fences of nodes, victims, and healing."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from phalanx.actions import gang_eviction, heal
from phalanx.actions.gang_places import Places
from phalanx.actions.heal import HealAction
from phalanx.actions.needed_tasks import tasks_needed
from phalanx.actions.victim_search import VictimSearch
from phalanx.model.resources import ResourceSpace
from phalanx.model.shape import Shape
from phalanx.model.task import Task
from phalanx.model.task_status import Status
from phalanx.placement import Mask
from phalanx.plugins import predicates
from phalanx.plugins.capacity import plugin as capacity
from phalanx.plugins.gang import GangPlugin
from phalanx.scheduling import sessions
from phalanx.scheduling.cache import AssumedPod
from phalanx.scheduling.sessions import Sessions
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.node_books import NodeBooks
from phalanx.state.node_table import NodeTable
from phalanx.state.staleness import lacks
from phalanx.state.verdict import YES
from tests.storm.mutants import planted


@planted("gang minimum ignored", breaks=("half-started", "not at rest", "could start"))
def _minimum_ignored(patch: pytest.MonkeyPatch) -> None:
    """A gang starts with as many members as find room."""
    patch.setattr(GangPlugin, "gang_ready", lambda self, session, gang: YES)


@planted("queue limit ignored", breaks="queue limit")
def _limit_ignored(patch: pytest.MonkeyPatch) -> None:
    """A queue takes what it can get, whatever its capability says."""
    bounded = vars(capacity)["bounded"]

    def unbounded(amounts: Mapping[str, int], space: ResourceSpace, **more: bool) -> Any:
        return bounded({}, space, **more)

    patch.setattr(capacity, "bounded", unbounded)


@planted("taints ignored", breaks="unfit node", needs=("taint",))
def _taints_ignored(patch: pytest.MonkeyPatch) -> None:
    """Pods go to nodes whose taints they do not tolerate."""
    patch.setattr(predicates, "closed_by_taint", _open)


@planted("cordon ignored", breaks="unfit node", needs=("cordon", "drain"))
def _cordon_ignored(patch: pytest.MonkeyPatch) -> None:
    """Pods go to nodes that are cordoned."""
    patch.setattr(predicates, "closed_by_cordon", _open)


def _open(shape: Shape, table: NodeTable) -> Mask:
    return np.zeros(len(table), dtype=np.bool_)


@planted("leaving pods count as gone", breaks="over-commitment")
def _leaving_are_gone(patch: pytest.MonkeyPatch) -> None:
    """The room of a pod is given away while it still leaves."""
    count = NodeBooks._count

    def counted(self: NodeBooks, task: Task, amount: int, number: int) -> None:
        if task.status is not Status.RELEASING:
            count(self, task, amount, number)

    patch.setattr(NodeBooks, "_count", counted)


@planted("victims without a place", breaks="evicted in vain")
def _victims_without_place(patch: pytest.MonkeyPatch) -> None:
    """Victims go, and nobody looks whether the gang has a place then."""

    def carry_out(self: VictimSearch, places: Places) -> bool:
        for eviction in self._evicted.values():
            eviction.commit()
        self._evicted = {}
        return True

    patch.setattr(VictimSearch, "_carry_out", carry_out)


@planted("heal removed", breaks=("half-started", "could start"))
def _heal_removed(patch: pytest.MonkeyPatch) -> None:
    """What is left of a gang that lost members stays for ever."""
    patch.setattr(HealAction, "run", lambda self, session: None)


@planted("D1: heal kills gangs that grew", breaks=("killed a healthy gang", "untrue status"), needs=("scale",))
def _heal_kills(patch: pytest.MonkeyPatch) -> None:
    """A gang is measured by what its group needs now: an owner that scales it up has it killed."""
    patch.setattr(heal, "stale_parts", lacks)


@planted("evictions without those who come first", breaks="evicted in vain", is_rare=True)
def _evictions_without_the_rest(patch: pytest.MonkeyPatch) -> None:
    """Gangs that are left out of sessions are left out of those too that evict somebody."""
    patch.setattr(sessions, "is_for_all", lambda parts: False)
    patch.setattr(AssumedPod, "applied", _without_nomination)  # which came later, and helps against this too


def _without_nomination(self: AssumedPod, task: Task) -> Task:
    return task if self.is_nominated else replace(task, status=self.status, node=self.node)


@planted("room is searched for members whose part cannot be whole", breaks="failed", is_rare=True)
def _hopeless_members_searched(patch: pytest.MonkeyPatch) -> None:
    """Where no member can make its sub-group whole, room is made for none of them, which fails."""

    def choices(session: Session, gang: GangState, waiting: list[TaskState]) -> Iterator[list[TaskState]]:
        first = tasks_needed(gang, waiting)
        if first:
            yield first
        if len(first) < len(waiting):
            yield from gang_eviction._other_member_choices(session, gang, waiting, len(first))

    patch.setattr(gang_eviction, "member_choices", choices)


@planted("stale gangs of pods alone are new in every session", breaks="half-started", is_rare=True)
def _stale_alone_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Nobody remembers since when a gang is stale that no object stands for, so that its grace never ends."""
    patch.setattr(Sessions, "_stale_alone", lambda self, whole, snapshot, parts: {})
