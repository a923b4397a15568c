"""What our definitions and policies make of objects, and in which words they are refused."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from phalanx.dialects.gates import GATE
from phalanx.manifests.admission_policies import HIERARCHY, HIERARCHY_WEIGHTS, MIN_AVAILABLE, QUEUE_OF_NAMESPACE
from tests.support.http_api import Answer
from tests.support.store_contract import Api, pod

GROUPS, JOBS = "scheduling.volcano.sh/v1beta1:podgroups", "batch.volcano.sh/v1alpha1:jobs"
KAI_GROUPS = "scheduling.run.ai/v2alpha2:podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
KAI_QUEUES, TOPOLOGIES = "/apis/scheduling.run.ai/v2/queues", "/apis/kai.scheduler/v1alpha1/topologies"
HYPERNODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
KINDS = {GROUPS: "PodGroup", KAI_GROUPS: "PodGroup", JOBS: "Job", QUEUES: "Queue", KAI_QUEUES: "Queue", TOPOLOGIES: "Topology",
         HYPERNODES: "HyperNode"}  # fmt: skip


def made(api: Api, place: str, spec: Mapping[str, Any], *, name: str = "it", **meta: Any) -> Answer:
    version = place.removeprefix("/apis/").rpartition("/")[0] if place.startswith("/") else place.partition(":")[0]
    return api.make(place, {"apiVersion": version, "kind": KINDS[place], "metadata": {"name": name, **meta}, "spec": spec})


def refusal(api: Api, place: str, spec: Mapping[str, Any]) -> str:
    answer = made(api, place, spec)
    assert answer.refusal[:2] == (422, "Invalid"), answer
    return answer.refusal[2]


@pytest.fixture
def queue(api: Api) -> Iterator[str]:
    """The name of a queue that is gone after the test."""
    yield f"queue-{api.namespace}"
    api.remove(f"{QUEUES}/queue-{api.namespace}")


@contextmanager
def another_namespace(api: Api, **meta: Any) -> Iterator[Api]:
    other = Api(api.connection, f"{api.namespace}-other")
    place = "/api/v1/namespaces"
    assert api.make(place, {"metadata": {"name": other.namespace, **meta}}).code == 201
    yield other
    api.remove(f"{place}/{other.namespace}")


# --- defaults ------------------------------------------------------------------------------------------------------------


def test_a_group_gets_its_defaults(api: Api) -> None:
    spec = {"networkTopology": {"highestTierAllowed": 1}, "subGroupPolicy": [{"name": "a"}]}
    assert made(api, GROUPS, spec).body["spec"] == {
        "queue": "default", "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
        "subGroupPolicy": [{"name": "a", "subGroupSize": 1, "minSubGroups": 0}],
    }  # fmt: skip


def test_a_queue_gets_its_defaults(api: Api, queue: str) -> None:
    spec = made(api, QUEUES, {}, name=queue).body["spec"]
    assert spec == {"weight": 1, "reclaimable": True, "dequeueStrategy": "traverse"}


def test_a_job_gets_names_and_minima(api: Api) -> None:
    partitions = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}
    tasks = [{"replicas": 3}, {"name": "w", "replicas": 8, "partitionPolicy": partitions}, {"replicas": 5, "minAvailable": 1}]
    spec = made(api, JOBS, {"tasks": tasks}).body["spec"]
    assert [(task["name"], task["minAvailable"]) for task in spec["tasks"]] == [("default0", 3), ("w", 6), ("default2", 1)]
    assert (spec["minAvailable"], spec["maxRetry"], spec["schedulerName"], spec["queue"]) == (10, 3, "volcano", "default")


def test_what_a_job_says_itself_stays(api: Api) -> None:
    spec = {"minAvailable": 2, "schedulerName": "mine", "maxRetry": 0, "queue": "q"}
    found = made(api, JOBS, {**spec, "tasks": [{"name": "a", "replicas": 3}]}).body["spec"]
    assert {key: found[key] for key in spec} == spec


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"mpi": []}, {"mpi", "ssh", "svc"}),
        ({"pytorch": []}, {"pytorch", "svc"}),
        ({"env": []}, {"env"}),
        ({"ssh": ["-x"]}, {"ssh"}),
    ],
)
def test_plugins_bring_those_they_need(api: Api, given: dict[str, list[str]], expected: set[str]) -> None:
    found = made(api, JOBS, {"plugins": given, "tasks": [{"replicas": 1}]}).body["spec"]["plugins"]
    assert set(found) == expected
    assert {key: found[key] for key in given} == given


def test_pods_on_the_network_of_the_host_find_names(api: Api) -> None:
    template = {"spec": {"hostNetwork": True, "containers": [{"name": "main"}]}}
    own = {"spec": {**template["spec"], "dnsPolicy": "None"}}
    found = made(api, JOBS, {"tasks": [{"template": template}, {"template": own}]}).body["spec"]["tasks"]
    assert [task["template"]["spec"]["dnsPolicy"] for task in found] == ["ClusterFirstWithHostNet", "None"]


@pytest.mark.parametrize(("asked", "given"), [(None, "research"), ("default", "research"), ("own", "own")])
def test_a_group_goes_to_the_queue_of_its_namespace(api: Api, asked: str | None, given: str) -> None:
    spec = {"minMember": 1, **({"queue": asked} if asked else {})}
    with another_namespace(api, annotations={QUEUE_OF_NAMESPACE: "research"}) as lab:
        assert made(lab, GROUPS, spec).body["spec"]["queue"] == given
    assert made(api, GROUPS, spec).body["spec"]["queue"] == (asked or "default")


def test_a_path_of_queues_begins_at_the_root(api: Api, queue: str) -> None:
    found = made(api, QUEUES, {}, name=queue, annotations={HIERARCHY: "eng/dev", HIERARCHY_WEIGHTS: "2/8"}).body
    assert found["metadata"]["annotations"] == {HIERARCHY: "root/eng/dev", HIERARCHY_WEIGHTS: "1/2/8"}
    again = api.patch(f"{QUEUES}/{queue}", {"metadata": {"labels": {"a": "b"}}}).body
    assert again["metadata"]["annotations"] == found["metadata"]["annotations"]


# --- gates ---------------------------------------------------------------------------------------------------------------

GATED = {"phalanx.dev/gates": "enabled"}


def gates(answer: Answer) -> list[str]:
    return [gate["name"] for gate in answer.body["spec"].get("schedulingGates") or ()]


def test_pods_of_gangs_are_gated_where_the_namespace_asks_for_it(api: Api) -> None:
    with another_namespace(api, labels=GATED) as gated:
        for place, name in ((gated, "train"), (gated, ""), (api, "train")):
            labels = {"phalanx.dev/gang": name} if name else {"app": "web"}
            expected = [GATE] if place is gated and name else []
            assert gates(place.make("pods", pod(f"pod-{name or 'web'}", labels=labels))) == expected


@pytest.mark.parametrize("given", [["test.io/other"], [GATE, "test.io/other"]])
def test_gates_that_a_pod_has_stay(api: Api, given: list[str]) -> None:
    with another_namespace(api, labels=GATED) as gated:
        made = pod("a", labels={"phalanx.dev/gang": "train"}, schedulingGates=[{"name": gate} for gate in given])
        assert sorted(gates(gated.make("pods", made))) == sorted(["test.io/other", GATE])


def test_a_gate_that_was_removed_does_not_come_back(api: Api) -> None:
    with another_namespace(api, labels=GATED) as gated:
        gated.pod("a", labels={"phalanx.dev/gang": "train"})
        assert gates(gated.patch("pods/a", {"spec": {"schedulingGates": None}})) == []


# --- refusals ------------------------------------------------------------------------------------------------------------

GROUP = 'PodGroup.scheduling.volcano.sh "it" is invalid: '
KAI_GROUP = 'PodGroup.scheduling.run.ai "it" is invalid: '
REST = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
WRONG_TYPE = 'Invalid value: "{1}": spec.minMember in body must be of type {0}: "{1}"'


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"minMember": -1}, "spec.minMember", "Invalid value: -1: spec.minMember in body should be greater than or equal to 0"),
        ({"minMember": 2**31}, "<nil>", 'Invalid value: "": Checked value must be of type integer with format int32 in spec.min'),
        ({"minResources": {"cpu": "four"}}, "spec.minResources.cpu", 'Invalid value: "four": spec.minResources.cpu in body '),
    ],
    ids=["negative", "large", "quantity"],
)
def test_what_is_out_of_bounds_is_refused(api: Api, spec: dict[str, Any], field: str, text: str) -> None:
    assert refusal(api, GROUPS, spec).startswith(f"{GROUP}{field}: {text}")


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"minMember": "4"}, "minMember", WRONG_TYPE.format("integer", "string")),
        ({"minMember": True}, "minMember", WRONG_TYPE.format("int32", "")),
        ({"minMember": [1]}, "minMember", WRONG_TYPE.format("integer", "array")),
        ({"networkTopology": {"mode": "a"}}, "networkTopology.mode", 'Unsupported value: "a": supported values: "hard", "soft"'),
        ({"queue": "q" * 254}, "queue", "Too long: may not be more than 253 bytes"),
    ],
    ids=["text", "boolean", "list", "mode", "long"],
)
def test_what_has_the_wrong_form_keeps_rules_from_being_looked_at(api: Api, spec: dict[str, Any], field: str, text: str) -> None:
    assert refusal(api, GROUPS, spec) == f"{GROUP}[spec.{field}: {text}, {REST}]"


def test_lists_have_bounds(api: Api) -> None:
    start = 'Topology.kai.scheduler "it" is invalid: '
    assert refusal(api, TOPOLOGIES, {"levels": []}) == (
        f"{start}spec.levels: Invalid value: 0: spec.levels in body should have at least 1 items"
    )
    many = [{"nodeLabel": f"level-{number}"} for number in range(17)]
    assert refusal(api, TOPOLOGIES, {"levels": many}) == f"{start}[spec.levels: Too many: 17: must have at most 16 items, {REST}]"


def test_what_is_missing_is_named(api: Api) -> None:
    text = refusal(api, HYPERNODES, {"members": [{}]})
    start = 'HyperNode.topology.volcano.sh "it" is invalid: '
    parts = text.removeprefix(f"{start}[").removesuffix(f", {REST}]").split(", ")
    assert sorted(parts) == ["spec.members[0].type: Required value", "spec.tier: Required value"], "the order is chance"


def test_null_is_as_good_as_nothing(api: Api) -> None:
    assert made(api, GROUPS, {"minMember": None, "networkTopology": None, "queue": None}).body["spec"] == {"queue": "default"}


def test_every_broken_rule_is_named_at_once(api: Api) -> None:
    text = refusal(api, KAI_GROUPS, {"subGroups": [{"name": "a", "parent": "b"}, {"name": "a"}]})
    names = "two sub-groups have one name; give each its own"
    parents = "a parent is not there; write the name of a sub-group of this object"
    assert text == f"{KAI_GROUP}[spec.subGroups: Invalid value: {names}, spec.subGroups: Invalid value: {parents}]"


def test_a_rule_about_a_number_shows_it(api: Api) -> None:
    text = refusal(api, KAI_QUEUES, {"resources": {"gpu": {"quota": -2.5}}})
    assert text.endswith("spec.resources.gpu.quota: Invalid value: -2.5: write 0 or more, or -1 for no bound")


def test_a_policy_refuses_a_change(api: Api) -> None:
    made(api, JOBS, {"tasks": [{"name": "a", "replicas": 1}]})
    code, reason, message = api.patch(f"{JOBS}/it", {"spec": {"queue": "other"}}).refusal
    assert (code, reason) == (422, "Invalid")
    start = "jobs.batch.volcano.sh \"it\" is forbidden: ValidatingAdmissionPolicy 'phalanx-job-update' with binding "
    assert message.startswith(f"{start}'phalanx-job-update' denied request: of a job only")
    assert api.patch(f"{JOBS}/it", {"spec": {"minAvailable": 0}}).code == 200


def test_a_policy_keeps_the_first_queue(api: Api) -> None:
    made(api, QUEUES, {}, name="default")
    assert "root and default are always there" in api.remove(f"{QUEUES}/default").refusal[2]


def test_a_policy_refuses_a_pod_with_a_wrong_bound(api: Api) -> None:
    document = pod("a")
    document["metadata"]["annotations"] = {MIN_AVAILABLE: "100%"}
    assert f"write a number above 0, or a part from 1% to 99%, into {MIN_AVAILABLE}" in api.make("pods", document).refusal[2]


@pytest.mark.parametrize("tasks", [["a"], "a", [{"replicas": "many"}]], ids=["item", "list", "number"])
def test_what_a_policy_cannot_change_is_refused(api: Api, tasks: object) -> None:
    code, reason, message = made(api, JOBS, {"tasks": tasks}).refusal
    assert (code, reason) == (403, "Invalid")
    assert message.startswith("policy 'phalanx-job-defaults' with binding 'phalanx-job-defaults' denied request: ")


# --- what is looked at ---------------------------------------------------------------------------------------------------


def test_unknown_fields_are_dropped_outside_of_templates(api: Api) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "new": 1}], "newField": {"x": 1}}}
    tasks = [{"name": "a", "template": template, "templates": {}}]
    spec = made(api, JOBS, {"tasks": tasks, "minAvailabel": 1}).body["spec"]
    assert spec["tasks"][0]["template"] == template
    assert "templates" not in spec["tasks"][0]
    assert "minAvailabel" not in spec
