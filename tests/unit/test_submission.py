"""What a cluster would have if documents were submitted to it now, and what a session decides on it."""

from typing import Any

import pytest

from phalanx.controllers.controller import NOTHING, Key, Patch, Result, View
from phalanx.model.kinds import POD, Document, Kind
from phalanx.store.memory import MemoryStore
from phalanx.store.reconciliation import Reconciliation
from phalanx.store.submission_surroundings import store_around
from phalanx.testing import build
from tests.support.submissions import NOW, owner, submit, template

QUEUE_NAME = "scheduling.volcano.sh/queue-name"


def namespaces(*names: str) -> list[Document]:
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]


def job(pods: int = 2, name: str = "train", **more: Any) -> dict[str, Any]:
    """Return a Job that is one gang."""
    size = {"phalanx.dev/min-member": str(pods)}
    return owner("batch/v1", "Job", name, parallelism=pods, template=template(**more), annotations=size)


def volcano_job(**more: Any) -> dict[str, Any]:
    tasks = [{"name": "worker", "replicas": 2, "template": template(scheduler="volcano")}]
    return owner("batch.volcano.sh/v1alpha1", "Job", schedulerName="volcano", minAvailable=2, queue="default", tasks=tasks, **more)


def quota(**hard: str) -> Document:
    meta = {"name": "team", "namespace": "ml"}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": meta,
        "spec": {"hard": {key.replace("__", "/"): text for key, text in hard.items()}},
    }


# --- a session on it -----------------------------------------------------------------------------------------------------

WORKLOADS = [
    job(4),
    volcano_job(),
    owner("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Worker": {"replicas": 4, "template": template()}}),
    owner(
        "ray.io/v1", "RayCluster", headGroupSpec={"template": template()},
        workerGroupSpecs=[{"groupName": "g", "replicas": 3, "template": template()}],
    ),
]  # fmt: skip


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda item: str(item["kind"]))
def test_a_workload_starts_as_a_whole_or_not_at_all(workload: Document) -> None:
    made = submit(workload)
    assert len(made.found.gangs) == 1
    needed = made.of("PodGroup")[0]["spec"]["minMember"]
    assert len(made.decided(build.cluster(nodes=needed, gpus=1)).binds) == needed
    waiting = made.decided(build.cluster(nodes=needed - 1, gpus=1))
    assert waiting.binds == []
    assert waiting.why(made.found.gangs[0])


def test_volcanos_jobs_have_their_pods_before_they_are_admitted() -> None:
    made = submit(volcano_job())
    (group,) = made.of("PodGroup")
    assert "status" not in group, "the session admits it"
    assert made.names == ["train-worker-0", "train-worker-1"]
    cycle = made.decided(build.cluster(nodes=2, gpus=1))
    assert cycle.phase(made.found.gangs[0]) == "Inqueue"
    assert len(cycle.binds) == 2
    assert "not admitted" in made.decided(build.cluster(nodes=1, gpus=1)).why(made.found.gangs[0])


def test_a_job_flow_begins_with_the_jobs_that_depend_on_none() -> None:
    names = {"prepare": {}, "train": {"dependsOn": {"targets": ["prepare"]}}}
    spec = volcano_job()["spec"]
    templates = [{**owner("flow.volcano.sh/v1alpha1", "JobTemplate", name), "spec": spec} for name in names]
    flow = owner("flow.volcano.sh/v1alpha1", "JobFlow", "llama", flows=[{"name": name, **more} for name, more in names.items()])
    made = submit(*templates, flow)
    assert made.names == ["llama-prepare-worker-0", "llama-prepare-worker-1"]
    assert made.found.problems == ["JobFlow ml/llama: the jobs train are made once those before them are completed"]


def test_tasks_of_a_volcano_job_that_wait_for_others_come_later() -> None:
    found = volcano_job()
    found["spec"]["tasks"].append({"name": "report", "replicas": 1, "dependsOn": {"name": ["worker"]}, "template": template()})
    made = submit(found)
    assert made.names == ["train-worker-0", "train-worker-1"]
    assert made.found.problems == ["Job ml/train: the pods of report are made once the tasks before them run"]


