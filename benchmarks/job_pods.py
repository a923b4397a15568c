"""Pods as a cluster has them: with everything that the Job controller writes on the pods of an indexed Job.

Admission adds the rest: account, token volume, tolerations. The Jobs are there, since pods whose owner is not are collected, but
managed by nobody: pods are created in the order and as fast as a benchmark wants. A test compares them with those of the real
controller. They lack one thing: its finalizer, which would keep them when they are deleted.
"""

from phalanx.model.kinds import Document, kind_of

JOB = kind_of({"apiVersion": "batch/v1", "kind": "Job"})
INDEX = "batch.kubernetes.io/job-completion-index"
MANAGER = "phalanx.dev/benchmark"


def job(pod: Document, *, name: str, size: int) -> Document:
    """Return the indexed Job of so many pods like this one."""
    return {
        "apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": {"name": name, "namespace": pod["metadata"]["namespace"]},
        "spec": {
            "parallelism": size, "completions": size, "completionMode": "Indexed", "managedBy": MANAGER,
            "template": {"spec": {**pod["spec"], "restartPolicy": "Never"}},
        },
    }  # fmt: skip


def of_job(pod: Document, job: Document, index: int) -> Document:
    """Return a pod as the controller of a Job that is there writes the one with this index."""
    meta, name, uid = pod["metadata"], job["metadata"]["name"], job["metadata"]["uid"]
    labels = {
        **meta.get("labels", {}), "job-name": name, "controller-uid": uid, INDEX: str(index),
        "batch.kubernetes.io/job-name": name, "batch.kubernetes.io/controller-uid": uid,
    }  # fmt: skip
    owner = {
        "apiVersion": JOB.api_version, "kind": JOB.kind, "name": name, "uid": uid, "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    index_of_pod = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
    containers = [{**container, "env": [*container.get("env", ()), index_of_pod]} for container in pod["spec"]["containers"]]
    return {
        **pod,
        "metadata": {
            **meta, "labels": labels, "annotations": {**meta.get("annotations", {}), INDEX: str(index)},
            "generateName": f"{name}-{index}-", "ownerReferences": [owner],
        },
        "spec": {**pod["spec"], "containers": containers, "hostname": f"{name}-{index}", "restartPolicy": "Never"},
    }  # fmt: skip


def bare(pod: Document) -> Document:
    """Return a pod without a token, which nobody has outside a laboratory."""
    return {**pod, "spec": {**pod["spec"], "automountServiceAccountToken": False}}
