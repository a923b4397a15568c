"""The stores that keep the contract: the embedded one behind its HTTP API, and a real API server when one is named.

PHALANX_CONTRACT_SERVER names it, by a kubeconfig or a URL; its controller manager has to run. Without it the real one is no case
at all, and nothing is skipped.
"""

import os
import secrets
import time
from collections.abc import Iterator

import pytest

from phalanx.store.memory import MemoryStore
from phalanx.testing.api import Connection, connection_to, served
from phalanx.testing.contract import Api

SERVER = "PHALANX_CONTRACT_SERVER"
PLACES = ["memory", *(["real"] if os.environ.get(SERVER) else [])]


@pytest.fixture(scope="session", params=PLACES)
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    if request.param == "real":
        yield connection_to(os.environ[SERVER])
        return
    store = MemoryStore(time.time)
    store.history.compact(store.history.version)  # as a server that has been up for a while
    with served(store) as connection:
        yield connection


@pytest.fixture
def api(connection: Connection) -> Iterator[Api]:
    """A namespace of its own for each test."""
    name = f"contract-{secrets.token_hex(4)}"
    api = Api(connection, name)
    assert api.make("/api/v1/namespaces", {"metadata": {"name": name}}).code == 201
    yield api
    api.remove(f"/api/v1/namespaces/{name}")
