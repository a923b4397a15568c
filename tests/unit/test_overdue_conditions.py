"""A gang that runs longer than it may says so, in the words of its dialect: a condition, and one event."""

from typing import Any

import pytest

from phalanx.controllers.controller import RecordEvent
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, QUEUE, Document
from phalanx.model.work_annotations import MAX_DURATION, OVERDUE_SINCE
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import same_gang as speech
from tests.support import sim_worlds as worlds

MESSAGE = "it runs longer than its maximum of 60s (phalanx.dev/max-duration of the pod)"
WITH_CONDITIONS = ("volcano", "kai", "native")
WITHOUT = ("coscheduling", "koordinator")
OF_PODS = ("kueue", "yunikorn")


class Watched:
    """A cluster in which the gang train of two pods may run for a minute, and what is recorded there."""

    def __init__(self, dialect: str, **more: Any) -> None:
        self.world, self.dialect = speech.cluster(nodes=2, gpus=1, **more), dialect
        self.events: list[RecordEvent] = []
        self.world.on_event(self._hear)
        documents = speech.gang(dialect, "train", tasks=2, gpus=1)
        for pod in (item for item in documents if item["kind"] == "Pod"):
            pod["metadata"].setdefault("annotations", {})[MAX_DURATION] = "60s"
        worlds.submit(self.world, documents)

    def _hear(self, event: RecordEvent) -> None:
        if event.reason == "Overdue":
            self.events.append(event)

    def after(self, seconds: float) -> list[Document]:
        """Return what the group says of it after so many seconds."""
        worlds.run(self.world, seconds)
        return said(self.world, self.dialect)

    def may_run(self, text: str) -> None:
        for pod in self.world.store.items(POD):
            meta = pod["metadata"]
            self.world.store.patch(POD, meta["namespace"], meta["name"], {"metadata": {"annotations": {MAX_DURATION: text}}})


def said(world: World, dialect: str) -> list[Document]:
    if dialect in WITH_CONDITIONS:
        (group,) = world.store.items(GROUP_BY_DIALECT[dialect])
        return [item for item in group["status"].get("conditions") or () if item["type"] == "Overdue"]
    objects = world.store.items(POD if dialect in OF_PODS else GROUP_BY_DIALECT[dialect])
    notes = [item["metadata"].get("annotations") or {} for item in objects]
    return [{"lastTransitionTime": texts[OVERDUE_SINCE]} for texts in notes if OVERDUE_SINCE in texts]


@pytest.mark.parametrize("dialect", [*WITH_CONDITIONS, *WITHOUT, *OF_PODS])
def test_a_gang_says_once_that_it_runs_longer_than_it_may_and_no_longer_when_it_may(dialect: str) -> None:
    watched = Watched(dialect)
    assert watched.after(50) == []
    (found,) = watched.after(70)
    assert found["lastTransitionTime"].startswith("2026-01-01T00:01:0")
    assert watched.after(1000) == [found]
    assert [event.message for event in watched.events] == [MESSAGE]
    watched.may_run("2h")
    assert watched.after(1100) == []
    assert len(watched.events) == 1
    assert len(watched.after(8000)) == len(watched.events) - 1 == 1


@pytest.mark.parametrize("dialect", WITH_CONDITIONS)
def test_the_condition_stands_beside_the_others(dialect: str) -> None:
    watched = Watched(dialect)
    before = groups_conditions(watched, 50)
    after = groups_conditions(watched, 100)
    assert [item for item in after if item["type"] != "Overdue"] == before
    (found,) = [item for item in after if item["type"] == "Overdue"]
    assert (found["status"], found["reason"], found["message"]) == ("True", "LongerThanMaximum", MESSAGE)


def groups_conditions(watched: Watched, seconds: float) -> list[Document]:
    worlds.run(watched.world, seconds)
    (group,) = watched.world.store.items(GROUP_BY_DIALECT[watched.dialect])
    return list(group["status"].get("conditions") or ())


def test_it_is_said_at_the_moment_though_nobody_waits_and_nothing_else_happens() -> None:
    watched = Watched("volcano")
    worlds.run(watched.world, 63)
    assert len(watched.events) == 1
    assert worlds.phases(watched.world.store) == {"train-0": "Running", "train-1": "Running"}


def test_the_limit_of_a_queue_that_comes_later_counts_for_gangs_that_run() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("train", gpus=1))
    limit = {"metadata": {"annotations": {MAX_DURATION: "5m"}}}
    world.plan(600, lambda: world.store.patch(QUEUE, "", "default", limit))
    worlds.run(world, 590)
    assert said(world, "volcano") == []
    worlds.run(world, 610)
    (found,) = said(world, "volcano")
    assert found["message"] == "it runs longer than its maximum of 5m (phalanx.dev/max-duration of the queue)"


def test_a_gang_that_was_evicted_and_waits_says_nothing_of_it() -> None:
    world = worlds.world(nodes=1, gpus=1, policy=speech.policy())
    queue = build.queue("default")
    queue["metadata"]["annotations"] = {MAX_DURATION: "1m", "phalanx.dev/overdue": "evict"}
    world.store.patch(QUEUE, "", "default", queue)
    worlds.submit(world, worlds.gang("train", gpus=1))
    worlds.run(world, 62.5)
    assert worlds.record(world, "train").evicted == 1
    worlds.run(world, 70)
    assert said(world, "volcano") == []