# --- completion and admission --------------------------------------------------------------------------------------------


def test_pods_are_completed_by_what_the_cluster_has() -> None:
    limits = {"limits": [{"type": "Container", "defaultRequest": {"memory": "2Gi"}}]}
    there: list[Document] = [
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "ml"}, "spec": limits},
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7},
    ]
    pod = submit(job(1, priorityClassName="high"), existing=there).pods["train-00000"]
    assert pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == "2Gi"
    assert pod["spec"]["priority"] == 7


def test_pods_whose_priority_class_does_not_exist_are_refused() -> None:
    made = submit(job(2, priorityClassName="high"))
    text = 'pods "train-00000" is forbidden: no PriorityClass with name high was found'
    assert made.found.refused == [("Pod ml/train-00000", text)]
    assert made.found.gangs == []
    assert made.found.pods == []


def test_pods_for_which_a_quota_has_no_room_are_refused() -> None:
    made = submit(job(4), existing=[*namespaces("ml"), quota(**{"requests.nvidia.com/gpu": "3", "pods": "10"})])
    text = (
        'pods "train-00003" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=1,'
        " used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=3"
    )
    assert made.found.refused == [("Pod ml/train-00003", text)]
    assert len(made.names) == 3
    assert made.decided(build.cluster(nodes=4, gpus=1)).binds == [], "the gang needs the fourth"


def test_a_quota_asks_every_container_to_say_what_it_counts() -> None:
    made = submit(job(1), existing=[quota(**{"limits.memory": "4Gi"})])
    text = 'pods "train-00000" is forbidden: failed quota: team: must specify limits.memory for: main'
    assert made.found.refused == [("Pod ml/train-00000", text)]


def test_quotas_with_scopes_are_named() -> None:
    scoped = {**quota(pods="0"), "spec": {"hard": {"pods": "0"}, "scopes": ["BestEffort"]}}
    made = submit(job(1), existing=[scoped])
    assert made.names == ["train-00000"]
    assert made.found.problems == ["ResourceQuota ml/team: has scopes, and is left out; the API server may refuse pods by it"]


def test_a_namespace_that_a_cluster_does_not_have_is_missing() -> None:
    made = submit(job(1), existing=namespaces("default", "kube-system", "research"))
    assert made.found.refused == [("Job ml/train", 'namespaces "ml" not found')]
    some = [build.node("n"), *namespaces("research")]
    assert submit(job(1), existing=some).names == ["train-00000"], "a few manifests need not list all namespaces"


def test_the_queue_of_a_namespace_counts_also_of_one_that_every_cluster_has() -> None:
    there = {**namespaces("default")[0], "metadata": {"name": "default", "annotations": {QUEUE_NAME: "team"}}}
    made = submit(build.pod("solo", spec={"schedulerName": "phalanx"}), existing=[there])
    assert made.of("PodGroup")[0]["spec"]["queue"] == "team"


def test_claims_of_pods_are_made_by_the_cluster() -> None:
    spec = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": spec}}]
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "csi.example.com"}
    annotated = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    fast: dict[str, Any] = {**storage, "metadata": {"name": "fast", **annotated}, "volumeBindingMode": "WaitForFirstConsumer"}
    made = submit(job(1, volumes=volumes), existing=[fast])
    (claim,) = made.of("PersistentVolumeClaim")
    assert claim["metadata"]["name"] == "train-00000-scratch"
    assert claim["spec"]["storageClassName"] == "fast"
    drivers = {"drivers": [{"name": "csi.example.com", "nodeID": "n"}]}
    csi: dict[str, Any] = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "node-0"}, "spec": drivers}
    assert len(made.decided(build.cluster(nodes=1, gpus=1).submit([fast, csi])).binds) == 1

    slow: Document = {**storage, "metadata": {"name": "slow", **annotated}}
    said = "PersistentVolumeClaim ml/train-00000-scratch: is bound by the provisioner of class slow before its pod can start"
    assert submit(job(1, volumes=volumes), existing=[slow]).found.problems == [said]


