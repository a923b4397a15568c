"""Job plugins: each adds to the pods of a Job, and some make objects for it. This is the one list of them."""

from collections.abc import Iterable, Mapping, Sequence

from phalanx.controllers.volcano_job.job import Job, Task
from phalanx.controllers.volcano_job.plugins import env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow
from phalanx.controllers.volcano_job.plugins.plugin import MakePair, Options, Plugin, Seat, read_options
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document

PLUGINS: Mapping[str, Plugin] = {
    plugin.name: plugin
    for plugin in (
        env.PLUGIN, svc.PLUGIN, ssh.PLUGIN, tensorflow.PLUGIN, pytorch.PLUGIN, mpi.PLUGIN, ray.PLUGIN, hcclrank.PLUGIN,
    )
}  # fmt: skip
"""In the order in which they are asked."""
IMPLIED: Mapping[str, tuple[str, ...]] = {
    "tensorflow": ("svc",), "pytorch": ("svc",), "mpi": ("svc", "ssh"), "ray": ("svc",),
}  # fmt: skip
"""What a plugin cannot do without."""


def check_plugins(plugins: Mapping[str, Sequence[str]]) -> None:
    """Refuse plugins and options that do not exist."""
    for name in plugins:
        if name not in PLUGINS:
            raise SnapshotError(f"spec.plugins.{name}: unknown; write one of {', '.join(PLUGINS)}")
    for name in plugins:
        _options(plugins, PLUGINS[name])


def dressed(job: Job, task: Task, index: int, pod: Document) -> Document:
    """Return a pod with what the plugins of its Job add."""
    for plugin in _chosen(job):
        pod = plugin.dress(Seat(job, task, index, _options(job.plugins, plugin)), pod)
    return pod


def objects_for(job: Job, make_pair: MakePair | None) -> list[Document]:
    """Return the objects that the plugins of a Job want to be there; without `make_pair` all but the keys, which it has."""
    return [item for plugin in _chosen(job) for item in plugin.objects(job, _options(job.plugins, plugin), make_pair)]


def _chosen(job: Job) -> Iterable[Plugin]:
    return (plugin for name, plugin in PLUGINS.items() if name in job.plugins)


def _options(plugins: Mapping[str, Sequence[str]], plugin: Plugin) -> Options:
    return read_options(plugin, plugins[plugin.name])
