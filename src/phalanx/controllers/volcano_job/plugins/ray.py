"""Starts a Ray cluster: a head with its service, and workers that join it."""

from collections.abc import Sequence

from phalanx.controllers.volcano_job.job import JOB_NAME, JOB_NAMESPACE, TASK, ParsedJob
from phalanx.controllers.volcano_job.plugins.plugin import JobPlugin, MakePair, PluginOptions, PodContext, owned_object
from phalanx.controllers.volcano_job.plugins.pod_edits import Container, with_containers, with_port
from phalanx.model.kinds import Document

PORTS = {"gcs": "port", "dashboard": "dashboardPort", "client-server": "clientPort"}
"""Names of the head's ports, and the options that say which they are."""


def edit_pod(context: PodContext, pod: Document) -> Document:
    """Let the head's container start the cluster, and a worker's join it; other containers are left alone."""
    if context.task.name == context.options.text("head"):
        return with_containers(pod, lambda item: _head(item, context.options))
    if context.task.name == context.options.text("worker"):
        return with_containers(pod, lambda item: _worker(item, context))
    return pod


def _head(container: Container, options: PluginOptions) -> Container:
    if container.get("name") != options.text("headContainer"):
        return container
    for name, option in PORTS.items():
        container = with_port(container, name, options.number(option))
    gcs, dashboard, client = (options.number(option) for option in PORTS.values())
    ports = f"--port={gcs} --dashboard-port={dashboard} --ray-client-server-port={client}"
    return {**container, "command": ["sh", "-c", f"ray start --head --block --dashboard-host=0.0.0.0 {ports}"]}


def _worker(container: Container, context: PodContext) -> Container:
    head = context.job.task(context.options.text("head"))
    if container.get("name") != context.options.text("workerContainer") or head is None or not head.replicas:
        return container
    address = f"{context.job.hosts(head)[0]}:{context.options.number('port')}"
    return {**container, "command": ["sh", "-c", f"ray start --block --address={address}"]}


def objects(job: ParsedJob, options: PluginOptions, make_pair: MakePair | None) -> Sequence[Document]:
    """Return the service of the head; the one of the whole Job is the business of svc."""
    selector = {JOB_NAME: job.name, JOB_NAMESPACE: job.namespace, TASK: options.text("head")}
    ports = [
        {"name": name, "port": options.number(option), "targetPort": name, "protocol": "TCP"} for name, option in PORTS.items()
    ]
    return [owned_object(job, "Service", f"{job.name}-head-svc", {"spec": {"selector": selector, "ports": ports}})]


PLUGIN = JobPlugin(
    "ray",
    {
        "head": "head", "headContainer": "head", "worker": "worker", "workerContainer": "worker",
        "port": 6379, "dashboardPort": 8265, "clientPort": 10001,
    },
    edit_pod,
    objects,
)  # fmt: skip
