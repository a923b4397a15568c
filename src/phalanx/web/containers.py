"""Requests about the containers of a pod: its log, a command in it, its ports. An embedded cluster runs none, and says so."""

from aiohttp import web

from phalanx.errors import ClusterError
from phalanx.model.kinds import POD
from phalanx.store.memory import MemoryStore
from phalanx.store.paths import ResourcePath

LOG = "log"
SUBRESOURCES = (LOG, "exec", "attach", "portforward")
METHODS = ("GET", "POST")
SIMULATED = "pods of this cluster are simulated: they run no containers, which could have a log, a shell or ports"


def is_about_containers(method: str, target: ResourcePath) -> bool:
    """Tell whether a kubelet would answer a request."""
    return target.kind is POD and target.subresource in SUBRESOURCES and method in METHODS


def answer_for_kubelet(store: MemoryStore, target: ResourcePath) -> web.Response:
    """Return what the API server says of a pod without a node; of others that nothing runs there."""
    pod = store.get(POD, target.namespace, target.name)
    if pod["spec"].get("nodeName"):
        raise ClusterError(SIMULATED)
    if target.subresource != LOG:
        raise ClusterError(f"pod {target.name} does not have a host assigned")
    return web.Response(status=204)
