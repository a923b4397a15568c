"""Gives every container the index of its pod in its task."""

from phalanx.controllers.volcano_job.plugins.plugin import JobPlugin, PodContext
from phalanx.controllers.volcano_job.plugins.pod_edits import ALL, variable, with_variables
from phalanx.model.kinds import Document

NAMES = ("VK_TASK_INDEX", "VC_TASK_INDEX")


def edit_pod(context: PodContext, pod: Document) -> Document:
    """Add the index under both of its names."""
    return with_variables(pod, [variable(name, context.index) for name in NAMES], ALL)


PLUGIN = JobPlugin("env", {}, edit_pod)
