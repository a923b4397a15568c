"""Opens the ssh port of every container of an MPI Job, and gives the master the hosts of the workers."""

from phalanx.controllers.volcano_job.plugins.plugin import JobPlugin, PodContext
from phalanx.controllers.volcano_job.plugins.pod_edits import ALL, variable, with_containers, with_port, with_variables
from phalanx.model.kinds import Document


def edit_pod(context: PodContext, pod: Document) -> Document:
    """Open the port; the master gets the hosts of the workers."""
    options, worker = context.options, context.job.task(context.options.text("worker"))
    pod = with_containers(pod, lambda item: with_port(item, "mpijob-port", options.number("port")), ALL)
    if context.task.name != options.text("master") or worker is None:
        return pod
    return with_variables(pod, [variable("MPI_HOST", ",".join(context.job.hosts(worker)))], ALL)


PLUGIN = JobPlugin("mpi", {"master": "master", "worker": "worker", "port": 22}, edit_pod)
