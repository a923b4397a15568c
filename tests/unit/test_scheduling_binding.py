"""Rounds of binds: what sessions see of a gang while some of its binds are refused and others are not answered yet."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.group_references import KOORDINATOR_GANG
from phalanx.dialects.koordinator import MIN_AVAILABLE
from phalanx.errors import Forbidden
from phalanx.live.api_port import ApiPort
from phalanx.live.clock import LoopClock
from phalanx.live.outbox import Outbox
from phalanx.model.kinds import POD, Document, kind_of
from phalanx.model.moment import moment_text
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.model.watch_event import WatchEvent
from phalanx.scheduling.annotator import Annotator
from phalanx.scheduling.binding import Binding
from phalanx.scheduling.cache import SchedulerCache
from phalanx.session.decision import Decisions
from phalanx.store.kube.client import Client
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build
from tests.support.embedded_server import Server, until

BOUND_AT = 1_767_225_600


class Scene:
    """A gang of two on a cluster that binds one pod after the other."""

    def __init__(self, server: Server, client: Client, gang: Sequence[Document]) -> None:
        self.server, self.moments = server, list[dict[str, Status]]()
        self.cache, self.mirror = SchedulerCache(ObjectCluster(), report=print), Mirror(lambda: 0.0)
        self.mirror.listen(self._hear)
        self.outbox = Outbox(connections=1, report=print)
        port = ApiPort(client, self.outbox, self.mirror, LoopClock(lambda: 0.0), instance="test")
        self.binding = Binding(port, self.cache, Annotator(port, self.cache), wake=lambda: None)
        self.binding.bound.append(lambda task, node, seconds: self.moments.append(self.statuses()))
        for document in (build.queue("default"), build.node("n0", cpu=2), *gang):
            self.load(document)

    def _hear(self, event: WatchEvent) -> None:
        self.cache.notice(event)

    def load(self, document: Document) -> None:
        found = self.server.store.load({**document, "metadata": {**document["metadata"], "uid": ""}})
        self.mirror.put(kind_of(found), dict(found))

    def statuses(self) -> dict[str, Status]:
        tasks = ((name, self.cache.cluster.state.task(TaskKey(f"default/{name}"))) for name in ("train-0", "train-1"))
        return {name: task.status for name, task in tasks if task is not None}

    async def bind(self, *, counts_unplaced: bool) -> None:
        binds = {TaskKey(f"default/{name}"): "n0" for name in ("train-0", "train-1")}
        self.binding.start(Decisions(binds=binds, counts_unplaced=counts_unplaced))
        await until(lambda: not self.outbox.waiting())


def played(prepare: Callable[[Server], None], gang: Sequence[Document] = (), *, counts_unplaced: bool = False) -> Scene:
    async def play() -> Scene:
        server = Server()
        async with server.opened() as client:
            scene = Scene(server, client, gang or build.gang("train", tasks=2, cpu=1))
            prepare(server)
            await scene.bind(counts_unplaced=counts_unplaced)
            return scene

    return asyncio.run(play())


def test_a_refused_pod_stays_where_it_was_sent_until_its_whole_gang_has_answers() -> None:
    scene = played(lambda server: server.refusals.append(Forbidden("not today")))
    assert scene.moments == [{"train-0": Status.BINDING, "train-1": Status.BINDING}]
    assert scene.statuses() == {"train-0": Status.PENDING, "train-1": Status.RELEASING}
    left = [item["metadata"]["name"] for item in scene.server.store.items(POD) if "deletionTimestamp" not in item["metadata"]]
    assert left == ["train-0"]


@pytest.mark.parametrize(("counts_unplaced", "other"), [(False, Status.RELEASING), (True, Status.BINDING)])
def test_a_refused_member_without_requests_takes_its_gang_back_unless_it_counts_unplaced(
    counts_unplaced: bool, other: Status
) -> None:
    gang = [build.pod_group("train", min_member=2), build.pod("train-0", group="train"), build.pod("train-1", group="train", cpu=1)]
    scene = played(lambda server: server.refusals.append(Forbidden("not today")), gang, counts_unplaced=counts_unplaced)
    assert scene.statuses() == {"train-0": Status.PENDING, "train-1": other}


def test_a_gang_that_pods_alone_make_is_taken_back_too() -> None:
    """By Koordinator's rule it needs nobody any more once it was whole, and what has just landed does not make it so."""
    gang = [build.pod(name, cpu=1) for name in ("train-0", "train-1")]
    for pod in gang:
        pod["metadata"]["annotations"] = {KOORDINATOR_GANG: "train", MIN_AVAILABLE: "2"}
    scene = played(lambda server: server.refusals.append(Forbidden("not today")), gang)
    assert scene.statuses() == {"train-0": Status.PENDING, "train-1": Status.RELEASING}


def test_a_pod_that_has_another_node_already_is_no_reason_to_take_its_gang_back() -> None:
    """A bind of an earlier term landed late, and no watch has told of it yet."""
    scene = played(lambda server: server.store.bind("default", "train-0", "n9"))
    left = {item["metadata"]["name"]: item["spec"].get("nodeName") for item in scene.server.store.items(POD)}
    assert left == {"train-0": "n9", "train-1": "n0"}
    assert all("deletionTimestamp" not in item["metadata"] for item in scene.server.store.items(POD))


def refused_then_bound_elsewhere(server: Server) -> None:
    server.store.bind("default", "train-1", "n9")
    server.refusals.append(Forbidden("not today"))


def left_on_nodes(scene: Scene) -> list[str]:
    pods = scene.server.store.items(POD)
    return [
        item["metadata"]["name"] for item in pods if item["spec"].get("nodeName") and "deletionTimestamp" not in item["metadata"]
    ]


def test_a_gang_that_is_taken_back_leaves_nobody_behind_whom_a_late_bind_brought_there() -> None:
    """The other pod is refused, and no watch has told yet of the bind of an earlier term."""
    assert left_on_nodes(played(refused_then_bound_elsewhere)) == []


@pytest.mark.parametrize(("made_at", "left"), [(BOUND_AT - 30, []), (BOUND_AT + 30, ["train-2"])])
def test_who_was_bound_before_goes_with_its_gang_unless_that_may_have_worked(made_at: int, left: list[str]) -> None:
    """A member that was made after the other was bound may stand in for one that was lost."""
    pods = [build.pod(f"train-{number}", group="train", cpu=1) for number in range(3)]
    for pod in pods:
        pod["metadata"]["creationTimestamp"] = moment_text(made_at)
    gang = [build.pod_group("train", min_member=3), *pods[:2], bound(pods[2])]
    scene = played(lambda server: server.refusals.append(Forbidden("not today")), gang)
    assert left_on_nodes(scene) == left


def bound(pod: Document) -> Document:
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment_text(BOUND_AT)}
    status = {**(pod.get("status") or {}), "phase": "Running", "conditions": [condition]}
    return {**pod, "spec": {**pod["spec"], "nodeName": "n0"}, "status": status}
