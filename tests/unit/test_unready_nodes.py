"""Nodes that say that they are not ready take no pods under any built-in profile; Volcano's own configuration goes by taints."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.config.policies import profile_names
from phalanx.testing import build
from phalanx.testing.build import Document


def schedule(objects: list[Document], *arguments: str) -> Any:
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    result = CliRunner().invoke(main, ["schedule", "-f", "-", "-o", "json", *arguments], input=given)
    return json.loads(result.stdout)


def node(name: str, ready: str | None) -> Document:
    found = build.node(name, cpu=8)
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    return {**found, "status": {**found["status"], "conditions": conditions}}


def gang(profile: str = "phalanx") -> list[Document]:
    return kai_gang() if profile == "kai" else build.gang("train", tasks=2, cpu=4)


def kai_gang() -> list[Document]:
    amounts = {name: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for name in ("cpu", "gpu", "memory")}
    queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "team"}, "spec": {"resources": amounts}}
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "train", "namespace": "default"},
        "spec": {"minMember": 2, "queue": "team"},
    }  # fmt: skip
    pods = [build.pod(f"train-{number}", cpu=4) for number in range(2)]
    named = [{**pod, "metadata": {**pod["metadata"], "annotations": {"pod-group-name": "train"}}} for pod in pods]
    return [queue, group, *named]


@pytest.mark.parametrize("profile", profile_names())
@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_that_is_not_ready_takes_no_pods(profile: str, ready: str) -> None:
    found = schedule([node("node-0", ready), node("node-1", ready), *gang(profile)], "--profile", profile)
    assert found["binds"] == {}
    assert "2 nodes: 2 are not ready" in found["groups"]["default/train"]["why"]


@pytest.mark.parametrize("profile", profile_names())
def test_a_node_that_says_nothing_counts_as_ready(profile: str) -> None:
    found = schedule([node("node-0", "False"), node("node-1", None), *gang(profile)], "--profile", profile)
    assert set(found["binds"].values()) == {"node-1"}


def test_a_configuration_of_volcanos_goes_by_taints_as_volcano_does(tmp_path: Path) -> None:
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n")
    objects = [node("node-0", "False"), *gang()]
    assert len(schedule(objects, "--config", str(conf))["binds"]) == 2
    conf.write_text(conf.read_text() + "unreadyNodes: refused\n")
    assert schedule(objects, "--config", str(conf))["binds"] == {}
