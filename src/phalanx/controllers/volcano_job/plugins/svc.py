"""Lets the pods of a Job find each other by name, and keeps others away: a service, a list of hosts, a network policy."""

from collections.abc import Sequence

from phalanx.controllers.volcano_job.job import JOB_NAME, JOB_NAMESPACE, ParsedJob, ParsedTask
from phalanx.controllers.volcano_job.plugins.plugin import JobPlugin, MakePair, PluginOptions, PodContext, owned_object
from phalanx.controllers.volcano_job.plugins.pod_edits import ALL, with_spec, with_variables, with_volume
from phalanx.model.kinds import Document

NAME, FOLDER = "svc", "/etc/volcano"
PUBLISH, NO_POLICY = "publish-not-ready-addresses", "disable-network-policy"


def edit_pod(context: PodContext, pod: Document) -> Document:
    """Give a pod its host name, the hosts of all tasks as variables, and as files."""
    job, spec = context.job, pod["spec"]
    pod = with_spec(pod, hostname=spec.get("hostname") or pod["metadata"]["name"], subdomain=spec.get("subdomain") or job.name)
    names = [name for task in job.tasks for name in _variables(job, task)]
    source = [{"name": name, "valueFrom": {"configMapKeyRef": {"name": _hosts_name(job), "key": name}}} for name in names]
    volume = {"name": _hosts_name(job), "configMap": {"name": _hosts_name(job)}}
    return with_volume(with_variables(pod, source, ALL), volume, {"mountPath": FOLDER}, ALL)


def objects(job: ParsedJob, options: PluginOptions, make_pair: MakePair | None) -> Sequence[Document]:
    """Return the hosts, the service without an address, and the policy that lets in only pods of the Job."""
    own = {JOB_NAME: job.name, JOB_NAMESPACE: job.namespace}
    service = {"clusterIP": "None", "selector": own, "publishNotReadyAddresses": options.is_on(PUBLISH)}
    found = [
        owned_object(job, "ConfigMap", _hosts_name(job), {"data": hosts(job)}),
        owned_object(job, "Service", job.name, {"spec": service}),
    ]
    if options.is_on(NO_POLICY):
        return found
    ours = {"podSelector": {"matchLabels": own}}
    rules = {"spec": {**ours, "ingress": [{"from": [ours]}], "policyTypes": ["Ingress"]}}
    return [*found, owned_object(job, "NetworkPolicy", job.name, rules, api_version="networking.k8s.io/v1")]


def hosts(job: ParsedJob) -> dict[str, str]:
    """Return the files and variables of all tasks."""
    found: dict[str, str] = {}
    for task in job.tasks:
        found[f"{_variable_name(task)}.host"] = "\n".join(job.hosts(task))
        found.update(_variables(job, task))
    return found


def _variables(job: ParsedJob, task: ParsedTask) -> dict[str, str]:
    name, hosts = _variable_name(task).upper(), job.hosts(task)
    return {f"VC_{name}_HOSTS": ",".join(hosts), f"VC_{name}_NUM": str(len(hosts))}


def _variable_name(task: ParsedTask) -> str:
    return task.name.replace("-", "_")


def _hosts_name(job: ParsedJob) -> str:
    return f"{job.name}-{NAME}"


PLUGIN = JobPlugin(NAME, {PUBLISH: False, NO_POLICY: False}, edit_pod, objects)
