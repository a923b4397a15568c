"""Job plugins: each adds to the pods of a Job, and some create objects for it. This is the list of them."""

from collections.abc import Iterable, Mapping, Sequence

from phalanx.controllers.volcano_job.job import ParsedJob, ParsedTask
from phalanx.controllers.volcano_job.plugins import env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow
from phalanx.controllers.volcano_job.plugins.plugin import JobPlugin, MakePair, PluginOptions, PodContext, read_options
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document

PLUGINS: Mapping[str, JobPlugin] = {
    plugin.name: plugin
    for plugin in (
        env.PLUGIN, svc.PLUGIN, ssh.PLUGIN, tensorflow.PLUGIN, pytorch.PLUGIN, mpi.PLUGIN, ray.PLUGIN, hcclrank.PLUGIN,
    )
}  # fmt: skip
"""In the order in which they are asked."""
IMPLIED: Mapping[str, tuple[str, ...]] = {
    "tensorflow": ("svc",), "pytorch": ("svc",), "mpi": ("svc", "ssh"), "ray": ("svc",),
}  # fmt: skip
"""Plugins that another one needs and that are switched on with it."""


def check_plugins(plugins: Mapping[str, Sequence[str]]) -> None:
    """Refuse plugins and options that do not exist."""
    for name in plugins:
        if name not in PLUGINS:
            raise SnapshotError(f"spec.plugins.{name}: unknown; write one of {', '.join(PLUGINS)}")
    for name in plugins:
        _options(plugins, PLUGINS[name])


def with_plugins(job: ParsedJob, task: ParsedTask, index: int, pod: Document) -> Document:
    """Return a pod with what the plugins of its Job add."""
    for plugin in _chosen(job):
        pod = plugin.edit_pod(PodContext(job, task, index, _options(job.plugins, plugin)), pod)
    return pod


def objects_for(job: ParsedJob, make_pair: MakePair | None) -> list[Document]:
    """Return the objects that the plugins of a Job want to be there; without `make_pair` all but the key pair, which exists."""
    return [item for plugin in _chosen(job) for item in plugin.objects(job, _options(job.plugins, plugin), make_pair)]


def _chosen(job: ParsedJob) -> Iterable[JobPlugin]:
    return (plugin for name, plugin in PLUGINS.items() if name in job.plugins)


def _options(plugins: Mapping[str, Sequence[str]], plugin: JobPlugin) -> PluginOptions:
    return read_options(plugin, plugins[plugin.name])
