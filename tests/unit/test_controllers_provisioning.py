"""Nodes for whole gangs: one request for each, made, followed and cleaned up, and nothing written at rest."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.controllers.objects import PROBLEM
from phalanx.controllers.provisioning.controller import FAILURES, NOT_ASKED, RETRY_AT, UNNEEDED_SINCE, ProvisioningController
from phalanx.controllers.provisioning.queue_class import BEST_EFFORT, CLASS, PARAMETERS
from phalanx.controllers.provisioning.request import CONSUMED_CLASS
from phalanx.dialects.group_references import KOORDINATOR_GANG
from phalanx.dialects.koordinator import GROUPS, MIN_AVAILABLE
from phalanx.model.conditions import CONSUMES, NODES_REQUESTED, POD_SCHEDULED, UNDETERMINED, UNSCHEDULABLE
from phalanx.model.kinds import (
    GROUP_BY_DIALECT,
    KAI_QUEUE,
    POD,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
    QUEUE,
    Kind,
)
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import kai_objects as kai
from tests.support import pod_made_gangs as made
from tests.support import same_gang as speech
from tests.support.controller_store import Stage

CHECK = "check-capacity.autoscaling.x-k8s.io"
GROUP = GROUP_BY_DIALECT["volcano"]


def asking(name: str = "research", *, of: str = BEST_EFFORT, **more: str) -> Document:
    """Return a queue whose gangs ask for nodes."""
    queue = build.queue(name)
    queue["metadata"]["annotations"] = {CLASS: of, **more}
    return queue


def say(stage: Stage, reason: str, *names: str) -> None:
    """Let pods say why they have no node, as a session does."""
    for name in names or stage.names(POD):
        if not stage.find(POD, name)["spec"].get("nodeName"):
            item = {"type": POD_SCHEDULED, "status": "False", "reason": reason, "message": "it waits"}
            stage.set_status(POD, name, {"conditions": [item]})


def stage(*documents: Document, reason: str = UNSCHEDULABLE, seconds: float = 10) -> Stage:
    """Return a cluster some seconds after its pods have said why they wait."""
    found = Stage(ProvisioningController())
    found.make(*documents)
    if reason:
        say(found, reason)
    found.run(seconds)
    assert found.problems == []
    return found


def gang(tasks: int = 4, **more: Any) -> list[Document]:
    return build.gang("train", tasks=tasks, queue="research", cpu=1, **more)


def bind(found: Stage, *names: str) -> None:
    for name in names:
        if not found.find(POD, name)["spec"].get("nodeName"):
            found.store.bind("default", name, "new")
        found.set_status(POD, name, {"phase": "Running"})


def end(found: Stage, kind: str, message: str = "no capacity", status: str = "True") -> None:
    """Let the autoscaler say what has become of the only request."""
    (name,) = found.names(PROVISIONING_REQUEST)
    item = {"type": kind, "status": status, "reason": "Because", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    found.set_status(PROVISIONING_REQUEST, name, {"conditions": [item]})


def counts(found: Stage) -> list[int]:
    return [item["count"] for request in found.store.items(PROVISIONING_REQUEST) for item in request["spec"]["podSets"]]


def consumed(found: Stage) -> set[str | None]:
    return {pod["metadata"].get("annotations", {}).get(CONSUMES) for pod in found.store.items(POD)}


def reasons(found: Stage) -> list[str]:
    return [event.reason for event in found.told]


# --- made ----------------------------------------------------------------------------------------------------------------


def test_a_gang_that_lacks_nodes_asks_for_all_of_them_by_one_request() -> None:
    found = stage(asking(), *gang(tasks=4))
    (name,) = found.names(PROVISIONING_REQUEST)
    request = found.find(PROVISIONING_REQUEST, name)
    (template,) = found.store.items(POD_TEMPLATE)
    assert request["spec"] == {
        "provisioningClassName": BEST_EFFORT, "podSets": [{"podTemplateRef": {"name": template["metadata"]["name"]}, "count": 4}],
    }  # fmt: skip
    assert template["template"]["spec"]["containers"] == [{"name": "main", "resources": {"requests": {"cpu": 1}}}]
    for item in (request, template):
        (owner,) = item["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("PodGroup", "train", False)
    assert consumed(found) == {name}
    assert {pod["metadata"]["annotations"][CONSUMED_CLASS] for pod in found.store.items(POD)} == {BEST_EFFORT}
    assert [(event.reason, event.about["kind"], event.is_warning) for event in found.told] == [
        ("ProvisioningRequested", "PodGroup", False)
    ]
    assert found.unsettled() == []


@pytest.mark.parametrize("dialect", [name for name in speech.DIALECTS if name != "gates"])
def test_gangs_of_every_dialect_can_ask(dialect: str) -> None:
    found = stage(asking("default"), *speech.gang(dialect, "train", tasks=3, cpu=1))
    assert counts(found) == [3]
    assert found.unsettled() == []


def test_a_queue_of_kai_can_say_it_too() -> None:
    queue = kai.queue("a")
    queue["metadata"]["annotations"] = {CLASS: CHECK}
    found = stage(queue, *kai.gang("train", tasks=2, gpus=1))
    (name,) = found.names(PROVISIONING_REQUEST)
    assert found.find(PROVISIONING_REQUEST, name)["spec"]["provisioningClassName"] == CHECK


def test_parameters_of_the_class_are_passed_on() -> None:
    found = stage(asking(**{PARAMETERS: json.dumps({"ValidUntilSeconds": "600"})}), *gang())
    (name,) = found.names(PROVISIONING_REQUEST)
    assert found.find(PROVISIONING_REQUEST, name)["spec"]["parameters"] == {"ValidUntilSeconds": "600"}


def test_pods_that_ask_for_different_things_have_templates_of_their_own() -> None:
    group, *pods = gang(tasks=3)
    pods[0]["spec"] |= {"nodeSelector": {"zone": "a"}, "schedulerName": "phalanx", "tolerations": [{"operator": "Exists"}]}
    pods[0]["spec"]["containers"][0] |= {"env": [{"name": "TOKEN", "value": "secret"}], "ports": [{"containerPort": 80}]}
    found = stage(asking(), group, *pods)
    assert sorted(counts(found)) == [1, 2]
    (chosen,) = (item for item in found.store.items(POD_TEMPLATE) if item["template"]["spec"].get("nodeSelector"))
    assert chosen["template"]["spec"] == {
        "nodeSelector": {"zone": "a"}, "schedulerName": "phalanx", "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}],
    }  # fmt: skip


def test_pods_that_differ_in_an_index_are_of_one_template_with_the_labels_that_they_share() -> None:
    group, *pods = gang(tasks=3)
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"] = {"app": "train", "index": str(number)}
    found = stage(asking(), group, *pods)
    assert counts(found) == [3]
    (template,) = found.store.items(POD_TEMPLATE)
    assert template["template"]["metadata"]["labels"] == {"app": "train"}


def test_a_gang_that_koordinators_pods_make_without_an_object_asks_too() -> None:
    pods = [build.pod(f"train-{number}", cpu=1) for number in range(2)]
    for pod in pods:
        pod["metadata"]["annotations"] = {KOORDINATOR_GANG: "train", MIN_AVAILABLE: "2"}
    assert counts(stage(asking("default"), *pods)) == [2]


def test_a_gang_without_a_group_object_asks_in_the_name_of_its_oldest_pod() -> None:
    found = stage(asking("default"), *made.pod_group("train", tasks=2, cpu=1))
    (request,) = found.store.items(PROVISIONING_REQUEST)
    assert [(owner["kind"], owner["name"]) for owner in request["metadata"]["ownerReferences"]] == [("Pod", "train-0")]
    assert [event.about["kind"] for event in found.told] == ["Pod"]


# --- not made ------------------------------------------------------------------------------------------------------------


def untouched(found: Stage) -> bool:
    return not found.names(PROVISIONING_REQUEST) and not found.names(POD_TEMPLATE) and consumed(found) == {None}


@pytest.mark.parametrize("reason", [UNDETERMINED, "Schedulable", ""])
def test_a_gang_that_waits_for_something_else_asks_for_nothing(reason: str) -> None:
    assert untouched(stage(asking(), *gang(), reason=reason))


def test_a_gang_of_a_queue_that_does_not_say_so_asks_for_nothing() -> None:
    assert untouched(stage(build.queue("research"), *gang()))


def test_pods_are_looked_at_only_if_their_queue_asks() -> None:
    controller, found = ProvisioningController(), stage(*gang(tasks=1))
    pod = found.find(POD, "train-0")
    assert list(controller.concerns(found.store, POD, pod)) == []
    found.make(asking("other"))
    list(controller.concerns(found.store, QUEUE, found.find(QUEUE, "other")))
    assert list(controller.concerns(found.store, POD, pod)) == []
    found.make(asking("research"))
    keys = controller.concerns(found.store, QUEUE, found.find(QUEUE, "research"))
    assert [key.name for key in keys] == ["research", "train"]
    assert [key.name for key in controller.concerns(found.store, POD, pod)] == ["train"]


def test_a_gang_asks_when_enough_of_its_pods_say_that_they_lack_nodes() -> None:
    found = stage(asking(), *gang(tasks=4), reason="")
    say(found, UNSCHEDULABLE, "train-0", "train-1", "train-2")
    found.run(20)
    assert found.names(PROVISIONING_REQUEST) == []
    say(found, UNSCHEDULABLE, "train-3")
    found.run(30)
    assert counts(found) == [4]


def test_pods_of_other_schedulers_are_left_to_them() -> None:
    found = Stage(ProvisioningController(frozenset({"phalanx"})))
    found.make(asking(), *gang())
    say(found, UNSCHEDULABLE)
    found.run(10)
    assert untouched(found)


def test_a_gang_for_which_somebody_else_asks_is_left_alone() -> None:
    group, *pods = gang(tasks=2)
    pods[1]["metadata"]["annotations"] |= {CONSUMES: "kueue-made-it"}
    found = stage(asking(), group, *pods)
    assert found.names(PROVISIONING_REQUEST) == []
    assert consumed(found) == {None, "kueue-made-it"}


def of_many_kinds(tasks: int, **more: Any) -> list[Document]:
    group, *pods = gang(tasks=tasks, **more)
    for number, pod in enumerate(pods):
        pod["spec"]["nodeSelector"] = {"host": str(number)}
    return [group, *pods]


def test_more_different_pods_than_a_request_can_hold_ask_for_nothing_and_are_told_once() -> None:
    found = stage(asking(), *of_many_kinds(33))
    found.run(100)
    assert (found.names(PROVISIONING_REQUEST), found.names(POD_TEMPLATE), consumed(found)) == ([], [], {None})
    (event,) = found.told
    assert (event.reason, event.about["kind"], event.is_warning) == ("ProvisioningNotRequested", "PodGroup", True)
    assert "more than 32 kinds" in event.message
    assert found.find(GROUP, "train")["metadata"]["annotations"][NOT_ASKED] == event.message
    assert found.unsettled() == []


def test_a_gang_that_asks_for_nothing_forgets_why_when_it_starts() -> None:
    found = stage(asking(), *of_many_kinds(33))
    bind(found, *found.names(POD))
    found.set_status(GROUP, "train", {"phase": "Running"})
    found.run(20)
    assert NOT_ASKED not in found.find(GROUP, "train")["metadata"]["annotations"]
    assert found.unsettled() == []


def test_a_gang_of_fewer_kinds_than_before_asks_after_all() -> None:
    found = stage(asking(), *of_many_kinds(33, min_member=32))
    found.store.delete(POD, "default", "train-32")
    found.run(20)
    assert len(found.names(PROVISIONING_REQUEST)) == 1
    assert NOT_ASKED not in found.find(GROUP, "train")["metadata"]["annotations"]


def test_groups_that_start_together_are_left_to_the_autoscaler_pod_by_pod() -> None:
    group, *pods = speech.gang("koordinator", "train", tasks=2, cpu=1)
    group["metadata"].setdefault("annotations", {})[GROUPS] = '["default/train", "default/serve"]'
    assert untouched(stage(asking("default"), group, *pods))


class WithoutRequests(ProvisioningController):
    """The controller on a cluster without the definition of requests."""

    is_installed = False

    def reconcile(self, view: Any, key: Any) -> Any:
        return super().reconcile(_Unserved(view, self), key)


class _Unserved:
    """A view of a cluster that serves requests once they are installed."""

    def __init__(self, view: Any, controller: WithoutRequests) -> None:
        self._view, self._controller = view, controller

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def is_served(self, kind: Kind) -> bool:
        return kind is not PROVISIONING_REQUEST or self._controller.is_installed


def test_a_cluster_without_requests_is_told_once_on_the_queue_and_served_when_they_are_installed() -> None:
    controller = WithoutRequests()
    found = Stage(controller)
    found.make(asking(), *gang())
    say(found, UNSCHEDULABLE)
    found.run(600)
    assert [(event.reason, event.about["kind"]) for event in found.told] == [("Invalid", "Queue")]
    assert (
        "does not serve provisioningrequests.autoscaling.x-k8s.io"
        in found.find(QUEUE, "research")["metadata"]["annotations"][PROBLEM]
    )
    assert untouched(found)
    controller.is_installed = True
    found.run(700)
    assert counts(found) == [4]
    assert PROBLEM not in found.find(QUEUE, "research")["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({CLASS: "Best Effort"}, "'Best Effort' is not the name of a class; write for example 'best-effort-atomic-scale-up.auto"),
        ({PARAMETERS: "600"}, "'600' are no parameters; write texts by name, for example"),
        ({PARAMETERS: '{"a": 1}'}, "Expected `str`, got `int`"),
        ({PARAMETERS: json.dumps({"a": "x" * 256})}, "a request has at most 100, of 255 characters each"),
    ],
)
def test_annotations_that_no_request_could_have_are_reported_on_the_queue(texts: dict[str, str], said: str) -> None:
    queue = asking()
    queue["metadata"]["annotations"] |= texts
    found = stage(queue, *gang())
    assert untouched(found)
    assert said in found.find(QUEUE, "research")["metadata"]["annotations"][PROBLEM]
    assert found.unsettled() == []


# --- followed ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status"), [("Accepted", "True"), ("Provisioned", "True"), ("Provisioned", "False"), ("Failed", "False")]
)
def test_a_request_that_is_being_served_is_waited_for(kind: str, status: str) -> None:
    found = stage(asking(), *gang())
    before = found.names(PROVISIONING_REQUEST)
    end(found, kind, status=status)
    found.run(1000)
    assert found.names(PROVISIONING_REQUEST) == before
    assert reasons(found) == ["ProvisioningRequested"]


def test_a_request_goes_on_when_its_pods_say_that_it_brings_their_nodes() -> None:
    found = stage(asking(), *gang())
    before = found.names(PROVISIONING_REQUEST)
    say(found, NODES_REQUESTED)
    found.run(1000)
    assert found.names(PROVISIONING_REQUEST) == before
    assert reasons(found) == ["ProvisioningRequested"]
    end(found, "Failed")
    found.run(1100)  # the next one comes a minute later
    assert (found.names(PROVISIONING_REQUEST) != before, counts(found)) == (True, [4])


def test_the_request_of_a_gang_that_starts_is_deleted_and_not_before() -> None:
    found = stage(asking(), *gang(tasks=4))
    end(found, "Provisioned")
    bind(found, "train-0", "train-1", "train-2")
    found.run(20)
    assert counts(found) == [4]
    bind(found, "train-3")
    found.run(30)
    assert (found.names(PROVISIONING_REQUEST), found.names(POD_TEMPLATE)) == ([], [])
    assert found.unsettled() == []


@pytest.mark.parametrize("kind", ["Failed", "BookingExpired", "CapacityRevoked"])
def test_a_request_of_which_nothing_comes_is_deleted_and_the_gang_is_told(kind: str) -> None:
    found = stage(asking(), *gang())
    (first,) = found.names(PROVISIONING_REQUEST)
    end(found, kind, "only 2 of 4 nodes came.")
    found.run(20)
    assert (found.names(PROVISIONING_REQUEST), found.names(POD_TEMPLATE)) == ([], [])
    event = found.told[-1]
    assert (event.reason, event.is_warning, event.about["kind"]) == ("ProvisioningFailed", True, "PodGroup")
    assert event.message == (
        f"ProvisioningRequest {first}: {kind}: only 2 of 4 nodes came; it is deleted, so that nodes that came for it are "
        "given back, and nodes are asked for again at 2026-01-01T00:01:11Z"
    )


def test_the_next_request_has_another_name_and_comes_after_twice_as_long_each_time() -> None:
    found = stage(asking(), *gang())
    moments, names, now = list[float](), list[str](), 10.0
    for _ in range(7):
        names += found.names(PROVISIONING_REQUEST)
        end(found, "Failed")
        begun = now
        while now < begun + 5 or not found.names(PROVISIONING_REQUEST):
            now += 1
            found.run(now)
        moments.append(now - begun)
    assert len(set(names)) == 7
    assert [round(moment / 60) for moment in moments] == [1, 2, 4, 8, 16, 30, 30]
    assert consumed(found) == set(found.names(PROVISIONING_REQUEST))


def test_what_has_failed_is_remembered_by_the_group_until_the_gang_starts() -> None:
    found = stage(asking(), *gang(tasks=2))
    end(found, "Failed")
    found.run(20)
    notes = found.find(GROUP, "train")["metadata"]["annotations"]
    assert (notes[FAILURES], notes[RETRY_AT]) == ("1", "2026-01-01T00:01:11Z")
    assert found.unsettled() == []
    bind(found, "train-0", "train-1")
    found.run(30)
    assert FAILURES not in found.find(GROUP, "train")["metadata"].get("annotations", {})


def test_pods_that_come_after_the_start_are_left_to_the_autoscaler_one_by_one() -> None:
    found = stage(asking(), *gang(tasks=4, min_member=2))
    bind(found, "train-0", "train-1")
    found.run(20)
    assert found.names(PROVISIONING_REQUEST) == []
    waiting = [found.find(POD, name)["metadata"]["annotations"] for name in ("train-2", "train-3")]
    assert [CONSUMES in notes for notes in waiting] == [False, False]
    assert found.unsettled() == []


def test_a_gang_that_gets_more_pods_gets_another_request() -> None:
    found = stage(asking(), *gang(tasks=4))
    found.make(build.pod("train-4", group="train", cpu=1))
    say(found, UNSCHEDULABLE)
    found.run(20)
    assert counts(found) == [5]
    assert len(found.names(POD_TEMPLATE)) == 1
    assert found.unsettled() == []


def test_a_gang_that_loses_pods_gets_a_smaller_request_after_a_while() -> None:
    found = stage(asking(), *gang(tasks=4, min_member=2))
    found.store.delete(POD, "default", "train-3")
    found.run(20)
    assert counts(found) == [4]
    found.run(60)
    assert counts(found) == [3]


def test_a_queue_that_changes_its_class_gets_other_requests() -> None:
    found = stage(asking(), *gang())
    found.store.patch(QUEUE, "", "research", {"metadata": {"annotations": {CLASS: CHECK}}})
    found.run(20)
    (request,) = found.store.items(PROVISIONING_REQUEST)
    assert request["spec"]["provisioningClassName"] == CHECK
    assert {pod["metadata"]["annotations"][CONSUMED_CLASS] for pod in found.store.items(POD)} == {CHECK}


def test_a_queue_that_starts_to_ask_asks_for_gangs_that_wait_already_and_stops_for_all() -> None:
    found = stage(build.queue("research"), *gang())
    found.store.patch(QUEUE, "", "research", {"metadata": {"annotations": {CLASS: BEST_EFFORT}}})
    found.run(20)
    assert counts(found) == [4]
    found.store.patch(QUEUE, "", "research", {"metadata": {"annotations": {CLASS: None}}})
    found.run(30)
    assert untouched(found)
    assert found.unsettled() == []


def test_a_request_stays_a_moment_when_nobody_lacks_nodes_and_goes_if_that_lasts() -> None:
    found = stage(asking(), *gang())
    say(found, UNDETERMINED)
    found.run(20)
    (request,) = found.store.items(PROVISIONING_REQUEST)
    assert UNNEEDED_SINCE in request["metadata"]["annotations"]
    say(found, UNSCHEDULABLE)
    found.run(100)
    (request,) = found.store.items(PROVISIONING_REQUEST)
    assert UNNEEDED_SINCE not in request["metadata"]["annotations"]
    say(found, UNDETERMINED)
    found.run(150)
    assert found.names(PROVISIONING_REQUEST) == []


def test_a_gang_that_is_gone_leaves_nothing_behind() -> None:
    found = stage(asking(), *gang(tasks=2))
    for name in ("train-0", "train-1"):
        found.store.delete(POD, "default", name)
    found.store.delete(GROUP, "default", "train")
    found.run(20)
    assert (found.names(PROVISIONING_REQUEST), found.names(POD_TEMPLATE)) == ([], [])


def test_a_template_that_a_crash_left_behind_is_deleted_or_used() -> None:
    found = stage(asking(), *gang())
    (kept,) = found.names(POD_TEMPLATE)
    (left,) = (
        {**item, "metadata": {**item["metadata"], "name": "train-old", "uid": "old"}} for item in found.store.items(POD_TEMPLATE)
    )
    found.make(left)
    found.run(20)
    assert found.names(POD_TEMPLATE) == [kept]
    (name,) = found.names(PROVISIONING_REQUEST)
    found.store.delete(PROVISIONING_REQUEST, "default", name)
    found.run(30)
    assert (found.names(PROVISIONING_REQUEST), found.names(POD_TEMPLATE)) == ([name], [kept])


# --- whatever happens ----------------------------------------------------------------------------------------------------


STEPS = st.lists(
    st.sampled_from([
        "fail", "expire", "provision", "lack", "wait", "bind", "lose", "more", "forget", "ask", "remove", "minute",
    ]),
    max_size=12,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_at_rest_nothing_is_written_and_at_most_one_request_is_there(steps: list[str]) -> None:
    found, now = stage(asking(), *gang(tasks=3, min_member=2)), 10.0
    for number, step in enumerate(steps):
        _play(found, step, number)
        now += 60 if step == "minute" else 5
        found.run(now)
        assert len(found.names(PROVISIONING_REQUEST)) <= 1
    found.run(now + 4000)
    assert found.unsettled() == []
    assert found.problems == []
    asked = {
        item["podTemplateRef"]["name"] for request in found.store.items(PROVISIONING_REQUEST) for item in request["spec"]["podSets"]
    }
    assert set(found.names(POD_TEMPLATE)) == asked


def _play(found: Stage, step: str, number: int) -> None:
    pods = found.names(POD)
    if step in ("fail", "expire", "provision") and found.names(PROVISIONING_REQUEST):
        end(found, {"fail": "Failed", "expire": "BookingExpired", "provision": "Provisioned"}[step])
    if step in ("lack", "wait"):
        say(found, UNSCHEDULABLE if step == "lack" else UNDETERMINED)
    waiting = [name for name in pods if not found.find(POD, name)["spec"].get("nodeName")]
    if step == "bind" and waiting:
        bind(found, waiting[0])
    if step == "lose" and pods:
        found.store.delete(POD, "default", pods[-1])
    if step == "more":
        found.make(build.pod(f"train-more-{number}", group="train", cpu=1))
    if step in ("forget", "ask"):
        found.store.patch(QUEUE, "", "research", {"metadata": {"annotations": {CLASS: BEST_EFFORT if step == "ask" else None}}})
    if step == "remove":
        for name in found.names(PROVISIONING_REQUEST):
            found.store.delete(PROVISIONING_REQUEST, "default", name)


def test_the_kinds_of_queues_that_can_ask_are_those_of_both_projects() -> None:
    assert {QUEUE, KAI_QUEUE} <= set(ProvisioningController.watches)
