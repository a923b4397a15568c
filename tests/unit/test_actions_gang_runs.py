"""Gangs of one class that follow each other in a queue, placed as one run."""

from itertools import chain
from typing import Any, ClassVar

import pytest

from phalanx.actions.gang_runs import GangRuns
from phalanx.config.builtin import CATALOGUE
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.queue import Queue
from phalanx.model.shape import Shape
from phalanx.session.cycle import Catalogue, run_cycle
from phalanx.session.node_view import NodeView
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.session.questions import PluginFactory
from phalanx.session.session import Session
from phalanx.session.statement import Operation
from phalanx.state.verdict import YES, Verdict
from phalanx.testing import build
from phalanx.testing.build import Document


class FourTasks:
    """Lets each queue have four tasks in a session."""

    name = "four"

    def __init__(self, policy: PluginPolicy) -> None:
        self.left = 4

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        self.left += len(operation.tasks) if undone else -len(operation.tasks)

    def queue_overused(self, session: Session, queue: Queue) -> Verdict:
        return YES if self.left > 0 else Verdict.refuse(self.name, "Enough")


class FourTasksAhead(FourTasks):
    """Says so before it happens."""

    def tasks_until_overused(self, session: Session, queue: Queue, shape: Shape) -> int:
        return self.left


def runs_of(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Return a list that fills with the sizes of the gangs of each run."""
    found: list[list[int]] = []
    bind_run = Session.bind_run

    def noted(session: Session, gangs: Any, nodes: Any) -> None:
        found.append([len(tasks) for tasks in gangs])
        bind_run(session, gangs, nodes)

    monkeypatch.setattr(Session, "bind_run", noted)
    return found


def bound(plugins: list[str], *gangs: list[Document], extra: PluginFactory | None = None) -> list[str]:
    """Return the names of the pods that one cycle binds, in order, on two nodes of 8 CPUs."""
    catalogue = Catalogue(CATALOGUE.actions, {**CATALOGUE.plugins, **({"extra": extra} if extra else {})})
    nodes = [build.node(name, cpu=8) for name in ("n1", "n2")]
    cluster = ObjectCluster()
    for document in (build.queue("default"), build.queue("other"), *nodes, *chain.from_iterable(gangs)):
        assert cluster.put(document)
    policy = Policy(("enqueue", "allocate"), (tuple(map(PluginPolicy, plugins)),))
    return [key.split("/")[1] for key in run_cycle(cluster.snapshot(0.0), policy, catalogue).binds]


def gangs_of(*sizes: int, **settings: Any) -> list[list[Document]]:
    return [build.gang(f"gang-{number}", tasks=size, cpu=1, **settings) for number, size in enumerate(sizes)]


def test_a_run_ends_where_the_queue_is_overused(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = runs_of(monkeypatch)
    assert len(bound(["gang", "extra"], *gangs_of(1, 2, 2, 1, 1), extra=FourTasksAhead)) == 5
    assert runs == [[1, 2, 2]]


def test_who_does_not_say_when_a_queue_is_overused_is_asked_after_each_gang(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = runs_of(monkeypatch)
    assert len(bound(["gang", "extra"], *gangs_of(1, 2, 2, 1, 1), extra=FourTasks)) == 5
    assert runs == [[1], [2], [2]]


def test_gangs_of_two_queues_share_the_look_at_nodes_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, looks, place = runs_of(monkeypatch), list[int](), NodeView.place

    def looked(view: NodeView, count: int, **more: Any) -> tuple[list[int], list[int]]:
        looks.append(count)
        return place(view, count, **more)

    monkeypatch.setattr(NodeView, "place", looked)
    others = [build.gang(f"other-{number}", tasks=1, cpu=1, queue="other") for number in range(4)]
    assert len(bound(["gang"], *gangs_of(1, 1, 1, 1), *others)) == 8
    assert runs == [[1], [1, 1, 1, 1]]
    assert looks == [1, 2, 4, 4]


class Follower:
    """Notes what it is told of gangs that are placed."""

    name = "follower"
    told: ClassVar[list[list[str]]] = []

    def __init__(self, policy: PluginPolicy) -> None:
        self.told.clear()

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        self.told.append([f"{task.task.name} on {node}" for task, node in zip(operation.tasks, operation.nodes, strict=True)])


class RunFollower(Follower):
    """Says that it follows runs."""

    follows_runs = True


def test_a_plugin_that_follows_runs_is_told_once_and_others_of_each_gang() -> None:
    bound(["gang", "extra"], *gangs_of(1, 2, 1), extra=RunFollower)
    assert RunFollower.told == [["gang-0-0 on 0", "gang-1-0 on 0", "gang-1-1 on 0", "gang-2-0 on 0"]]
    bound(["gang", "extra"], *gangs_of(1, 2, 1), extra=Follower)
    assert Follower.told == [["gang-0-0 on 0"], ["gang-1-0 on 0", "gang-1-1 on 0"], ["gang-2-0 on 0"]]


def test_a_gang_that_may_start_with_fewer_is_tried_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = runs_of(monkeypatch)
    assert len(bound(["gang"], *gangs_of(3, 3, min_member=2))) == 6
    assert runs == []


def test_a_gang_for_which_there_is_no_room_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = runs_of(monkeypatch)
    names = bound(["gang"], *gangs_of(10, 7, 6))
    assert (len(names), names[-1]) == (16, "gang-2-5")
    assert runs == [[10], [6]]


def test_without_a_run_the_next_gang_is_tried_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    together = bound(["gang"], *gangs_of(1, 2, 1))
    monkeypatch.setattr(GangRuns, "place", lambda runs, line, queue, is_alone: False)
    assert bound(["gang"], *gangs_of(1, 2, 1)) == together
