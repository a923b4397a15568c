"""Controllers in virtual time: who is asked when, and what becomes of refusals and faults."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from phalanx.controllers.controller import NOTHING, Create, Delete, Key, Patch, RecordEvent, Result, Try, View, Write
from phalanx.controllers.objects import key_of, owner_reference
from phalanx.model.kinds import Document, Kind, kind_of
from phalanx.scheduling.controllers import ControllerRunner
from phalanx.sim.store_port import StorePort
from phalanx.sim.virtual_time import Precedence, VirtualTime
from phalanx.store.memory import MemoryStore

CONFIG = kind_of({"apiVersion": "v1", "kind": "ConfigMap"})
SECRET = kind_of({"apiVersion": "v1", "kind": "Secret"})


class Trial:
    """A controller that does what a test says."""

    name = "trial"
    watches = (CONFIG,)
    brings_back = (CONFIG,)

    def __init__(self, say: Callable[[View, Key], Result]) -> None:
        self._say = say
        self.asked: list[tuple[float, str]] = []

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        yield key_of(document)

    def reconcile(self, view: View, key: Key) -> Result:
        self.asked.append((view.now, key.name))
        return self._say(view, key)


class Stage:
    """A store, its time and one controller."""

    def __init__(self, say: Callable[[View, Key], Result]) -> None:
        self.time = VirtualTime(100.0)
        self.store = MemoryStore(lambda: self.time.now)
        self.trial, self.problems = Trial(say), list[str]()
        self.port = StorePort(self.store, self.time, Precedence.CONTROLLER)
        self.run(self.trial)

    def run(self, controller: Trial) -> None:
        runner = ControllerRunner(self.port, [controller], report=self.problems.append)
        self.store.listen(lambda event: runner.notice(event.kind, event.object))
        runner.start()

    def make(self, name: str) -> Document:
        return self.store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})


def secret(owner: Document) -> Document:
    meta = {"name": f"{owner['metadata']['name']}-keys", "namespace": "default", "ownerReferences": [owner_reference(owner)]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta}


def test_a_change_is_asked_about_once_a_moment_and_the_answer_is_written() -> None:
    def say(view: View, key: Key) -> Result:
        found = view.find(CONFIG, key.namespace, key.name)
        return NOTHING if found is None else Result([Create(secret(found))])

    stage = Stage(say)
    made = stage.make("a")
    stage.store.patch(CONFIG, "default", "a", {"data": {"x": "1"}})
    stage.time.advance(100.0)
    assert stage.trial.asked == [(100.0, "a")]
    assert [item["metadata"]["name"] for item in stage.store.owned(made["metadata"]["uid"], SECRET)] == ["a-keys"]
    stage.store.patch(CONFIG, "default", "a", {"data": {"x": "2"}})
    stage.time.advance(100.0)
    assert len(stage.store.within(SECRET, "default")) == 1
    assert not stage.problems


def test_a_controller_is_asked_again_when_it_wants_to_be() -> None:
    stage = Stage(lambda view, key: Result(again=110.0) if view.now < 110 else NOTHING)
    stage.make("a")
    stage.time.advance(200.0)
    assert stage.trial.asked == [(100.0, "a"), (110.0, "a")]


class Patiently(Trial):
    """A controller that waits for more changes."""

    patience_seconds = 5.0


def test_a_patient_controller_looks_once_at_many_changes() -> None:
    stage = Stage(lambda view, key: NOTHING)
    stage.trial = Patiently(lambda view, key: NOTHING)
    stage.run(stage.trial)
    stage.make("a")
    stage.time.advance(104.0)
    stage.store.patch(CONFIG, "default", "a", {"data": {"x": "1"}})
    stage.time.advance(200.0)
    assert stage.trial.asked == [(105.0, "a")]


def test_after_a_refusal_the_rest_is_left_out_and_tried_again_ever_later() -> None:
    writes: list[Write] = [Patch(SECRET, "default", "gone", {"data": {}}), Delete(CONFIG, "default", "a")]
    stage = Stage(lambda view, key: Result(writes) if view.now < 104 else NOTHING)
    stage.make("a")
    stage.time.advance(200.0)
    assert [moment for moment, _ in stage.trial.asked] == [100.0, 101.0, 103.0, 107.0]
    assert stage.store.find(CONFIG, "default", "a") is not None
    assert stage.problems[0] == 'trial, default/a: secrets "gone" not found; tried again in 1 s'


def test_what_is_gone_already_need_not_be_deleted_and_events_are_told() -> None:
    told: list[RecordEvent] = []
    stage = Stage(
        lambda view, key: Result([Delete(SECRET, "default", "gone"), RecordEvent({"kind": "ConfigMap"}, "Ready", "well")])
    )
    stage.port.recorded.append(told.append)
    stage.make("a")
    stage.time.advance(100.0)
    assert [event.message for event in told] == ["well"]
    assert not stage.problems


def test_a_fault_concerns_one_object_only() -> None:
    def say(view: View, key: Key) -> Result:
        if key.name == "bad":
            raise KeyError("spec")
        return NOTHING

    stage = Stage(say)
    for name in ("bad", "good"):
        stage.make(name)
    stage.time.advance(100.0)
    assert [name for _, name in stage.trial.asked] == ["bad", "good"]
    assert stage.problems == ["trial, default/bad: KeyError: 'spec'; tried again in 1 s"]
    stage.time.advance(103.0)
    assert [moment for moment, name in stage.trial.asked if name == "bad"] == [100.0, 101.0, 103.0]


def test_what_is_only_tried_is_answered_when_it_is_refused_and_the_rest_is_left_out() -> None:
    def say(view: View, key: Key) -> Result:
        note = Patch(CONFIG, "default", "a", {"data": {"why": "x"}})
        trial = Try(Patch(SECRET, "default", "gone", {"data": {}}), lambda reason: [replace(note, patch={"data": {"why": reason}})])
        return Result([trial, Delete(CONFIG, "default", "a")]) if "data" not in view.within(CONFIG)[0] else NOTHING

    stage = Stage(say)
    stage.make("a")
    stage.time.advance(200.0)
    assert stage.store.get(CONFIG, "default", "a")["data"] == {"why": 'secrets "gone" not found'}
    assert stage.problems == []


def test_what_is_tried_and_not_refused_is_a_write_like_any_other() -> None:
    stage = Stage(
        lambda view, key: Result([Try(Delete(CONFIG, "default", "a"), lambda reason: []), Delete(CONFIG, "default", "b")])
    )
    stage.make("b")
    stage.make("a")
    stage.time.advance(200.0)
    assert stage.store.items(CONFIG) == []
