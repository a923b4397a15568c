"""`phalanx schedule` on a real API server, as somebody who may only read: the decisions are those on a snapshot of kubectl."""

import asyncio
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
from phalanx.model.kinds import POD
from phalanx.store.kube import cluster_objects
from phalanx.store.kube.cluster_objects import list_cluster
from phalanx.store.kube.connect import access
from phalanx.store.listed_cluster import ListedCluster
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


def decisions(done: subprocess.CompletedProcess[str], site: Site) -> dict[str, Any]:
    """Return what was decided in the namespace of a test; what an earlier one has left may be going meanwhile."""
    own = f"{site.namespace('research')}/"
    answer = json.loads(done.stdout)
    parts = ("binds", "pipelined", "evictions", "tasks", "groups")
    return {part: {key: value for key, value in answer[part].items() if key.startswith(own)} for part in parts}


def test_an_account_that_may_only_read_gets_the_decisions_of_a_snapshot(plane: ControlPlane, reader: Path, site: Site) -> None:
    site.make(example("deadlock", "nodes.yaml", "jobs.yaml"))
    live = schedule("--kubeconfig", str(reader), "-o", "json", *AT)
    on_snapshot = schedule("-f", "-", "-o", "json", *AT, given=snapshot(plane))
    own = [line for line in live.stderr.splitlines() if site.namespace("research") in line]
    assert (live.returncode, own) == (3, []), "what earlier tests have left may be going, and is noted"
    assert decisions(live, site) == decisions(on_snapshot, site)
    assert len(decisions(live, site)["binds"]) == 3


def test_pages_are_put_together(reader: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.make(example("deadlock", "nodes.yaml", "jobs.yaml"))
    monkeypatch.setattr(cluster_objects, "PAGE", 2)
    seen: list[tuple[int, int]] = []

    async def listed() -> ListedCluster:
        async with access(str(reader)).client(is_frugal=True) as client:
            return await list_cluster(client, lambda kind, read, total: seen.append((read, total)) if kind is POD else None)

    found = asyncio.run(listed())
    own = site.namespace("research")
    pods = [item["metadata"]["name"] for item in found.documents if item["kind"] == "Pod" and item["metadata"]["namespace"] == own]
    assert pods == sorted(f"{gang}-{rank}" for gang in ("bert", "resnet") for rank in range(3))
    assert [read for read, _ in seen[:3]] == [2, 4, 6]
    assert seen[0][1] == seen[-1][0]
    assert list(found.notes()) == []


def test_nothing_has_changed_afterwards(reader: Path, site: Site) -> None:
    site.make(example("deadlock", "nodes.yaml", "jobs.yaml"))

    def versions() -> dict[str, Any]:
        items = site.get("pods,podgroups.scheduling.volcano.sh", namespace="research")["items"]
        return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in items}

    before = versions()
    assert len(before) == 8
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
