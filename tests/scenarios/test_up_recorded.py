"""A recorded `phalanx up`: real time, work that comes over the API, an edit and a deletion; decided again as it was."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.recording.entries import Changed, Gone, Header
from tests.scenarios.test_up import Site, has_row
from tests.support.recordings import all_entries, assert_same, replayed


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


def test_a_recorded_cluster_is_decided_again_as_it_was(site: Site, tmp_path: Path) -> None:
    log, node = tmp_path / "log", tmp_path / "node.yaml"
    process = site.up("examples/deadlock/nodes.yaml", "--record", str(log))
    site.run("apply", "-f", "examples/deadlock/jobs.yaml")
    site.until("get", "gangs", "-n", "research", shows=has_row("bert", r"Runs +3 +3 +3"))
    node.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: gpu-1, labels: {edited: 'yes'}}\n"
        "status: {allocatable: {cpu: '64', memory: 512Gi, nvidia.com/gpu: '2', pods: '110'}}\n"
    )
    assert "node/gpu-1 configured" in site.run("apply", "-f", str(node)).stdout
    assert site.run("delete", "gang", "bert", "-n", "research").returncode == 0
    site.until("get", "gangs", "-n", "research", shows=has_row("resnet", r"Runs +3 +3 +3"))
    assert site.stop(process)[0] == 0

    entries = all_entries(log)
    assert {entry.source for entry in entries if isinstance(entry, Header)} == {"up"}
    assert any(isinstance(entry, Changed) and entry.name == "gpu-1" for entry in entries), "the edit"
    assert any(isinstance(entry, Gone) and entry.name == "bert" for entry in entries), "the deletion"
    sessions = replayed(log)
    assert sum(len(session.decided.get("", {}).get("binds", {})) for session in sessions) == 6
    assert_same(sessions)

    answer = json.loads(site.run("replay", str(log), "-o", "json").stdout)
    assert (answer["same"], answer["sessions"], answer["carriedOut"]["bound"]) == (True, len(sessions), 6)
