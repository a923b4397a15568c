"""What pods have besides: admission, bindings, evictions, and fields that are fixed."""

from typing import Any

import pytest

from phalanx.dialects.gates import GATE, GangGates, plans
from phalanx.model.task import TaskKey
from tests.support.store_contract import Api, binding, eventually, pod

ON_BINDING = 'Operation cannot be fulfilled on pods/binding "a": pod a '
GATES = [{"name": "test.io/quota"}]


def condition(found: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((item for item in found["status"].get("conditions") or () if item["type"] == kind), {})


# --- admission -----------------------------------------------------------------------------------------------------------


def test_a_pod_has_no_priority_unless_it_names_a_class(api: Api) -> None:
    assert api.pod("a")["spec"]["priority"] == 0


def test_a_pod_has_the_priority_of_its_class(api: Api) -> None:
    assert api.pod("a", priorityClassName="system-node-critical")["spec"]["priority"] == 2_000_001_000


def test_what_is_limited_and_not_asked_for_is_asked_for(api: Api) -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    spec = api.pod("a", containers=[{"name": "main", "image": "busybox", "resources": resources}])["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_a_class_may_say_that_its_pods_preempt_nobody(api: Api) -> None:
    place, name = "/apis/scheduling.k8s.io/v1/priorityclasses", f"{api.namespace}-meek"
    assert api.make(place, {"metadata": {"name": name}, "value": 7, "preemptionPolicy": "Never"}).code == 201
    spec = api.pod("a", priorityClassName=name)["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")
    api.remove(f"{place}/{name}")


def test_a_class_that_is_not_there_is_refused(api: Api) -> None:
    refused = api.make("pods", pod("a", priorityClassName="unheard-of"))
    assert refused.refusal == (403, "Forbidden", 'pods "a" is forbidden: no PriorityClass with name unheard-of was found')


def test_a_fresh_pod_waits_and_nothing_was_said_about_it(api: Api) -> None:
    made = api.pod("a")
    assert made["status"]["phase"] == "Pending"
    assert condition(made, "PodScheduled") == {}


def test_a_gated_pod_says_so(api: Api) -> None:
    found = condition(api.pod("a", schedulingGates=GATES), "PodScheduled")
    assert (found["status"], found["reason"]) == ("False", "SchedulingGated")
    assert found["message"] == "Scheduling is blocked due to non-empty scheduling gates"


# --- what may be changed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [{"nodeName": "nowhere-1"}, {"schedulerName": "other"}, {"nodeSelector": {"a": "b"}}, {"priority": 3}],
    ids=lambda spec: next(iter(spec)),
)
def test_most_of_a_pod_is_fixed(api: Api, spec: dict[str, Any]) -> None:
    api.pod("a")
    code, reason, message = api.patch("pods/a", {"spec": spec}).refusal
    assert (code, reason) == (422, "Invalid")
    assert "pod updates may not change fields other than" in message


def test_gates_can_be_removed_and_not_added(api: Api) -> None:
    api.pod("a", schedulingGates=GATES)
    assert api.patch("pods/a", {"spec": {"schedulingGates": [*GATES, {"name": "test.io/more"}]}}).refusal[:2] == (422, "Invalid")
    found = api.patch("pods/a", {"spec": {"schedulingGates": None}}).body
    assert not found["spec"].get("schedulingGates")
    assert condition(found, "PodScheduled")["reason"] == "SchedulingGated", "it stays until a scheduler writes another"


def test_a_gated_pod_is_pinned_and_let_go_in_one_write(api: Api) -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [zone]}}
    made = api.pod("a", schedulingGates=[{"name": GATE}], affinity={"nodeAffinity": required})
    plan = plans({TaskKey("x/a"): "nowhere-1"}, 0.0)[TaskKey("x/a")]
    found = api.patch("pods/a", GangGates().lifted(made, plan))
    assert found.code == 200, found
    assert not found.body["spec"].get("schedulingGates")
    terms = found.body["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{**zone, "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["nowhere-1"]}]}]


