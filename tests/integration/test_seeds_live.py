"""The scenarios that everybody asks about, on a real control plane: the examples' own manifests, played by kwok."""

from collections.abc import Iterator
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.model.kinds import Document
from tests.support.live_site import Site, example

pytestmark = pytest.mark.xdist_group("controlplane")
NAMES = ("phalanx", "volcano", "kai-scheduler")
GROUPS, NAMESPACE = "podgroups.scheduling.volcano.sh", "research"
PYTORCH_JOBS: Document = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "pytorchjobs.kubeflow.org"},
    "spec": {
        "group": "kubeflow.org", "scope": "Namespaced", "names": {"plural": "pytorchjobs", "kind": "PyTorchJob"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }],
    },
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def scheduler(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with Site(plane) as shared:
        shared.make([PYTORCH_JOBS])
        plane.kubectl("wait", "--for=condition=Established", "customresourcedefinition/pytorchjobs.kubeflow.org")
        with scheduling(plane, tmp_path_factory.mktemp("run"), *(f"--scheduler-name={name}" for name in NAMES)):
            yield


def await_condition(site: Site, name: str, text: str, namespace: str = NAMESPACE) -> None:
    """Wait until a PodGroup says something."""

    def said() -> str:
        return site.kubectl("get", GROUPS, name, "-o=jsonpath={.status.conditions[*].message}", namespace=namespace)

    site.wait(lambda: text in said(), lambda: f"{name} says {said()!r}, and not {text!r}")


def reasons(site: Site, namespace: str = NAMESPACE) -> dict[str, str]:
    """Return the events that tell of pods that had to go, by pod."""
    events = site.get("events", "--field-selector=reason=Preempted", namespace=namespace)["items"]
    return {event["involvedObject"]["name"]: event["message"] for event in events}


def annotated(document: Document, **notes: str) -> dict[str, Any]:
    meta = document["metadata"]
    return {**document, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), **notes}}}


def test_of_two_gangs_whose_pods_come_by_turns_one_starts_whole_and_the_other_waits_whole(site: Site) -> None:
    site.make(example("deadlock", "nodes.yaml"))
    by_turns = sorted(example("deadlock", "jobs.yaml"), key=lambda item: (item["kind"] == "Pod", item["metadata"]["name"][-1]))
    site.make(by_turns)
    site.await_phases("", {"Running": 3, "Pending": 3}, NAMESPACE)
    first, second = sorted(("bert", "resnet"), key=lambda name: -len(site.bound(name, NAMESPACE)))
    assert (len(site.bound(first, NAMESPACE)), len(site.bound(second, NAMESPACE))) == (3, 0)
    await_condition(site, second, "3/3 tasks in gang unschedulable")
    site.kubectl("delete", "pod", "-l", f"app={first}", namespace=NAMESPACE)
    site.await_phases(second, {"Running": 3}, NAMESPACE)


def test_two_free_gpus_are_no_use_to_a_gang_of_three(site: Site) -> None:
    site.make(example("contention", "nodes.yaml"))
    jobs = example("contention", "jobs.yaml")
    site.make(item for item in jobs if item["metadata"]["name"].startswith("llama"))
    site.await_phases("llama", {"Running": 4}, NAMESPACE)
    site.make(item for item in jobs if item["metadata"]["name"].startswith("bert"))
    await_condition(site, "bert", "1/3 tasks in gang unschedulable")
    assert site.bound("bert", NAMESPACE) == {}


def test_one_parameter_server_and_seven_workers_wait_for_the_last_node(site: Site) -> None:
    site.make(example("tensorflow-1-ps-7-workers", "nodes.yaml", "job.yaml"))
    await_condition(site, "wide-deep", "2/8 tasks in gang unschedulable", "ads")
    assert site.bound(namespace="ads") == {}
    site.make(example("tensorflow-1-ps-7-workers", "later/nodes.yaml"))
    site.await_phases("wide-deep", {"Running": 8}, "ads")


