"""Objects on their way into the embedded cluster: defaults, changes by policies, and the words of refusals."""

from collections.abc import Mapping
from typing import Any

import pytest

from phalanx.dialects.gates import GATE
from phalanx.errors import Invalid
from phalanx.manifests.policies import HIERARCHY, HIERARCHY_WEIGHTS, QUEUE_OF_NAMESPACE
from phalanx.model.kinds import NAMESPACE, POD, Document, kind_of
from phalanx.store.memory import MemoryStore

VOLCANO, BATCH, KAI = "scheduling.volcano.sh/v1beta1", "batch.volcano.sh/v1alpha1", "scheduling.run.ai/v2alpha2"
LINKS: list[tuple[str, str]] = [
    ("labels", "phalanx.dev/gang"),
    ("labels", "scheduling.x-k8s.io/pod-group"),
    ("labels", "pod-group.scheduling.sigs.k8s.io"),
    ("labels", "pod-group.scheduling.sigs.k8s.io/name"),
    ("annotations", "scheduling.k8s.io/group-name"),
    ("annotations", "pod-group-name"),
    ("annotations", "gang.scheduling.koordinator.sh/name"),
    ("labels", "kueue.x-k8s.io/pod-group-name"),
    ("annotations", "kueue.x-k8s.io/pod-group-name"),
    ("labels", "yunikorn.apache.org/app-id"),
    ("annotations", "yunikorn.apache.org/app-id"),
]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(lambda: 0.0)


def thing(api_version: str, kind: str, spec: Mapping[str, Any] | None = None, **meta: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "it", **meta}, **({} if spec is None else {"spec": spec})}


def pod(**meta: Any) -> Document:
    return thing("v1", "Pod", {"containers": [{"name": "main", "image": "train:1"}]}, **meta)


def refusal(store: MemoryStore, document: Document) -> str:
    with pytest.raises(Invalid) as caught:
        store.create(document)
    return str(caught.value)


# --- defaults ------------------------------------------------------------------------------------------------------------


def test_a_group_gets_its_defaults(store: MemoryStore) -> None:
    spec = {"networkTopology": {"highestTierAllowed": 1}, "subGroupPolicy": [{"name": "a"}]}
    assert store.create(thing(VOLCANO, "PodGroup", spec))["spec"] == {
        "queue": "default", "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
        "subGroupPolicy": [{"name": "a", "subGroupSize": 1, "minSubGroups": 0}],
    }  # fmt: skip


def test_a_queue_gets_its_defaults(store: MemoryStore) -> None:
    made = store.create(thing(VOLCANO, "Queue", {}))
    assert made["spec"] == {"weight": 1, "reclaimable": True, "dequeueStrategy": "traverse"}


def test_a_job_gets_names_and_minima(store: MemoryStore) -> None:
    partitions = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}
    tasks = [{"replicas": 3}, {"name": "w", "replicas": 8, "partitionPolicy": partitions}, {"replicas": 5, "minAvailable": 1}]
    spec = store.create(thing(BATCH, "Job", {"tasks": tasks}))["spec"]
    assert [(task["name"], task["minAvailable"]) for task in spec["tasks"]] == [("default0", 3), ("w", 6), ("default2", 1)]
    assert (spec["minAvailable"], spec["maxRetry"], spec["schedulerName"], spec["queue"]) == (10, 3, "volcano", "default")


def test_what_a_job_says_itself_stays(store: MemoryStore) -> None:
    spec = {"minAvailable": 2, "schedulerName": "mine", "maxRetry": 0, "queue": "q", "tasks": [{"name": "a", "replicas": 3}]}
    made = store.create(thing(BATCH, "Job", spec))["spec"]
    assert {key: made[key] for key in ("minAvailable", "schedulerName", "maxRetry", "queue")} == {
        key: spec[key] for key in ("minAvailable", "schedulerName", "maxRetry", "queue")
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"mpi": []}, {"mpi", "ssh", "svc"}),
        ({"pytorch": []}, {"pytorch", "svc"}),
        ({"env": []}, {"env"}),
        ({"ssh": ["-x"]}, {"ssh"}),
    ],
)
def test_plugins_bring_those_they_need(store: MemoryStore, given: dict[str, list[str]], expected: set[str]) -> None:
    made = store.create(thing(BATCH, "Job", {"plugins": given, "tasks": [{"replicas": 1}]}))["spec"]["plugins"]
    assert set(made) == expected
    assert {key: made[key] for key in given} == given