def test_claims_of_devices_are_made_from_their_templates() -> None:
    request = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    found: Document = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one", "namespace": "ml"},
        "spec": {"spec": request},
    }  # fmt: skip
    uses = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    made = submit(job(1, resourceClaims=uses), existing=[found])
    (claim,) = made.of("ResourceClaim")
    assert claim["spec"] == request
    statuses = made.pods["train-00000"]["status"]["resourceClaimStatuses"]
    assert statuses == [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
    without = submit(job(1, resourceClaims=uses))
    assert "ResourceClaimTemplate ml/one is not there; create it" in without.found.problems[0]


def test_pods_of_another_scheduler_are_named() -> None:
    made = submit(owner("batch/v1", "Job", parallelism=3, template=template(scheduler="default-scheduler")))
    text = "names no group, and kube-scheduler places it; write schedulerName: phalanx in the template"
    assert made.found.problems == [f"Pod ml/train-00000 and 2 more: {text}"]
    assert made.found.gangs == []


def test_what_kueue_may_hold_back_is_named() -> None:
    found = job(1)
    found["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    assert "if Kueue runs, it keeps this suspended until the queue has room" in submit(found).found.problems[0]


def test_an_operator_that_makes_groups_itself_is_named() -> None:
    other = owner("kubeflow.org/v1", "PyTorchJob", "old")
    group = build.pod_group("old")
    group["metadata"] |= {"namespace": "ml"}
    there = stored(group, "g", by=stored(other, "o"))
    spec = {"Worker": {"replicas": 1, "template": template()}}
    made = submit(owner("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs=spec), existing=[there])
    text = "its operator makes groups itself, such as PodGroup ml/old; here its pods are grouped by Phalanx"
    assert made.found.problems == [f"PyTorchJob ml/train: {text}"]
    first = submit(owner("kubeflow.org/v1", "PyTorchJob", "old", pytorchReplicaSpecs=spec))
    again = submit(owner("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs=spec), existing=first.found.documents)
    assert again.found.problems == [], "groups that Phalanx has made say nothing"


# --- what is there already -----------------------------------------------------------------------------------------------


def stored(document: Document, uid: str, *, by: Document | None = None) -> dict[str, Any]:
    """Return an object as the cluster has it."""
    meta = {**document["metadata"], "uid": uid, "resourceVersion": "1", "creationTimestamp": "2026-01-05T08:00:00Z"}
    if by is not None:
        keys = {key: by[key] for key in ("apiVersion", "kind")} | {key: by["metadata"][key] for key in ("name", "uid")}
        meta["ownerReferences"] = [{**keys, "controller": True}]
    return {**document, "metadata": meta}


def running(name: str, by: Document, **meta: Any) -> dict[str, Any]:
    pod = build.pod(name, on="n", gpus=1, spec={"schedulerName": "phalanx"})
    pod["metadata"] |= {"namespace": "ml", **meta}
    return stored(pod, f"uid-{name}", by=by)


def test_an_owner_that_is_there_gets_only_the_pods_that_are_missing() -> None:
    there = stored(job(2), "j")
    pods = [running(f"train-{end}", there, generateName="train-") for end in ("bcdfg", "hjklm")]
    made = submit(job(3), existing=[there, *pods])
    assert made.found.pods == ["ml/train-00000"]
    assert made.found.problems[0] == "Job ml/train: is there already, and changes in spec.parallelism; its pods stay as they are"
    assert made.of("Job")[0]["metadata"]["uid"] == "j"


def test_an_owner_that_is_submitted_as_it_is_has_its_gang() -> None:
    first = submit(job(2))
    again = submit(job(2), existing=first.found.documents)
    assert again.found.pods == []
    assert again.found.gangs == first.found.gangs


def test_pods_that_have_ended_are_made_again() -> None:
    there = stored(job(2), "j")
    ended = {**running("train-bcdfg", there, generateName="train-"), "status": {"phase": "Failed"}}
    assert submit(job(2), existing=[there, ended]).names == ["train-00000", "train-00001"]


def test_pods_that_an_owner_does_not_want_any_more_are_removed() -> None:
    first = submit(volcano_job())
    smaller = volcano_job()
    smaller["spec"]["tasks"][0]["replicas"] = smaller["spec"]["minAvailable"] = 1
    made = submit(smaller, existing=first.found.documents)
    assert made.found.removed == [(POD, "ml/train-worker-1")]


def test_a_pod_of_that_name_is_not_replaced() -> None:
    other = build.pod("train-worker-0", on="n")
    other["metadata"] |= {"namespace": "ml", "uid": "other"}
    spec = {"Worker": {"replicas": 1, "template": template()}}
    made = submit(owner("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs=spec), existing=[other])
    assert made.found.pods == []
    assert made.found.gangs == []
    assert "Pod ml/train-worker-0 is there already, and belongs to somebody else" in made.found.problems[0]


def test_a_pod_that_is_submitted_again_cannot_change() -> None:
    there = {**build.pod("solo", gpus=1), "metadata": {"name": "solo", "namespace": "default", "uid": "u"}}
    made = submit(build.pod("solo", gpus=2), existing=[there])
    assert [name for name, _ in made.found.refused] == ["Pod default/solo"]
    assert "may not change fields" in made.found.refused[0][1]


def test_an_owner_that_is_submitted_with_its_pods_gets_no_others() -> None:
    given = stored(job(2), "from-elsewhere")
    pods = [{**running(f"train-{number}", given), "spec": template()["spec"]} for number in range(2)]
    made = submit(*pods, given)
    assert made.names == ["train-0", "train-1"]
    assert made.minima == {"pg-train": 2}
    assert made.found.problems == []


def test_a_manifest_with_a_generated_name_gets_one() -> None:
    found = job(1)
    found["metadata"] = {"generateName": "train-", "namespace": "ml"}
    assert submit(found).names == ["train-00000-00000"]


def test_of_a_large_cluster_only_what_is_asked_for_is_loaded() -> None:
    there = [stored(job(1, f"other-{number}"), f"j{number}") for number in range(5)]
    pods = [running(f"other-{number}-0", by) for number, by in enumerate(there)]
    store = store_around([there[3]], [*there, *pods], now=NOW)
    assert [pod["metadata"]["name"] for pod in store.items(POD)] == ["other-3-0"], "those below what is submitted again"
    assert store.find(POD, "ml", "other-1-0") is not None
    assert len(store.items(POD)) == 2


def test_nothing_that_exists_is_changed() -> None:
    there = [stored(job(2), "j"), running("train-bcdfg", stored(job(2), "j"), generateName="train-")]
    before = repr(there)
    submit(job(4), existing=there)
    assert repr(there) == before


# --- the engine ----------------------------------------------------------------------------------------------------------


class Restless:
    """Counts up for ever."""

    name = "restless"
    watches = (POD,)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> list[Key]:
        return [Key("default", document["metadata"]["name"])]

    def reconcile(self, view: View, key: Key) -> Result:
        pod = view.find(POD, key.namespace, key.name)
        if pod is None:
            return NOTHING
        number = int(pod["metadata"].get("labels", {}).get("n", "0")) + 1
        return Result([Patch(POD, key.namespace, key.name, {"metadata": {"labels": {"n": str(number)}}})])


def test_controllers_that_do_not_come_to_rest_are_stopped() -> None:
    store = MemoryStore(lambda: NOW)
    run = Reconciliation(store, [Restless()])
    run.create(build.pod("solo"))
    run.run()
    assert list(run.problems) == ["controller restless does not come to rest over default/solo"]