def test_preemption_takes_as_few_pods_as_the_gang_needs_and_says_so(site: Site) -> None:
    site.make(example("preempt", "nodes.yaml", "priorities.yaml", "queues.yaml", "running.yaml"))
    site.await_phases("", {"Running": 6}, NAMESPACE)
    site.make(example("preempt", "waiting.yaml"))
    site.await_phases("llama", {"Running": 2}, NAMESPACE)
    assert (len(site.bound("sweep", NAMESPACE)), len(site.bound("bert", NAMESPACE))) == (1, 2)
    told = reasons(site)
    assert (len(told), {name[:6] for name in told}) == (3, {"sweep-"})
    assert all(f"preempted by gang {site.namespace(NAMESPACE)}/llama (priority 1000 over 10)" in text for text in told.values())


def test_a_queue_gets_back_what_it_deserves_and_no_more(site: Site) -> None:
    site.make(example("reclaim", "nodes.yaml", "queues.yaml", "running.yaml"))
    site.await_phases("", {"Running": len(site.pods(namespace=NAMESPACE))}, NAMESPACE)
    site.make(example("reclaim", "waiting.yaml"))
    site.await_phases("ranking", {"Running": 3}, "shop")
    await_condition(site, "search", "tasks in gang unschedulable", "shop")
    assert site.bound("search", "shop") == {}
    assert {name[:6] for name in reasons(site)} == {"sweep-"}
    assert len(reasons(site)) == 3


def test_what_is_left_of_a_gang_that_lost_a_node_makes_room_for_others(site: Site) -> None:
    site.make(example("stale-gang", "nodes.yaml")[:4])
    for item in example("stale-gang", "jobs.yaml"):
        site.make([annotated(item, **{"phalanx.dev/staleness-grace": "5s"}) if item["kind"] == "PodGroup" else item])
    site.await_phases("llama", {"Running": 4}, NAMESPACE)
    lost, node = min(site.bound("llama", NAMESPACE).items())
    site.kubectl("delete", "node", node)
    site.kubectl("delete", "pod", lost, "--force", "--grace-period=0", namespace=NAMESPACE)
    await_condition(site, "llama", "tasks run, below the minimum of 4")
    site.await_phases("bert", {"Running": 3}, NAMESPACE)
    assert site.pods("llama", NAMESPACE) == []


def test_the_pods_of_a_pytorchjob_are_one_gang(site: Site) -> None:
    site.make(example("pytorchjob", "cluster.yaml"))
    parts = {name: parts_of_job(site, name) for name in ("bert", "resnet")}
    assert parts == {"bert": {"master": 1, "worker": 3}, "resnet": {"master": 1, "worker": 4}}
    site.await_phases("", {"Running": 4, "Pending": 6}, NAMESPACE)
    assert site.bound("resnet", NAMESPACE) == {}
    site.kubectl("delete", "pod", "-l", "training.kubeflow.org/job-name=bert", namespace=NAMESPACE)
    site.await_phases("resnet", {"Running": 6}, NAMESPACE)


def parts_of_job(site: Site, name: str) -> dict[str, int]:
    """Make a PyTorchJob and its pods, as its operator would, and return the sub-groups that are found for it."""
    job, *pods = example("pytorchjob", f"{name}.yaml")
    site.make([job])
    uid = site.get("pytorchjobs.kubeflow.org", name, namespace=NAMESPACE)["metadata"]["uid"]
    site.make(owned(pod, uid) for pod in pods)
    api, place = site.api(NAMESPACE), f"scheduling.run.ai/v2alpha2:podgroups/pg-{name}-{uid}"
    site.wait(lambda: api.read(place).code == 200, lambda: f"there is no group pg-{name}-{uid}")
    return {part["name"]: part["minMember"] for part in api.read(place).body["spec"]["subGroups"]}


def owned(pod: Document, uid: str) -> dict[str, Any]:
    """Return a pod that a job with this uid made."""
    (owner,) = pod["metadata"]["ownerReferences"]
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [{**owner, "uid": uid}]}}