def test_pods_on_the_network_of_the_host_find_names(store: MemoryStore) -> None:
    template = {"spec": {"hostNetwork": True, "containers": [{"name": "main"}]}}
    own = {"spec": {**template["spec"], "dnsPolicy": "None"}}
    made = store.create(thing(BATCH, "Job", {"tasks": [{"template": template}, {"template": own}]}))["spec"]["tasks"]
    assert [task["template"]["spec"]["dnsPolicy"] for task in made] == ["ClusterFirstWithHostNet", "None"]


@pytest.mark.parametrize(("asked", "given"), [(None, "research"), ("default", "research"), ("own", "own")])
def test_a_group_goes_to_the_queue_of_its_namespace(store: MemoryStore, asked: str | None, given: str) -> None:
    store.create(thing("v1", "Namespace", name="lab", annotations={QUEUE_OF_NAMESPACE: "research"}))
    spec = {"minMember": 1, **({"queue": asked} if asked else {})}
    assert store.create(thing(VOLCANO, "PodGroup", spec, namespace="lab"))["spec"]["queue"] == given
    assert store.create(thing(VOLCANO, "PodGroup", {"minMember": 1}))["spec"]["queue"] == "default"


def test_a_path_of_queues_begins_at_the_root(store: MemoryStore) -> None:
    made = store.create(thing(VOLCANO, "Queue", {}, annotations={HIERARCHY: "eng/dev", HIERARCHY_WEIGHTS: "2/8"}))
    assert made["metadata"]["annotations"] == {HIERARCHY: "root/eng/dev", HIERARCHY_WEIGHTS: "1/2/8"}
    again = store.patch(kind_of(made), "", "it", {"metadata": {"labels": {"a": "b"}}})
    assert again["metadata"]["annotations"] == made["metadata"]["annotations"]


# --- gates ---------------------------------------------------------------------------------------------------------------


def gates(document: Document) -> list[str]:
    return [gate["name"] for gate in document["spec"].get("schedulingGates", ())]


@pytest.mark.parametrize(("where", "key"), LINKS)
def test_pods_of_gangs_are_gated_where_the_namespace_asks_for_it(store: MemoryStore, where: str, key: str) -> None:
    store.create(thing("v1", "Namespace", name="gated", labels={"phalanx.dev/gates": "enabled"}))
    assert gates(store.create(pod(namespace="gated", **{where: {key: "train"}}))) == [GATE]
    assert gates(store.create(pod(namespace="default", **{where: {key: "train"}}))) == []


def test_a_pod_of_its_own_is_not_gated(store: MemoryStore) -> None:
    store.create(thing("v1", "Namespace", name="gated", labels={"phalanx.dev/gates": "enabled"}))
    assert gates(store.create(pod(namespace="gated", labels={"app": "web"}))) == []


@pytest.mark.parametrize(("scheduler", "found"), [("yunikorn", [GATE]), ("default-scheduler", []), ("", [])])
def test_labels_that_others_use_too_make_a_gang_under_their_scheduler_alone(
    store: MemoryStore, scheduler: str, found: list[str]
) -> None:
    store.create(thing("v1", "Namespace", name="gated", labels={"phalanx.dev/gates": "enabled"}))
    document = pod(namespace="gated", labels={"spark-app-selector": "spark"})
    spec = {**document["spec"], **({"schedulerName": scheduler} if scheduler else {})}
    assert gates(store.create({**document, "spec": spec})) == found