def test_labels_and_annotations_are_free(api: Api) -> None:
    api.bound_pod("a")
    assert api.patch("pods/a", {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}).code == 200


# --- binding -------------------------------------------------------------------------------------------------------------


def test_a_binding_gives_a_pod_its_node_and_says_so(api: Api) -> None:
    api.pod("a")
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    api.patch("pods/a/status", {"status": {"conditions": [refused, {"type": "Own", "status": "True"}]}})
    answer = api.bind("a")
    assert (answer.code, answer.body) == (
        201,
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
    )
    found = api.read("pods/a").body
    assert found["spec"]["nodeName"] == "nowhere-1"
    scheduled = condition(found, "PodScheduled")
    assert (scheduled["status"], scheduled.get("reason"), scheduled.get("message")) == ("True", None, None)
    assert condition(found, "Own")["status"] == "True"


def test_a_binding_brings_labels_and_annotations(api: Api) -> None:
    api.pod("a", labels={"old": "1"})
    api.bind("a", meta={"labels": {"new": "2"}, "annotations": {"gpu": "3"}})
    meta = api.read("pods/a").body["metadata"]
    assert meta["labels"] == {"old": "1", "new": "2"}
    assert meta["annotations"]["gpu"] == "3"


def test_bindings_of_the_namespace_are_bindings_too(api: Api) -> None:
    api.pod("a")
    assert api.make("bindings", binding("a", {"kind": "Node", "name": "nowhere-1"})).code == 201
    assert api.read("pods/a").body["spec"]["nodeName"] == "nowhere-1"


@pytest.mark.parametrize("node", ["nowhere-1", "nowhere-2"])
def test_a_pod_is_bound_once(api: Api, node: str) -> None:
    api.bound_pod("a")
    refused = api.bind("a", node)
    assert refused.refusal == (409, "Conflict", f'{ON_BINDING}is already assigned to node "nowhere-1"')
    assert refused.body["details"] == {"name": "a", "kind": "pods/binding"}


def test_a_gated_pod_is_not_bound(api: Api) -> None:
    api.pod("a", schedulingGates=GATES)
    assert api.bind("a").refusal == (409, "Conflict", f"{ON_BINDING}has non-empty .spec.schedulingGates")


def test_a_pod_that_leaves_is_not_bound(api: Api) -> None:
    api.pod("a", finalizers=("test.io/hold",))
    api.remove("pods/a")
    assert api.bind("a").refusal == (409, "Conflict", f"{ON_BINDING}is being deleted, cannot be assigned to a host")
    api.patch("pods/a", {"metadata": {"finalizers": None}})


def test_a_binding_with_a_uid_means_that_pod(api: Api) -> None:
    uid = api.pod("a")["metadata"]["uid"]
    refused = api.bind("a", meta={"uid": "other"})
    storage = f"StorageError: invalid object, Code: 4, Key: /registry/pods/{api.namespace}/a, ResourceVersion: 0"
    text = f"AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    assert refused.refusal == (409, "Conflict", f'Operation cannot be fulfilled on pods "a": {storage}, {text}')
    assert refused.body["details"]["kind"] == "pods"
    assert api.bind("a", meta={"uid": uid}).code == 201


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ({"kind": "Pod", "name": "x"}, 'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'),
        ({"kind": "Node", "name": ""}, "target.name: Required value"),
    ],
    ids=["kind", "name"],
)
def test_a_binding_names_a_node(api: Api, target: dict[str, str], text: str) -> None:
    api.pod("a")
    answer = api.make("pods/a/binding", binding("a", target))
    assert answer.code == 500
    assert text in answer.body["message"]


def test_a_binding_may_leave_the_kind_out_and_name_a_node_that_is_not_there(api: Api) -> None:
    api.pod("a")
    assert api.make("pods/a/binding", binding("a", {"name": "nowhere"})).code == 201


