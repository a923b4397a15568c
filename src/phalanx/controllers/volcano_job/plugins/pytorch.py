"""Gives every container of a distributed PyTorch Job the address of the master, the world size and its rank."""

from phalanx.controllers.volcano_job.job import ParsedJob
from phalanx.controllers.volcano_job.plugins.plugin import JobPlugin, PluginOptions, PodContext
from phalanx.controllers.volcano_job.plugins.pod_edits import variable, with_containers, with_port, with_spec, with_variables
from phalanx.model.kinds import Document

PORT_NAME = "pytorchjob-port"
WAITS, WAIT_SECONDS, WAIT_IMAGE = "wait-master-enabled", "wait-master-timeout", "wait-master-image"


def edit_pod(context: PodContext, pod: Document) -> Document:
    """Add what torch.distributed reads; a Job without the task of the master is left as it is."""
    job, options = context.job, context.options
    master, port = job.task(options.text("master")), options.number("port")
    if master is None or not job.hosts(master):
        return pod
    address = job.hosts(master)[0]
    variables = [variable("MASTER_ADDR", address), variable("MASTER_PORT", port), variable("WORLD_SIZE", _size(job, options))]
    rank = {options.text("master"): context.index, options.text("worker"): master.replicas + context.index}.get(context.task.name)
    if rank is not None:
        variables.append(variable("RANK", rank))
    pod = with_variables(with_containers(pod, lambda item: with_port(item, PORT_NAME, port)), variables)
    return _waiting(pod, options, address, port) if options.is_on(WAITS) and context.task.name != master.name else pod


def _size(job: ParsedJob, options: PluginOptions) -> int:
    return sum(task.replicas for task in job.tasks if task.name in (options.text("master"), options.text("worker")))


def _waiting(pod: Document, options: PluginOptions, address: str, port: int) -> Document:
    """Let a worker begin when the master answers."""
    seconds = options.number(WAIT_SECONDS)
    text = f"n=0; until nc -z {address} {port}; do n=$((n+1)); [ $n -lt {seconds} ] || exit 1; sleep 1; done"
    first = {"name": "wait-for-master", "image": options.text(WAIT_IMAGE), "command": ["sh", "-c", text]}
    return with_spec(pod, initContainers=[first, *(pod["spec"].get("initContainers") or ())])


PLUGIN = JobPlugin(
    "pytorch",
    {"master": "master", "worker": "worker", "port": 23456, WAITS: False, WAIT_SECONDS: 300, WAIT_IMAGE: "busybox:1.36.1"},
    edit_pod,
)
