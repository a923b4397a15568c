"""The stores that keep the contract: the embedded one behind its HTTP API, and a real API server.

PHALANX_CONTRACT_SERVER names another one, by a kubeconfig or a URL; its controller manager has to run.
"""

import os
import secrets
import time
from collections.abc import Iterator

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.store.memory import MemoryStore
from tests.support.http_api import Connection, connection_to, served
from tests.support.store_contract import Api, eventually

SERVER = "PHALANX_CONTRACT_SERVER"


@pytest.fixture(scope="session", params=["memory", pytest.param("real", marks=pytest.mark.xdist_group("controlplane"))])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A server that has been up for a while: it has forgotten how everything began."""
    if request.param == "real":
        yield connection_to(os.environ.get(SERVER) or _kubeconfig(request.getfixturevalue("plane")))
        return
    store = MemoryStore(time.time)
    store.history.compact(store.history.version)
    with served(store) as connection:
        yield connection


def _kubeconfig(plane: ControlPlane) -> str:
    plane.stop("kube-apiserver", is_kill=True)
    plane.compact()
    plane.start("kube-apiserver")
    return str(plane.kubeconfig)


@pytest.fixture
def api(connection: Connection, request: pytest.FixtureRequest) -> Iterator[Api]:
    """A namespace of its own for each test, in which pods can be created."""
    name = f"contract-{secrets.token_hex(4)}"
    api = Api(connection, name)
    assert api.make("/api/v1/namespaces", {"metadata": {"name": name}}).code == 201
    if request.node.callspec.params["connection"] == "real":
        assert eventually(lambda: api.read("serviceaccounts/default").code == 200)
    yield api
    api.remove(f"/api/v1/namespaces/{name}")