def test_a_binding_on_trial_binds_nothing(api: Api) -> None:
    api.pod("a")
    assert api.bind("a", dryRun="All").code == 201
    assert "nodeName" not in api.read("pods/a").body["spec"]


# --- eviction ------------------------------------------------------------------------------------------------------------

APP = {"app": "train"}
VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


def budget_is_processed(api: Api, name: str) -> bool:
    """Tell whether a controller has counted; a trial is refused in other words before."""
    causes = api.evict(name, dryRun="All").body.get("details", {}).get("causes", [{}])
    return "still being processed" not in causes[0].get("message", "")


def test_an_eviction_lets_a_pod_leave_with_grace(api: Api) -> None:
    api.ready_pod("a")
    answer = api.evict("a")
    assert (answer.code, answer.body["status"]) == (201, "Success")
    found = api.read("pods/a").body
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    target = condition(found, "DisruptionTarget")
    assert (target["status"], target["reason"], target["message"]) == ("True", "EvictionByEvictionAPI", "Eviction API: evicting")


def test_an_eviction_removes_a_pod_without_a_node(api: Api) -> None:
    api.pod("a")
    assert api.evict("a").code == 201
    assert api.read("pods/a").code == 404


def test_a_budget_that_is_spent_refuses_an_eviction(api: Api) -> None:
    for name in ("a", "b"):
        api.ready_pod(name, labels=APP)
    api.budget("budget", needs=2, labels=APP)
    assert eventually(lambda: budget_is_processed(api, "a"))
    refused = api.evict("a")
    assert refused.refusal == (429, "TooManyRequests", VIOLATED)
    cause = {"reason": "DisruptionBudget", "message": "The disruption budget budget needs 2 healthy pods and has 2 currently"}
    assert refused.body["details"]["causes"] == [cause]
    assert api.evict("a", dryRun="All").code == 429
    assert "deletionTimestamp" not in api.read("pods/a").body["metadata"]


def test_a_budget_with_room_lets_one_pod_go_and_not_two(api: Api) -> None:
    for name in ("a", "b", "c"):
        api.ready_pod(name, labels=APP)
    api.budget("budget", needs=2, labels=APP)
    assert eventually(lambda: api.evict("a", dryRun="All").code == 201)
    assert api.evict("a").code == 201
    assert api.evict("b").refusal == (429, "TooManyRequests", VIOLATED)


def test_a_pod_that_does_not_run_may_go_whatever_a_budget_says(api: Api) -> None:
    api.ready_pod("a", labels=APP)
    api.bound_pod("waits", labels=APP)
    api.budget("budget", needs=1, labels=APP)
    assert eventually(lambda: budget_is_processed(api, "a"))
    assert api.evict("waits").code == 201


def test_two_budgets_of_one_pod_are_more_than_the_server_can_do(api: Api) -> None:
    api.ready_pod("a", labels=APP)
    for name in ("one", "two"):
        api.budget(name, needs=0, labels=APP)
    text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert eventually(lambda: api.evict("a", dryRun="All").code == 500)
    assert api.evict("a").refusal[2] == text


def test_an_eviction_with_a_uid_means_that_pod(api: Api) -> None:
    uid = api.ready_pod("a")["metadata"]["uid"]
    code, reason, message = api.evict("a", options={"preconditions": {"uid": "other"}}).refusal
    assert (code, reason) == (409, "Conflict")
    assert f"the UID in the precondition (other) does not match the UID in record ({uid})" in message


def test_an_eviction_names_the_pod_of_its_path(api: Api) -> None:
    api.pod("a")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}}
    refused = api.make("pods/a/eviction", body)
    assert refused.refusal == (400, "BadRequest", "name in URL does not match name in Eviction object")


def test_an_eviction_on_trial_evicts_nobody(api: Api) -> None:
    api.ready_pod("a")
    assert api.evict("a", dryRun="All").code == 201
    assert api.evict("a", options={"dryRun": ["All"]}).code == 201
    assert "deletionTimestamp" not in api.read("pods/a").body["metadata"]