def test_gates_that_a_pod_has_stay(store: MemoryStore) -> None:
    store.create(thing("v1", "Namespace", name="gated", labels={"phalanx.dev/gates": "enabled"}))
    for name, given in {"a": ["other"], "b": [GATE, "other"]}.items():
        document = pod(namespace="gated", name=name, labels={GATE: "train"})
        made = store.create({**document, "spec": {**document["spec"], "schedulingGates": [{"name": gate} for gate in given]}})
        assert sorted(gates(made)) == ["other", GATE]


def test_a_gate_that_was_removed_does_not_come_back(store: MemoryStore) -> None:
    store.create(thing("v1", "Namespace", name="gated", labels={"phalanx.dev/gates": "enabled"}))
    store.create(pod(namespace="gated", labels={GATE: "train"}))
    assert gates(store.patch(POD, "gated", "it", {"spec": {"schedulingGates": None}})) == []


# --- refusals ------------------------------------------------------------------------------------------------------------

GROUP = 'PodGroup.scheduling.volcano.sh "it" is invalid: '
KAI_GROUP = 'PodGroup.scheduling.run.ai "it" is invalid: '
REST = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


WRONG_TYPE = 'Invalid value: "{0}": spec.minMember in body must be of type integer: "{0}"'


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"minMember": -1}, "minMember", "Invalid value: -1: spec.minMember in body should be greater than or equal to 0"),
        ({"minMember": 2**31}, "minMember", "Invalid value: 2147483648: spec.minMember in body must be of type int32: 2147483648"),
        ({"minResources": {"cpu": "four"}}, "minResources.cpu", 'Invalid value: "four": spec.minResources.cpu in body should '),
    ],
)
def test_what_is_out_of_bounds_is_refused_as_by_the_api_server(
    store: MemoryStore, spec: dict[str, Any], field: str, text: str
) -> None:
    assert refusal(store, thing(VOLCANO, "PodGroup", spec)).startswith(f"{GROUP}spec.{field}: {text}")


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"minMember": "4"}, "minMember", WRONG_TYPE.format("string")),
        ({"minMember": True}, "minMember", WRONG_TYPE.format("boolean")),
        ({"minMember": None}, "minMember", WRONG_TYPE.format("null")),
        ({"networkTopology": {"mode": "a"}}, "networkTopology.mode", 'Unsupported value: "a": supported values: "hard", "soft"'),
        ({"queue": "q" * 254}, "queue", "Too long: may not be more than 253 bytes"),
    ],
)
def test_what_has_the_wrong_form_keeps_rules_from_being_looked_at(
    store: MemoryStore, spec: dict[str, Any], field: str, text: str
) -> None:
    assert refusal(store, thing(VOLCANO, "PodGroup", spec)) == f"{GROUP}[spec.{field}: {text}, {REST}]"


def test_lists_have_bounds(store: MemoryStore) -> None:
    start = 'Topology.kai.scheduler "it" is invalid: '
    text = refusal(store, thing("kai.scheduler/v1alpha1", "Topology", {"levels": []}))
    assert text == f"{start}spec.levels: Invalid value: 0: spec.levels in body should have at least 1 items"
    many = [{"nodeLabel": f"level-{number}"} for number in range(17)]
    text = refusal(store, thing("kai.scheduler/v1alpha1", "Topology", {"levels": many}))
    assert text == f"{start}[spec.levels: Too many: 17: must have at most 16 items, {REST}]"


def test_what_is_missing_is_named(store: MemoryStore) -> None:
    text = refusal(store, thing("topology.volcano.sh/v1alpha1", "HyperNode", {"members": [{}]}))
    start = 'HyperNode.topology.volcano.sh "it" is invalid: '
    assert text == f"{start}[spec.tier: Required value, spec.members[0].type: Required value, {REST}]"


