"""The pod grouper: whose pods it takes, what a group says, and what becomes of owners that cannot be grouped."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from phalanx.controllers.controller import NOTHING, Create, Key, Patch, RecordEvent, Result
from phalanx.controllers.grouper.controller import WARNING, PodGrouper
from phalanx.controllers.grouper.rules import owner_kinds, read_kinds
from phalanx.controllers.grouper.settings import GrouperSettings, read_settings
from phalanx.controllers.objects import meta_of
from phalanx.controllers.podgroup import PodGroupController
from phalanx.dialects.group_references import GROUP, KAI_GROUP
from phalanx.errors import ConfigError
from phalanx.model.kinds import GROUP_BY_DIALECT, KINDS, POD, Document, Kind, kind_of
from phalanx.store.memory import MemoryStore
from tests.support import owned_pods as workloads
from tests.support.owned_pods import owner, pod

JOB_SET = {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 2, "completions": 2}}}]}
GROUPS = GROUP_BY_DIALECT["kai"]
QUEUE, PRIORITY, PREEMPTIBILITY = "kai.scheduler/queue", "priorityClassName", "kai.scheduler/preemptibility"
MASTER = {"training.kubeflow.org/replica-type": "master"}


def priority_class(name: str) -> Document:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 10}


def torch(workers: int = 3, **more: Any) -> dict[str, Any]:
    spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": workers}}}
    return owner("kubeflow.org/v1", "PyTorchJob", spec=spec, **more)


def stateful(**more: Any) -> dict[str, Any]:
    return owner("apps/v1", "StatefulSet", **more)


def told(store: MemoryStore, name: str = "train-0", settings: GrouperSettings | None = None) -> list[tuple[str, str]]:
    """Return about whom something was told, and what; there must be no other write."""
    writes = workloads.asked(store, name, settings).writes
    events = [write for write in writes if isinstance(write, RecordEvent)]
    assert len(events) == len(writes)
    assert all(event.is_warning and event.reason == WARNING for event in events)
    return [(event.about["kind"], event.message) for event in events]


# --- whose pods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano", ""])
def test_pods_of_other_schedulers_are_left_alone(scheduler: str) -> None:
    assert not workloads.asked(workloads.store(pod(scheduler=scheduler))).writes


def test_scheduler_names_are_a_setting() -> None:
    settings = read_settings({"schedulerNames": ["ours"]})
    assert workloads.grouped(workloads.store(pod(scheduler="ours")), settings=settings)
    assert not workloads.asked(workloads.store(pod()), settings=settings).writes


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "Deployment", "DaemonSet", ""])
def test_plain_pods_for_phalanx_are_left_to_another_controller(kind: str) -> None:
    top = owner("apps/v1", kind) if kind else None
    assert not workloads.asked(workloads.store(*([top] if top else []), pod(by=top, scheduler="phalanx"))).writes


@pytest.mark.parametrize("on_owner", [True, False])
def test_plain_pods_for_phalanx_are_grouped_here_if_our_annotation_says_how_large_the_gang_is(*, on_owner: bool) -> None:
    says = {"phalanx.dev/min-member": "3"}
    top = owner("apps/v1", "Deployment", annotations=says if on_owner else {})
    sets = owner("apps/v1", "ReplicaSet", by=top)
    store = workloads.store(top, sets, pod(by=sets, scheduler="phalanx", annotations={} if on_owner else says))
    assert PodGrouper().is_responsible_for(store, store.get(POD, "default", "train-0"))
    assert workloads.grouped(store)["spec"]["minMember"] == 3


def test_a_bare_pod_for_phalanx_is_left_to_another_controller_whatever_it_says() -> None:
    assert workloads.asked(workloads.store(pod(scheduler="phalanx", annotations={"phalanx.dev/min-member": "3"}))) == NOTHING


def test_workloads_for_phalanx_are_grouped_in_the_queue_that_is_always_there() -> None:
    top = torch()
    group = workloads.grouped(workloads.store(top, pod(by=top, labels=MASTER, scheduler="phalanx")))
    assert group["spec"]["queue"] == "default"


@pytest.mark.parametrize(
    "link",
    [
        {"annotations": {KAI_GROUP: "mine"}}, {"annotations": {GROUP: "mine"}},
        {"labels": {"scheduling.x-k8s.io/pod-group": "mine"}}, {"labels": {"pod-group.scheduling.sigs.k8s.io": "mine"}},
        {"annotations": {"gang.scheduling.koordinator.sh/name": "mine"}},
    ],
)  # fmt: skip
def test_a_pod_that_names_its_group_is_left_alone(link: Mapping[str, Mapping[str, str]]) -> None:
    top = stateful()
    for by in (None, top):
        found = pod(by=by)
        found["metadata"] |= link
        assert not workloads.asked(workloads.store(top, found)).writes


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_needs_no_group(phase: str) -> None:
    assert not workloads.asked(workloads.store({**pod(), "status": {"phase": phase}})).writes


def test_an_owner_that_is_only_named_counts_by_its_reference_if_its_size_does_not_matter() -> None:
    assert workloads.grouped(workloads.store(pod(by=stateful())))["metadata"]["name"] == "pg-train-statefulset-train"


def test_an_owner_that_was_made_anew_is_another_one() -> None:
    old, new = stateful(), stateful()
    new["metadata"] |= {"uid": "second", "labels": {QUEUE: "research"}}
    group = workloads.grouped(workloads.store(new, pod(by=old)))
    assert group["metadata"]["ownerReferences"][0]["uid"] == "statefulset-train"
    assert group["spec"]["queue"] == "default-queue"


def test_owners_that_own_each_other_end_the_way_up() -> None:
    first, second = stateful(), owner("apps/v1", "ReplicaSet", "other")
    first["metadata"]["ownerReferences"] = pod(by=second)["metadata"]["ownerReferences"]
    second["metadata"]["ownerReferences"] = pod(by=first)["metadata"]["ownerReferences"]
    store = workloads.store(first, second, pod(by=first))
    assert workloads.grouped(store)["metadata"]["name"] == "pg-other-replicaset-other"
    assert list(PodGrouper().concerns(store, kind_of(second), second)) == [Key("default", "train-0")]


def test_owners_that_own_each_other_are_told_about() -> None:
    first, second = stateful(), owner("apps/v1", "ReplicaSet", "other", by=stateful())
    first["metadata"]["ownerReferences"] = pod(by=second)["metadata"]["ownerReferences"]
    says = "ReplicaSet default/other: metadata.ownerReferences: its owners own each other, so it counts as the top"
    assert said(workloads.store(first, second, pod(by=first))) == [("Pod", f"{says}; remove one of the references")]


def test_an_owner_that_is_gone_is_told_about() -> None:
    says = "StatefulSet default/train: is not there, so only its name counts; create it, or delete its pods"
    assert said(workloads.store(pod(by=stateful()))) == [("Pod", says)]


def test_an_owner_of_a_kind_that_nobody_watches_counts_by_its_reference() -> None:
    assert said(workloads.store(pod(by=owner("v1", "ConfigMap")))) == []


def said(store: MemoryStore) -> list[tuple[str, str]]:
    """Return about whom something was told, and what."""
    writes = workloads.asked(store).writes
    return [(write.about["kind"], write.message) for write in writes if isinstance(write, RecordEvent)]


# --- owners that are not shown -------------------------------------------------------------------------------------------

PATIENT = GrouperSettings(owner_patience_seconds=5.0)


class Veiled(MemoryStore):
    """A store that hides jobs of Kubeflow."""

    def is_hidden(self, kind: Kind) -> bool:
        return kind.group == "kubeflow.org"


def young(by: Document, **more: Any) -> dict[str, Any]:
    """Return a pod that was made two seconds ago."""
    found = pod(by=by, **more)
    found["metadata"]["creationTimestamp"] = "1970-01-01T00:16:38Z"
    return found


def test_an_owner_that_a_watch_has_not_told_of_yet_is_waited_for() -> None:
    top = owner("jobset.x-k8s.io/v1alpha2", "JobSet", spec=JOB_SET)
    job = owner("batch/v1", "Job", "train-workers-0", by=top)
    store = workloads.store(young(job, labels={"jobset.sigs.k8s.io/replicatedjob-name": "workers"}))
    for late in (job, top):
        assert workloads.asked(store, settings=PATIENT) == Result((), 1003.0)
        store.load(late)
    assert workloads.grouped(store, settings=PATIENT)["spec"]["minMember"] == 4


def test_nobody_groups_a_pod_while_its_owner_is_waited_for() -> None:
    grouper = PodGrouper(PATIENT)
    controller = PodGroupController(frozenset({"phalanx"}), grouper.is_responsible_for, grouper.awaits_owner)
    store = workloads.store(young(stateful(), scheduler="phalanx"))
    assert controller.reconcile(store, Key("default", "train-0")) == Result((), 1003.0)
    store.load(stateful())
    assert any(isinstance(write, Create) for write in controller.reconcile(store, Key("default", "train-0")).writes)


def test_an_owner_that_does_not_come_is_waited_for_no_longer() -> None:
    late = young(stateful())
    late["metadata"]["creationTimestamp"] = "1970-01-01T00:16:35Z"
    assert workloads.grouped(workloads.store(late), settings=PATIENT)["spec"]["minMember"] == 1


def test_an_owner_that_nobody_lets_us_read_holds_its_pods_not_up() -> None:
    store = Veiled(lambda: 1000.0)
    store.load(young(torch(), labels=MASTER))
    ((kind, text),) = said(store)
    says = "PyTorchJob default/train: we may not read it, so only its name counts; allow get, list and watch of"
    assert (kind, text) == ("Pod", f"{says} pytorchjobs.kubeflow.org, or write phalanx.dev/min-member on the pods")
    assert workloads.grouped(store, settings=PATIENT)["spec"]["minMember"] == 1


def test_its_pods_may_say_how_large_the_gang_of_an_owner_is_that_nobody_lets_us_read() -> None:
    store = Veiled(lambda: 1000.0)
    store.load(young(torch(), labels=MASTER, annotations={"phalanx.dev/min-member": "4"}))
    assert workloads.grouped(store)["spec"]["minMember"] == 4


# --- what a group says ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_owner", "on_pod", "queue"),
    [
        ({QUEUE: "a"}, {QUEUE: "b"}, "a"), ({}, {QUEUE: "b"}, "b"), ({"project": "p"}, {"project": "q"}, "p"),
        ({}, {"project": "q", "kai.scheduler/node-pool": "fast"}, "q-fast"), ({}, {}, "default-queue"),
    ],
)  # fmt: skip
def test_the_queue_is_that_of_the_owner_then_of_the_pod(on_owner: dict[str, str], on_pod: dict[str, str], queue: str) -> None:
    top = stateful(labels=on_owner)
    assert workloads.grouped(workloads.store(top, pod(by=top, labels=on_pod)))["spec"]["queue"] == queue


def test_the_queue_of_a_group_that_is_there_stays() -> None:
    top = torch(labels={QUEUE: "a"})
    store = workloads.store(top, pod(by=top, labels=MASTER))
    name = workloads.grouped(store)["metadata"]["name"]
    store.patch(GROUPS, "default", name, {"spec": {"queue": "moved"}})
    store.patch(kind_of(top), "default", "train", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 7}}}})
    workloads.carry_out(store, workloads.asked(store).writes)
    spec = store.get(GROUPS, "default", name)["spec"]
    assert (spec["queue"], spec["minMember"], spec["subGroups"][1]["minMember"]) == ("moved", 8, 7)


@pytest.mark.parametrize(
    ("on_owner", "on_pod", "in_spec", "expected"),
    [("a", "b", "c", "a"), ("", "b", "c", "b"), ("", "", "c", "c"), ("gone", "gone", "c", "c"), ("gone", "", "", "train")],
)
def test_the_first_class_that_exists_counts(on_owner: str, on_pod: str, in_spec: str, expected: str) -> None:
    top = stateful(labels={PRIORITY: on_owner} if on_owner else {})
    member = pod(by=top, labels={PRIORITY: on_pod} if on_pod else {})
    member["spec"]["priorityClassName"] = in_spec
    store = workloads.store(*map(priority_class, "abc"), top, member)
    assert workloads.grouped(store)["spec"]["priorityClassName"] == expected


def test_pods_that_say_different_things_do_not_change_their_group_to_and_fro() -> None:
    top = torch()
    store = workloads.store(
        *map(priority_class, "ab"), top, pod(by=top, labels={**MASTER, PRIORITY: "a", PREEMPTIBILITY: "preemptible"}),
        pod("train-1", by=top, labels={"training.kubeflow.org/replica-type": "worker", PRIORITY: "b"}),
    )  # fmt: skip
    assert workloads.grouped(store)["spec"]["priorityClassName"] == "a"
    second = workloads.asked(store, "train-1").writes
    assert [write.kind for write in second if isinstance(write, Patch)] == [POD]


def test_an_owner_that_says_otherwise_later_is_heard() -> None:
    top = torch()
    store = workloads.store(priority_class("a"), top, pod(by=top, labels=MASTER))
    name = workloads.grouped(store)["metadata"]["name"]
    store.patch(kind_of(top), "default", "train", {"metadata": {"labels": {PRIORITY: "a", PREEMPTIBILITY: "non-preemptible"}}})
    workloads.carry_out(store, workloads.asked(store).writes)
    spec = store.get(GROUPS, "default", name)["spec"]
    assert (spec["priorityClassName"], spec["preemptibility"]) == ("a", "non-preemptible")


def test_a_config_map_has_defaults_for_kinds() -> None:
    entries = [{"typeName": "StatefulSet", "group": "apps", "priorityName": "a", "preemptibility": "Preemptible"}]
    data = {"types": json.dumps(entries)}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kinds", "namespace": "kai"}, "data": data}
    settings, top = GrouperSettings(defaults_config_map="kai/kinds"), stateful()
    spec = workloads.grouped(workloads.store(priority_class("a"), config, top, pod(by=top)), settings=settings)["spec"]
    assert (spec["priorityClassName"], spec["preemptibility"]) == ("a", "preemptible")
    other = owner("apps/v1", "ReplicaSet")
    spec = workloads.grouped(workloads.store(priority_class("a"), config, other, pod(by=other)), settings=settings)["spec"]
    assert spec["priorityClassName"] == "train"


def test_a_broken_config_map_is_told_about_and_pods_are_grouped_without_it() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kinds", "namespace": "kai"}, "data": {"types": "{"}}
    result = workloads.asked(workloads.store(config, pod()), settings=GrouperSettings(defaults_config_map="kai/kinds"))
    first = result.writes[0]
    assert isinstance(first, RecordEvent)
    assert first.message.startswith("ConfigMap kai/kinds: data.types: ")
    assert len(result.writes) == 3


def test_labels_and_annotations_of_the_owner_are_copied_but_not_what_means_it_alone() -> None:
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    top = stateful(labels={"team": "vision"}, annotations={"note": "x", applied: "{}"})
    meta = workloads.grouped(workloads.store(top, pod(by=top)))["metadata"]
    assert meta["labels"] == {"team": "vision"}
    assert meta["annotations"].pop("kai.scheduler/top-owner-metadata").splitlines()[1:3] == ['kind: "StatefulSet"', 'name: "train"']
    assert meta["annotations"] == {"note": "x"}


def test_a_group_goes_with_its_owner() -> None:
    top = torch()
    store = workloads.store(top, pod(by=top, labels=MASTER))
    workloads.grouped(store)
    store.delete(kind_of(top), "default", "train")
    assert store.items(GROUPS) == []


# --- how large -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["phalanx.dev/min-member", "scheduling.volcano.sh/group-min-member", "kai.scheduler/batch-min-member"]
)
def test_an_annotation_of_the_owner_makes_a_plain_job_a_gang(key: str) -> None:
    job = owner("batch/v1", "Job", annotations={key: "4"})
    store = workloads.store(job, pod(by=job), pod("train-1", by=job))
    group = workloads.grouped(store)
    assert (group["metadata"]["name"], group["spec"]["minMember"]) == ("pg-train-job-train", 4)
    workloads.carry_out(store, workloads.asked(store, "train-1").writes)
    assert store.get(POD, "default", "train-1")["metadata"]["annotations"][KAI_GROUP] == "pg-train-job-train"


def test_an_annotation_of_the_pod_makes_it_a_gang_too() -> None:
    job = owner("batch/v1", "Job")
    store = workloads.store(job, pod(by=job, annotations={"phalanx.dev/min-member": "2"}))
    assert workloads.grouped(store)["spec"]["minMember"] == 2


def test_of_a_job_with_parts_a_pytorchjob_keeps_them_when_its_size_is_set() -> None:
    top = torch(annotations={"phalanx.dev/min-member": "3"})
    spec = workloads.grouped(workloads.store(top, pod(by=top, labels=MASTER)))["spec"]
    assert (spec["minMember"], [part["minMember"] for part in spec["subGroups"]]) == (3, [1, 2])
    cluster = owner("ray.io/v1", "RayCluster", annotations={"phalanx.dev/min-member": "3"})
    spec = workloads.grouped(workloads.store(cluster, pod(by=cluster)))["spec"]
    assert (spec["minMember"], "subGroups" in spec) == (3, False)


# --- owners that cannot be grouped ---------------------------------------------------------------------------------------


def job_of(specs: Any, **spec: Any) -> dict[str, Any]:
    return owner("kubeflow.org/v1", "PyTorchJob", spec={"pytorchReplicaSpecs": specs, **spec})


def leader_worker_set(**spec: Any) -> dict[str, Any]:
    return owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec=spec)


LWS_LABELS = {"leaderworkerset.sigs.k8s.io/group-index": "0", "leaderworkerset.sigs.k8s.io/worker-index": "1"}
BROKEN: list[tuple[dict[str, Any], dict[str, str], str]] = [
    (job_of({"Master": {"replicas": 0}}), MASTER, "spec.pytorchReplicaSpecs: no replicas; write replicas: 1 or more"),
    (job_of({"Master": {"replicas": "one"}}), MASTER, "expected `int | null`, got `str`"),
    (job_of({"Master": {"replicas": -1}}), MASTER, "expected `int` >= 0"),
    (job_of({"Chief": {"replicas": 1}}), MASTER, "'Chief' is unknown; write Master, Worker"),
    (job_of({"Master": {}}), {}, "'' is no role of its job; write 'master'"),
    (job_of(None), MASTER, "no replicas"),
    (owner("kubeflow.org/v1", "XGBoostJob", spec={"xgbReplicaSpecs": {"Worker": {}}}), {}, "Master: missing or without replicas"),
    (owner("kubeflow.org/v2beta1", "MPIJob", spec={"mpiReplicaSpecs": {"Worker": {}}}), {}, "Launcher: missing or without"),
    (owner("ray.io/v1", "RayJob"), {}, "has no RayCluster yet"),
    (owner("jobset.x-k8s.io/v1alpha2", "JobSet"), {}, "'' is no replicated job of JobSet default/train; known are none"),
    (leader_worker_set(), LWS_LABELS, "spec.leaderWorkerTemplate.size: missing or 0"),
    (leader_worker_set(startupPolicy="Never"), LWS_LABELS, "'Never' is unknown; write 'LeaderCreated' or 'LeaderReady'"),
    (leader_worker_set(leaderWorkerTemplate={"size": 2}), {}, "group-index']: missing; write the number of the replica"),
    (
        leader_worker_set(leaderWorkerTemplate={"size": 4, "subGroupPolicy": {"subGroupSize": 9}}), LWS_LABELS,
        "9 is not between 2 and the size 4",
    ),
    (owner("grove.io/v1alpha1", "PodCliqueSet"), {"grove.io/podgang": "g"}, "there is no PodGang 'g' yet"),
    (owner("serving.knative.dev/v1", "Service"), {}, "serving.knative.dev/revision']: missing"),
    (owner("amlarc.azureml.com/v1alpha1", "AmlJob"), {}, "AZUREML_NODE_COUNT: missing or 0; write the number of nodes"),
    (stateful(annotations={"phalanx.dev/min-member": "many"}), {}, "'many' is not a whole number of 1 or more; write for"),
    (stateful(labels={PREEMPTIBILITY: "sometimes"}), {}, "'sometimes' is unknown; write 'preemptible' or 'non-preemptible'"),
]  # fmt: skip


@pytest.mark.parametrize(("top", "labels", "says"), BROKEN, ids=[says[:40] for _, _, says in BROKEN])
def test_an_owner_that_cannot_be_grouped_sets_its_pods_aside_and_says_what_to_write(
    top: dict[str, Any], labels: dict[str, str], says: str
) -> None:
    found = told(workloads.store(top, pod(by=top, labels=labels)))
    assert [kind for kind, _ in found] == ["Pod", top["kind"]]
    assert all(says in message for _, message in found), found
    assert all(message.startswith(("Pod default/train-0: ", f"{top['kind']} default/train: ")) for _, message in found)


def test_an_owner_whose_size_nobody_knows_is_waited_for() -> None:
    top = torch()
    store = workloads.store(pod(by=top, labels=MASTER))
    assert told(store)[0][1] == "PyTorchJob default/train: is not there, or has no spec; create it, or delete its pods"
    store.load(top)
    assert PodGrouper().concerns(store, kind_of(top), top) == [Key("default", "train-0")]
    assert workloads.grouped(store)["spec"]["minMember"] == 4


def test_broken_metadata_is_told_about() -> None:
    top = stateful()
    top["metadata"]["labels"] = ["no", "labels"]
    assert told(workloads.store(top, pod(by=top))) == [
        ("Pod", "StatefulSet default/train: metadata.labels: expected `object | null`, got `array`")
    ]


def test_a_pod_with_a_group_is_not_warned_when_its_owner_breaks() -> None:
    top = torch()
    store = workloads.store(top, pod(by=top, labels=MASTER))
    workloads.grouped(store)
    store.patch(kind_of(top), "default", "train", {"spec": {"pytorchReplicaSpecs": None}})
    assert told(store) == []


# --- who is looked at ----------------------------------------------------------------------------------------------------


def test_a_change_of_an_owner_concerns_one_pod_of_each_group_and_those_without() -> None:
    top = torch()
    store = workloads.store(top, *(pod(f"train-{number}", by=top, labels=MASTER) for number in range(4)))
    grouper = PodGrouper()
    assert len(list(grouper.concerns(store, kind_of(top), top))) == 4
    for number in range(3):
        workloads.carry_out(store, workloads.asked(store, f"train-{number}").writes)
    assert sorted(key.name for key in grouper.concerns(store, kind_of(top), top)) == ["train-0", "train-3"]


def test_an_owner_that_changes_is_heard_though_its_first_pod_has_ended() -> None:
    top, grouper = torch(3), PodGrouper()
    store = workloads.store(top, *(pod(f"train-{number}", by=top, labels=MASTER) for number in range(2)))
    for number in range(2):
        workloads.carry_out(store, workloads.asked(store, f"train-{number}").writes)
    store.patch(POD, "default", "train-0", {"status": {"phase": "Succeeded"}}, is_status=True)
    store.patch(kind_of(top), "default", "train", {"spec": torch(1)["spec"]})
    writes = [write for key in grouper.concerns(store, kind_of(top), top) for write in grouper.reconcile(store, key).writes]
    assert [write.patch["spec"]["minMember"] for write in writes if isinstance(write, Patch)] == [2]


def test_a_podgang_concerns_the_pods_that_it_names() -> None:
    references = [{"namespace": "default", "name": "train-0"}]
    gang = owner(
        "scheduler.grove.io/v1alpha1", "PodGang", spec={"podgroups": [{"name": "a", "minReplicas": 1, "podReferences": references}]}
    )
    assert PodGrouper().concerns(workloads.store(), kind_of(gang), gang) == [Key("default", "train-0")]


def test_a_podgang_that_comes_late_concerns_the_pods_that_name_it() -> None:
    top = owner("grove.io/v1alpha1", "PodCliqueSet")
    clique = owner("grove.io/v1alpha1", "PodClique", "decode", by=top)
    gang = owner("scheduler.grove.io/v1alpha1", "PodGang", "gang", by=top)
    others = pod("other-0", by=clique, labels={"grove.io/podgang": "other"})
    store = workloads.store(top, clique, gang, others, pod(by=clique, labels={"grove.io/podgang": "gang"}))
    assert PodGrouper().concerns(store, kind_of(gang), gang) == [Key("default", "train-0")]


def test_the_kinds_that_are_read_are_in_one_table() -> None:
    assert set(owner_kinds()) < set(read_kinds()) < {*KINDS}
    names = {kind.kind for kind in read_kinds()}
    assert {"Pod", "PriorityClass", "ConfigMap", "PyTorchJob", "PodGang", "Revision", "Workflow"} <= names
    assert set(PodGrouper().watches) == {POD, *owner_kinds(), GROUP_BY_DIALECT["kai"]}


# --- other words ---------------------------------------------------------------------------------------------------------


def test_volcano_gets_roles_queue_and_class() -> None:
    top = torch(labels={PREEMPTIBILITY: "preemptible"})
    store = workloads.store(top, pod(by=top, labels=MASTER))
    group = workloads.grouped(store, settings=GrouperSettings(dialect="volcano"))
    roles = {"master": 1, "worker": 3}
    assert group["spec"] == {"minMember": 4, "minTaskMember": roles, "queue": "default", "priorityClassName": "train"}
    assert group["metadata"]["annotations"]["volcano.sh/preemptable"] == "true"
    annotations = meta_of(store.get(POD, "default", "train-0"))["annotations"]
    assert annotations == {GROUP: group["metadata"]["name"], "volcano.sh/task-spec": "master"}


@pytest.mark.parametrize(
    ("dialect", "version", "label"),
    [
        ("coscheduling", "scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/pod-group"),
        ("koordinator", "scheduling.sigs.k8s.io/v1alpha1", "pod-group.scheduling.sigs.k8s.io"),
    ],
)
def test_others_get_the_size_and_a_name_that_fits_into_a_label(dialect: str, version: str, label: str) -> None:
    top = torch(name="a-very-long-name-of-a-job-that-somebody-thought-of")
    top["metadata"]["uid"] = "0a1b2c3d-0000-4000-8000-000000000001"
    store = workloads.store(top, pod(by=top, labels=MASTER))
    group = workloads.grouped(store, settings=read_settings({"dialect": dialect}))
    assert (group["apiVersion"], group["spec"]) == (version, {"minMember": 4})
    name = store.get(POD, "default", "train-0")["metadata"]["labels"][label]
    assert name == group["metadata"]["name"] == "pg-a-very-long-name-of-a-j-0a1b2c3d-0000-4000-8000-000000000001"
    assert len(name) <= 63


def test_a_native_group_is_made_under_the_name_that_the_pod_has() -> None:
    top, settings = torch(), GrouperSettings(dialect="native")
    member = pod(by=top, labels=MASTER)
    assert "podGroupName: missing, and cannot be set later" in told(workloads.store(top, member), settings=settings)[0][1]
    member["spec"]["schedulingGroup"] = {"podGroupName": "mine"}
    group = workloads.grouped(workloads.store(top, member), settings=settings)
    assert group["metadata"]["name"] == "mine"
    assert group["spec"] == {"schedulingPolicy": {"gang": {"minCount": 4}}, "priorityClassName": "train"}


def test_a_wrong_setting_names_the_right_ones() -> None:
    with pytest.raises(ConfigError, match=r"grouper: .*dialekt.*; settings are schedulerNames, .*dialect"):
        read_settings({"dialekt": "kai"})
