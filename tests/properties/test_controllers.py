"""Laws of controllers: they come to rest, a crash between two writes changes nothing in the end, and queues obey their parents."""

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.controllers.controller import Controller, Key, Result, View
from phalanx.controllers.cronjob import CronJobController
from phalanx.controllers.first_queues import FirstQueues
from phalanx.controllers.hypernode import HyperNodeController
from phalanx.controllers.jobflow import JobFlowController
from phalanx.controllers.podgroup import OwnedGroupController, PodGroupController
from phalanx.controllers.queue import QueueController
from phalanx.controllers.queue_status import QueueStatusController
from phalanx.errors import Missing
from phalanx.model.kinds import GROUP_BY_DIALECT, HYPERNODE, NODE, QUEUE, VOLCANO_JOB, Document, Kind
from phalanx.testing import build
from tests.support.controller_store import Stage

GROUP = GROUP_BY_DIALECT["volcano"]
LEVELS = ("leaf", "spine")
PARENTS = {"company": "", "research": "company", "vision": "research", "sales": "company", "night": ""}
JOB = {"tasks": [{"name": "worker", "replicas": 2, "template": {"spec": {"containers": [{"name": "main"}]}}}]}
GENERATED = ("uid", "resourceVersion", "creationTimestamp", "generation", "ownerReferences", "startTimestamp")


class Crashing:
    """A controller that dies after some of its writes at some of its looks, and is started again a second later."""

    def __init__(self, controller: Controller, cuts: Sequence[int]) -> None:
        self._controller, self._cuts = controller, list(cuts)
        self.name, self.watches, self.brings_back = controller.name, controller.watches, controller.brings_back

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        return self._controller.concerns(view, kind, document)

    def reconcile(self, view: View, key: Key) -> Result:
        result = self._controller.reconcile(view, key)
        if not self._cuts or not result.writes:
            return result
        return Result(result.writes[: self._cuts.pop()], again=view.now + 1)


def controllers() -> list[Controller]:
    return [
        CronJobController(), JobFlowController(), PodGroupController(), OwnedGroupController(), FirstQueues(), QueueController(),
        QueueStatusController(), HyperNodeController(LEVELS),
    ]  # fmt: skip


@st.composite
def deeds(draw: st.DrawFn) -> list[tuple[str, ...]]:
    queue, name = st.sampled_from(sorted(PARENTS)), st.sampled_from("abc")
    choices = st.one_of(
        st.tuples(st.just("command"), st.sampled_from(["OpenQueue", "CloseQueue"]), queue),
        st.tuples(st.just("group"), name, queue), st.tuples(st.just("ungroup"), name), st.tuples(st.just("pod"), name),
        st.tuples(st.just("node"), name, name, name),
        st.tuples(st.just("unnode"), name), st.tuples(st.just("ended"), name, st.sampled_from(["Completed", "Failed", "Running"])),
    )  # fmt: skip
    return draw(st.lists(choices, max_size=14))


