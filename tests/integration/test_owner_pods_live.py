"""The pods that Kubernetes' own controllers make, beside those that are made in their place for `phalanx try`."""

import re
from collections.abc import Iterable
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.model.kinds import Document
from tests.support.live_site import Site
from tests.support.operator_workloads import place_of
from tests.support.store_contract import eventually
from tests.support.submissions import submit, template

pytestmark = pytest.mark.xdist_group("controlplane")
DRAWN = ("controller-uid", "batch.kubernetes.io/controller-uid", "pod-template-hash", "controller-revision-hash")
"""Labels whose values only the real controllers know."""
FIELDS = ("restartPolicy", "schedulerName", "hostname", "subdomain", "priority", "nodeSelector", "tolerations", "affinity")
LABELS = {"app": "x"}
HASHED = re.compile(r"^train-[a-z0-9]{8,10}-$")


def workload(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "train", "namespace": "default"}, "spec": spec}


def batch(**spec: Any) -> dict[str, Any]:
    return workload("batch/v1", "Job", template=template(LABELS, restartPolicy="Never"), **spec)


def apps(kind: str, **spec: Any) -> dict[str, Any]:
    return workload("apps/v1", kind, selector={"matchLabels": LABELS}, template=template(LABELS), **spec)


CLAIMS = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]
WORKLOADS = {
    "job": batch(parallelism=3, completions=5),
    "job-by-default": batch(),
    "work-queue": batch(parallelism=2),
    "indexed-job": batch(parallelism=3, completions=3, completionMode="Indexed"),
    "deployment": apps("Deployment", replicas=2),
    "replica-set": apps("ReplicaSet", replicas=2),
    "stateful-set": apps("StatefulSet", replicas=3, serviceName="train"),
    "parallel-stateful-set": apps(
        "StatefulSet", replicas=2, serviceName="train", podManagementPolicy="Parallel", ordinals={"start": 4},
        volumeClaimTemplates=CLAIMS,
    ),
}  # fmt: skip


def shown(pods: Iterable[Document]) -> list[dict[str, Any]]:
    """Return what the scheduler reads of pods, without names and values that are drawn."""
    return sorted(map(_shown, pods), key=repr)


def _shown(pod: Document) -> dict[str, Any]:
    meta, spec = pod["metadata"], pod["spec"]
    labels = {key: "drawn" if key in DRAWN else text for key, text in meta["labels"].items()}
    claims = [item["persistentVolumeClaim"]["claimName"] for item in spec.get("volumes", ()) if "persistentVolumeClaim" in item]
    (owner,) = meta["ownerReferences"]
    own = {key: text for key, text in meta.get("annotations", {}).items() if not key.endswith("group-name")}
    return {
        "name": meta["name"] if owner["kind"] == "StatefulSet" else HASHED.sub("train-HASH-", meta["generateName"]),
        "labels": labels, "annotations": own,
        "owner": (owner["apiVersion"], owner["kind"], owner["controller"]), "claims": claims,
        "resources": [item["resources"] for item in spec["containers"]],
        "spec": {key: spec[key] for key in FIELDS if spec.get(key) not in (None, "")},
    }  # fmt: skip


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_stand_ins_make_the_pods_that_the_real_controllers_make(plane: ControlPlane, site: Site, name: str) -> None:
    made = submit(WORKLOADS[name])
    api = site.api()
    document = site.here(WORKLOADS[name])
    answer = api.make(place_of(document), document)
    assert answer.code == 201, answer
    expected = shown(made.pods.values())
    eventually(lambda: len(api.read("pods").body["items"]) >= len(expected))
    assert shown(api.read("pods").body["items"]) == expected
    claims = api.read("persistentvolumeclaims").body["items"]
    assert {item["metadata"]["name"] for item in claims} == {item["metadata"]["name"] for item in made.of("PersistentVolumeClaim")}
