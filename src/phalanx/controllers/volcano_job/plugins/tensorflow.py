"""Gives every container of a distributed TensorFlow Job the hosts of all roles, in TF_CONFIG."""

import msgspec

from phalanx.controllers.volcano_job.plugins.plugin import JobPlugin, PodContext
from phalanx.controllers.volcano_job.plugins.pod_edits import variable, with_variables
from phalanx.model.kinds import Document

ROLES = ("ps", "worker", "chief", "evaluator")


def edit_pod(context: PodContext, pod: Document) -> Document:
    """Add the hosts by role, and which of them this pod is; a single pod needs neither."""
    if context.job.replicas == 1 and len(context.job.tasks) == 1:
        return pod
    roles = {context.options.text(role): role for role in ROLES}
    port = context.options.number("port")
    cluster = {
        roles[task.name]: [f"{host}:{port}" for host in context.job.hosts(task)] for task in context.job.tasks if task.name in roles
    }
    task = {"type": roles.get(context.task.name, context.task.name), "index": context.index}
    return with_variables(pod, [variable("TF_CONFIG", msgspec.json.encode({"cluster": cluster, "task": task}).decode())])


PLUGIN = JobPlugin("tensorflow", {**{role: role for role in ROLES}, "port": 2222}, edit_pod)
