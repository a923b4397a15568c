"""What is written of changes: as little as says the same; whoever reads it gets the whole objects again."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import POD, kind_of, object_key
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.recording.entries import AnyEntry, AsDecided, Assumed, Carried, Changed, Config, Landed, Put
from phalanx.recording.log_writer import Bounds, LogWriter
from phalanx.recording.object_changes import KnownObjects, LandedEntries, entry_of
from phalanx.recording.reading import Recording
from phalanx.recording.recorder import Recorded, Recorder
from phalanx.recording.replay import Replay
from phalanx.scheduling.cache import SchedulerCache, Urgency
from phalanx.scheduling.sessions import Scope, Sessions
from phalanx.session.cycle import Profile
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build
from tests.support.recordings import all_entries, as_read, kept

Json = dict[str, Any]  # Any: as JSON has it
NOW = 1_000.0
ZONE, OTHER_ZONE = {"topology.kubernetes.io/zone": "a"}, {"topology.kubernetes.io/zone": "b"}
MINIMA = {"phalanx.dev/minima": '{"gang":2}'}
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
BOUND: Json = {"phase": "Pending", "conditions": [SCHEDULED]}
OWNER = {"kind": "Job", "name": "train", "uid": "j", "controller": True}
MARKS: tuple[Mapping[str, str] | None, ...] = (None, {}, {"app": "train"})


def pod(labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> Json:
    found: Json = {**build.pod("train-0", cpu=1), "apiVersion": "v1", "status": {"phase": "Pending"}}
    meta = {"name": "train-0", "namespace": "default", "uid": "u", "labels": labels, "annotations": annotations}
    return {**found, "metadata": {key: value for key, value in meta.items() if value is not None}}


def on_node(name: str, status: Json) -> Json:
    found = pod(None, None)
    return {**found, "metadata": {**found["metadata"], "name": name}, "spec": {"nodeName": "node-1"}, "status": status}


def whole(*entries: AnyEntry | None) -> Json:
    """Return the object that a reader has after some entries."""
    known, found = KnownObjects(), None
    for entry in entries:
        found = known.whole(as_read(entry))
    assert isinstance(found, Put)
    return found.object


@pytest.mark.parametrize(("labels", "annotations"), [*product(MARKS, (None, {}, {"volcano.sh/task-spec": "w"}))])
@pytest.mark.parametrize("written", [({}, {}), (ZONE, MINIMA), (ZONE, {}), ({}, MINIMA)])
def test_a_pod_that_has_landed_is_read_as_it_is(
    labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None, written: tuple[Json, Json]
) -> None:
    before = pod(labels, annotations)
    after = pod({**(labels or {}), **written[0]} or labels, {**(annotations or {}), **written[1]} or annotations)
    after = {**after, "spec": {**after["spec"], "nodeName": "node-1"}, "status": {"phase": "Pending", "conditions": [SCHEDULED]}}
    entry = LandedEntries().entry(after, has_same_labels=not written[0])
    assert whole(entry_of(None, before), entry) == kept(after)


def test_what_binding_wrote_before_is_written_over() -> None:
    before, after = pod({**ZONE, "app": "train"}, MINIMA), pod({"app": "train", **OTHER_ZONE}, {})
    after["spec"]["nodeName"] = "node-1"
    found = whole(entry_of(None, before), LandedEntries().entry(after, has_same_labels=False))
    assert found["metadata"]["labels"] == {"app": "train", **OTHER_ZONE}
    assert not found["metadata"].get("annotations")


def test_pods_that_land_together_share_a_status_that_is_written_once() -> None:
    pods = [on_node(f"train-{number}", status) for number, status in enumerate((BOUND, {**BOUND}, {"phase": "Pending"}, BOUND))]
    made, known = LandedEntries(), KnownObjects()
    entries = [made.entry(each, has_same_labels=True) for each in pods]
    assert [entry.has_last_status for entry in entries] == [False, True, False, False]
    for entry, each in zip(entries, pods, strict=True):
        known.whole(as_read(entry_of(None, {**each, "spec": {}, "status": {}})))
        assert known.whole(as_read(entry)) == Put(kept(each))


def test_nothing_is_shared_over_a_checkpoint() -> None:
    made = LandedEntries()
    made.entry(on_node("train-0", BOUND), has_same_labels=True)
    made.forget()
    assert not made.entry(on_node("train-1", BOUND), has_same_labels=True).has_last_status


def test_another_object_of_the_same_name_is_written_whole() -> None:
    before, after = pod({"app": "train"}, None), pod({"app": "train"}, None)
    after["metadata"]["uid"] = "another"
    entry = entry_of(before, after)
    assert isinstance(entry, Put)
    assert whole(entry)["metadata"]["uid"] == "another"


def _ignored(urgency: Urgency) -> None:
    """Nobody waits for a session here."""


class Scene:
    """A cluster with two nodes and a gang of four, whose sessions are recorded."""

    def __init__(self, folder: Path) -> None:
        self.cache, self.mirror = SchedulerCache(ObjectCluster(), report=pytest.fail), Mirror(lambda: NOW)
        self.mirror.listen(lambda event: _ignored(self.cache.notice(event)))
        for document in (*(build.node(f"n{each}", cpu=2) for each in range(2)), *build.gang("train", tasks=4, cpu=1)):
            self.mirror.put(kind_of(document), {**document, "metadata": {"uid": object_key(document), **document["metadata"]}})
        self.folder, self.writer = folder, LogWriter(folder, Bounds(), report=pytest.fail, is_patient=True)
        self.recorder = Recorder(
            Recorded("test", self.cache, self.mirror.everything, lambda: NOW), self.writer, Config("phalanx", "")
        )
        self.recorder.turn()
        self.sessions = Sessions(self.cache, self.mirror, Scope(arrival=0.0))

    def hold(self) -> list[tuple[TaskKey, str]]:
        session = self.sessions.hold(Profile(policy_of_profile("phalanx"), CATALOGUE), NOW)
        self.recorder.held(session)
        return [*session.parts[0].decisions.binds.items()]

    def assume(self, binds: list[tuple[TaskKey, str]]) -> None:
        for key, node in binds:
            task = self.cache.cluster.state.task(key)
            assert task is not None
            self.cache.assume(task, Status.BINDING, node)

    def land(self, key: TaskKey, node: str, **more: Any) -> None:  # Any: metadata as JSON has it
        namespace, name = key.split("/")
        before = self.mirror.find(POD, namespace, name)
        assert before is not None
        meta = {**before["metadata"], **more}
        self.mirror.put(POD, {**before, "metadata": meta, "spec": {**before["spec"], "nodeName": node}})

    def entries(self) -> list[AnyEntry]:
        self.recorder.close()
        return all_entries(self.folder)

    def replayed(self) -> SchedulerCache:
        player = Replay()
        for _, entry in Recording(self.folder, tell=pytest.fail).entries():
            session = player.enter(entry)
            assert session is None or session.is_same
        return player.cluster.cache


def test_pods_that_are_assumed_as_decided_are_only_counted(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    binds = scene.hold()
    assert len(binds) == 4
    scene.assume(binds)
    scene.land(*binds[0])
    found = scene.entries()
    assert [entry.count for entry in found if isinstance(entry, AsDecided)] == [4]
    assert not any(isinstance(entry, Assumed) for entry in found)
    assert [entry.node for entry in found if isinstance(entry, Landed)] == [binds[0][1]]
    again = scene.replayed()
    assert again.assumptions == scene.cache.assumptions
    assert len(again.assumptions[0]) == 3


def test_pods_that_are_assumed_otherwise_are_written_with_their_nodes(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    first, second, *rest = scene.hold()
    scene.assume([first, (second[0], "n9"), *rest])
    found = scene.entries()
    assert [entry.count for entry in found if isinstance(entry, AsDecided)] == [1]
    assert [(entry.key, entry.node) for entry in found if isinstance(entry, Assumed)] == [(second[0], "n9"), *rest]
    assert scene.replayed().assumptions == scene.cache.assumptions


def test_whoever_reads_from_a_later_segment_misses_no_assumed_pod(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    binds = scene.hold()
    scene.assume(binds[:2])
    scene.writer.wants_checkpoint = True
    scene.recorder.turn()
    scene.assume(binds[2:])
    scene.recorder.close()
    (tmp_path / "000001.phx").unlink()
    found = all_entries(tmp_path)
    ended = next(place for place, entry in enumerate(found) if isinstance(entry, Carried))
    assert sum(isinstance(entry, Assumed) for entry in found[:ended]) == 2
    assert [(entry.key, entry.node) for entry in found[ended:] if isinstance(entry, Assumed)] == binds[2:]
    assert scene.replayed().assumptions == scene.cache.assumptions


@pytest.mark.parametrize(
    "more", [{"labels": {"app": "other"}}, {"annotations": {"volcano.sh/task-spec": "w"}}, {"ownerReferences": [OWNER]}]
)
def test_a_pod_of_which_more_has_changed_has_not_only_landed(more: Json, tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    first, *_ = binds = scene.hold()
    scene.assume(binds)
    scene.land(*first, **more)
    found = scene.entries()
    (changed,) = [entry for entry in found if isinstance(entry, Changed)]
    assert changed.fields["metadata"] == more
    assert not any(isinstance(entry, Landed) for entry in found)