def do(stage: Stage, number: int, deed: tuple[str, ...]) -> None:
    match deed:
        case ("command", action, queue):
            target = {"apiVersion": QUEUE.api_version, "kind": "Queue", "name": queue}
            meta = {"namespace": "default", "name": f"c-{number}"}
            stage.make(
                {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": meta, "action": action, "target": target}
            )
        case ("group", name, queue):
            if stage.store.find(GROUP, "default", name) is None:
                stage.make(build.pod_group(name, queue=queue))
        case ("ungroup", name):
            remove(stage, GROUP, name)
        case ("pod", name):
            stage.make(build.pod(f"{name}-{number}", on="n", spec={"schedulerName": "phalanx"}, cpu=1))
        case ("node", name, leaf, spine):
            remove(stage, NODE, name)
            stage.make(build.node(name, labels=dict(zip(LEVELS, (leaf, spine), strict=True))))
        case ("unnode", name):
            remove(stage, NODE, name)
        case ("ended", name, phase):
            if stage.store.find(VOLCANO_JOB, "default", f"flow-{name}") is not None:
                stage.set_status(VOLCANO_JOB, f"flow-{name}", {"state": {"phase": phase}})


def remove(stage: Stage, kind: Kind, name: str) -> None:
    try:
        stage.store.delete(kind, "default" if kind.is_namespaced else "", name)
    except Missing:
        return


def played(found: Stage, todo: Sequence[tuple[str, ...]]) -> Stage:
    found.make(*(build.queue(name, parent=parent) for name, parent in PARENTS.items()))
    api = "flow.volcano.sh/v1alpha1"
    for name in "abc":
        found.make({"apiVersion": api, "kind": "JobTemplate", "metadata": {"namespace": "default", "name": name}, "spec": JOB})
    steps = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}, {"name": "c", "dependsOn": {"targets": ["a", "b"]}}]
    meta = {"namespace": "default", "name": "flow"}
    found.make({"apiVersion": api, "kind": "JobFlow", "metadata": meta, "spec": {"flows": steps}})
    spec = {"schedule": "*/5 * * * *", "concurrencyPolicy": "Replace", "jobTemplate": {"spec": JOB}}
    meta = {"namespace": "default", "name": "often"}
    found.make({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": meta, "spec": spec})
    for number, deed in enumerate(todo):
        do(found, number, deed)
        found.run(100.0 * (number + 1))
    found.run(100.0 * (len(todo) + 2) + 50)
    return found


def state(found: Stage) -> list[Any]:
    """Return every object without what depends on how often something was written."""
    return sorted(map(repr, (plain(item) for item in found.store.everything())))


def plain(value: Any) -> Any:  # Any: any part of an object
    if isinstance(value, dict):
        return {key: plain(item) for key, item in sorted(value.items()) if key not in GENERATED and item not in (None, {})}
    return [plain(item) for item in value] if isinstance(value, list) else value


@settings(deadline=None, max_examples=40)
@given(deeds())
def test_controllers_come_to_rest(todo: list[tuple[str, ...]]) -> None:
    found = played(Stage(*controllers()), todo)
    assert found.unsettled() == []
    assert found.problems == []


@settings(deadline=None, max_examples=40)
@given(deeds(), st.lists(st.integers(0, 3), max_size=8))
def test_a_crash_between_two_writes_changes_nothing_in_the_end(todo: list[tuple[str, ...]], cuts: list[int]) -> None:
    crashed = played(Stage(*(Crashing(controller, cuts) for controller in controllers())), todo)
    assert state(crashed) == state(played(Stage(*controllers()), todo))


@settings(deadline=None, max_examples=40)
@given(deeds())
def test_no_queue_is_open_below_a_closed_one_and_closed_ones_are_empty(todo: list[tuple[str, ...]]) -> None:
    found = played(Stage(*controllers()), todo)
    states = {queue["metadata"]["name"]: queue["status"]["state"] for queue in found.store.items(QUEUE)}
    used = {group["spec"]["queue"] for group in found.store.items(GROUP)}
    for name, parent in PARENTS.items():
        assert parent == "" or states[parent] == "Open" or states[name] != "Open"
        assert states[name] == "Open" or (states[name] == "Closing") == (name in used)


@settings(deadline=None, max_examples=40)
@given(deeds())
def test_every_labelled_node_is_in_one_hypernode_of_each_tier(todo: list[tuple[str, ...]]) -> None:
    found = played(Stage(*controllers()), todo)
    made = found.store.items(HYPERNODE)
    for tier, kind in ((1, "Node"), (2, "HyperNode")):
        inner = [member for item in made if item["spec"]["tier"] == tier for member in item["spec"]["members"]]
        names = [member["selector"]["exactMatch"]["name"] for member in inner if member["type"] == kind]
        wanted = found.names(NODE) if tier == 1 else [item["metadata"]["name"] for item in made if item["spec"]["tier"] == 1]
        assert sorted(names) == sorted(wanted)