def test_every_broken_rule_is_named_at_once(store: MemoryStore) -> None:
    text = refusal(store, thing(KAI, "PodGroup", {"subGroups": [{"name": "a", "parent": "b"}, {"name": "a"}]}))
    names = "two sub-groups have one name; give each its own"
    parents = "a parent is not there; write the name of a sub-group of this object"
    assert text == f"{KAI_GROUP}[spec.subGroups: Invalid value: {names}, spec.subGroups: Invalid value: {parents}]"


def test_a_rule_about_a_number_shows_it(store: MemoryStore) -> None:
    text = refusal(store, thing("scheduling.run.ai/v2", "Queue", {"resources": {"gpu": {"quota": -2.5}}}))
    assert text.endswith("spec.resources.gpu.quota: Invalid value: -2.5: write 0 or more, or -1 for no bound")


def test_a_policy_refuses_in_the_words_of_the_api_server(store: MemoryStore) -> None:
    store.create(thing(BATCH, "Job", {"tasks": [{"name": "a", "replicas": 1}]}))
    with pytest.raises(Invalid) as caught:
        store.patch(kind_of(thing(BATCH, "Job")), "default", "it", {"spec": {"queue": "other"}})
    start = "jobs.batch.volcano.sh \"it\" is forbidden: ValidatingAdmissionPolicy 'phalanx-job-update' with binding "
    assert str(caught.value).startswith(f"{start}'phalanx-job-update' denied request: of a job only")


def test_what_a_policy_cannot_read_is_refused(store: MemoryStore) -> None:
    assert "resulted in error" in refusal(store, thing(BATCH, "Job", {"tasks": ["a"]}))


# --- what is looked at ---------------------------------------------------------------------------------------------------


def test_unknown_fields_are_dropped_outside_of_templates(store: MemoryStore) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "new": 1}], "newField": {"x": 1}}}
    made = store.create(thing(BATCH, "Job", {"tasks": [{"name": "a", "template": template, "templates": {}}], "minAvailabel": 1}))
    assert made["spec"]["tasks"][0]["template"] == template
    assert "templates" not in made["spec"]["tasks"][0]
    assert "minAvailabel" not in made["spec"]


def test_a_status_and_metadata_are_written_unseen(store: MemoryStore) -> None:
    broken = store.load(thing(VOLCANO, "PodGroup", {"minMember": -1}))
    kind = kind_of(broken)
    assert store.patch(kind, "default", "it", {"status": {"phase": "Nowhere"}}, is_status=True)["status"] == {"phase": "Nowhere"}
    assert store.patch(kind, "default", "it", {"metadata": {"labels": {"a": "b"}}})["spec"] == {"minMember": -1}
    with pytest.raises(Invalid, match=r"spec\.minMember"):
        store.patch(kind, "default", "it", {"spec": {"queue": "q"}})
    assert store.patch(kind, "default", "it", {"spec": {"minMember": 1}})["status"] == {"phase": "Nowhere"}


def test_what_was_stored_without_defaults_does_not_change_by_getting_them(store: MemoryStore) -> None:
    old = store.load(thing(BATCH, "Job", {"tasks": [{"name": "a", "replicas": 2}]}))
    changed = store.patch(kind_of(old), "default", "it", {"spec": {"minAvailable": 1}})["spec"]
    assert (changed["minAvailable"], changed["queue"], changed["maxRetry"]) == (1, "default", 3)
    with pytest.raises(Invalid, match="of a job only minAvailable"):
        store.patch(kind_of(old), "default", "it", {"spec": {"queue": "other"}})


def test_what_is_refused_leaves_no_trace(store: MemoryStore) -> None:
    before = store.history.version
    refusal(store, thing(VOLCANO, "PodGroup", {"minMember": -1}))
    assert store.history.version == before
    assert store.find(kind_of(thing(VOLCANO, "PodGroup")), "default", "it") is None


def test_built_in_kinds_are_left_alone(store: MemoryStore) -> None:
    made = store.create(thing("v1", "Namespace", {"whatever": True}, name="lab"))
    assert store.get(NAMESPACE, "", "lab")["spec"] == made["spec"] == {"whatever": True}
