"""`phalanx schedule` on a real API server, as somebody who may only read: the decisions are those on a snapshot of kubectl."""

import json
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.manifests.roles import reader_documents, service_account
from phalanx.store.snapshot_command import SNAPSHOT_COMMAND
from tests.support.live_site import Site, example

pytestmark = pytest.mark.xdist_group("controlplane")
AT = ("--now", "2026-01-01T00:00:00Z")


@pytest.fixture(scope="module")
def reader(plane: ControlPlane) -> Iterator[Path]:
    """The kubeconfig of an account with the role that `phalanx manifests reader` prints, and no other."""
    name = f"reader-{secrets.token_hex(4)}"
    plane.create_namespace(name)
    roles = reader_documents([service_account(name, "guest")])
    plane.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest", "namespace": name}}, *roles])
    yield plane.kubeconfig_of(name, "guest")
    plane.kubectl("delete", "--wait=false", f"namespace/{name}", *(f"{item['kind']}/{item['metadata']['name']}" for item in roles))


def schedule(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "phalanx", "schedule", *words], input=given, capture_output=True, text=True)


def snapshot(plane: ControlPlane) -> str:
    """Return what the command of the documentation prints."""
    chosen = SNAPSHOT_COMMAND.split("'")[1]
    served = plane.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    return plane.kubectl("get", "-A", "-o", "yaml", ",".join(name for name in served if re.search(chosen, name)))


def test_an_account_that_may_only_read_gets_the_decisions_of_a_snapshot(plane: ControlPlane, reader: Path, site: Site) -> None:
    site.make(example("deadlock", "nodes.yaml", "jobs.yaml"))
    live = schedule("--kubeconfig", str(reader), "-o", "json", *AT)
    on_snapshot = schedule("-f", "-", "-o", "json", *AT, given=snapshot(plane))
    assert (live.returncode, live.stderr) == (3, "")
    assert json.loads(live.stdout) == json.loads(on_snapshot.stdout)
    assert json.loads(live.stdout)["binds"]


def test_nothing_has_changed_afterwards(plane: ControlPlane, reader: Path, site: Site) -> None:
    site.make(example("deadlock", "nodes.yaml", "jobs.yaml"))

    def versions() -> dict[str, Any]:
        items = json.loads(plane.kubectl("get", "pods,podgroups.scheduling.volcano.sh", "-A", "-o", "json"))["items"]
        return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in items}

    before = versions()
    schedule("--kubeconfig", str(reader))
    assert versions() == before


def test_who_may_read_nothing_is_told_which_role_to_ask_for(plane: ControlPlane, site: Site) -> None:
    name = f"nobody-{secrets.token_hex(4)}"
    plane.create_namespace(name)
    refused = schedule("--kubeconfig", str(plane.kubeconfig_of(name, "default")))
    plane.kubectl("delete", "--wait=false", f"namespace/{name}")
    assert refused.returncode == 1
    assert "you may not list the nodes and pods of all namespaces" in refused.stderr
    assert "phalanx manifests reader" in refused.stderr
