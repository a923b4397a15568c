"""The objects of the documents that the project grew from, as they stand there, with what these say should come out.

The files in tests/data/seeds are copies of the YAML, letter by letter. A document shows one pod of several, or a group without
pods: what it leaves out is added here, and nothing that it says is changed.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.config.policies import policy_of_profile
from phalanx.model.kinds import GROUP_BY_DIALECT, POD
from phalanx.testing import build
from tests.support import sim_worlds as worlds

SEEDS = Path(__file__).resolve().parents[1] / "data" / "seeds"
OLDER_GROUP = GROUP_BY_DIALECT["koordinator"]
SUBGROUP, GROUP = "kai.scheduler/subgroup-name", "pod-group-name"
NEEDED = {"decode-workers": 4, "decode-leaders": 1, "prefill-workers": 4, "prefill-leaders": 1}

Document = dict[str, Any]


def seed(name: str) -> list[Document]:
    return list(yaml.safe_load_all((SEEDS / f"{name}.yaml").read_text(encoding="utf-8")))


def copies(document: Document, count: int, prefix: str, *, gpus: int = 0) -> list[Document]:
    """Return so many pods like one of a document; containers, and what they ask for, are added where the document has none."""
    found = []
    for number in range(count):
        pod = deepcopy(document)
        pod["metadata"]["name"] = f"{prefix}-{number}"
        for container in pod["spec"].setdefault("containers", [{"name": "worker", "image": "training:v1"}]):
            container.setdefault("resources", {"limits": {"nvidia.com/gpu": gpus}} if gpus else {})
        found.append(pod)
    return found


def run(tmp_path: Path, *command: str, objects: list[Document]) -> Result:
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    inputs = ["-f", str(file)] if command[0] == "schedule" else [str(file)]
    return CliRunner().invoke(main, [command[0], *inputs, *command[1:]], prog_name="phalanx")


def scheduled(tmp_path: Path, *options: str, objects: list[Document]) -> Document:
    """Return the answer of `phalanx schedule`."""
    answer: Document = json.loads(run(tmp_path, "schedule", "-o", "json", *options, objects=objects).stdout)
    return answer


def gpu_nodes(count: int, gpus: int = 1, **offers: Any) -> list[Document]:
    return [build.node(f"node-{number}", gpus=gpus, **offers) for number in range(count)]


# --- KAI: a hierarchy of sub-groups (document 001, section 9) -------------------------------------------------------------


def kai_queue() -> Document:
    shares = {name: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for name in ("gpu", "cpu", "memory")}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "default"}, "spec": {"resources": shares}}


def hierarchy(group: Document, counts: dict[str, int]) -> list[Document]:
    pods = []
    for subgroup, count in counts.items():
        for number in range(count):
            pod = build.pod(f"{subgroup}-{number}", cpu=1)
            pod["metadata"] |= {"labels": {SUBGROUP: subgroup}, "annotations": {GROUP: "hierarchical-job"}}
            pod["spec"]["schedulerName"] = "kai-scheduler"
            pods.append(pod)
    return [kai_queue(), build.node("node-0", cpu=64), {**group, "spec": {**group["spec"], "queue": "default"}}, *pods]


@pytest.mark.parametrize("profile", ["kai", "phalanx"])
def test_a_hierarchy_starts_when_every_level_has_enough(tmp_path: Path, profile: str) -> None:
    (group,) = seed("001-kai-hierarchy")
    assert len(scheduled(tmp_path, "--profile", profile, objects=hierarchy(group, NEEDED))["binds"]) == 10
    for name in NEEDED:
        short = hierarchy(group, {**NEEDED, name: NEEDED[name] - 1})
        answer = scheduled(tmp_path, "--profile", profile, objects=short)
        assert answer["binds"] == {}, f"{name} has a pod too few"
        assert name in answer["groups"]["default/hierarchical-job"]["why"]


def test_a_sub_group_that_wants_more_children_than_it_has_is_an_error(tmp_path: Path) -> None:
    (group,) = seed("001-kai-hierarchy")
    group["spec"]["subGroups"][0]["minMember"] = 3
    result = run(tmp_path, "schedule", "--profile", "kai", objects=hierarchy(group, NEEDED))
    assert result.exit_code == 3
    assert "decode" in result.output
    assert "minSubGroup" in result.output


# --- scheduling gates (document 003) --------------------------------------------------------------------------------------

GATE = "example.com/gang-ready"


def behind_the_gate(count: int) -> list[Document]:
    """Return pods like the one with a gate, in the group of the same document."""
    (pod,), (member,) = seed("003-gate"), seed("003-coscheduling-pod")
    pod["metadata"]["labels"] = member["metadata"]["labels"]
    return [*seed("003-timeout"), *copies(pod, count, "gated", gpus=1)]


@pytest.mark.parametrize(("pods", "gpus", "starts"), [(4, 4, True), (4, 3, False), (3, 4, False)])
def test_the_gates_of_a_gang_are_removed_together_once_there_is_room(tmp_path: Path, pods: int, gpus: int, starts: bool) -> None:
    objects = [*gpu_nodes(1, gpus), *behind_the_gate(pods)]
    result = run(tmp_path, "simulate", "--until", "2m", "--gate", GATE, "--profile", "default-scheduler", objects=objects)
    assert ("default/training-job starts" in result.stdout) is starts


def test_a_pod_behind_a_gate_that_nobody_removes_is_not_scheduled(tmp_path: Path) -> None:
    answer = scheduled(tmp_path, objects=[*gpu_nodes(1, 4), *behind_the_gate(4)])
    assert answer["binds"] == {}
    assert f"the scheduling gate '{GATE}'" in json.dumps(answer)


# --- Coscheduling (document 003) ------------------------------------------------------------------------------------------


def training(group: str, count: int, *, gpus: int = 0) -> list[Document]:
    (pod,) = seed("003-coscheduling-pod")
    return [*seed(group), *copies(pod, count, "worker", gpus=gpus)]


@pytest.mark.parametrize("profile", ["coscheduling", "phalanx"])
@pytest.mark.parametrize(("pods", "starts"), [(4, True), (3, False)])
def test_a_group_starts_with_its_members(tmp_path: Path, profile: str, pods: int, starts: bool) -> None:
    objects = [*gpu_nodes(2, 1, cpu=2, memory="4Gi"), *training("003-coscheduling-group", pods)]
    assert len(scheduled(tmp_path, "--profile", profile, objects=objects)["binds"]) == (pods if starts else 0)


@pytest.mark.parametrize("nodes", [gpu_nodes(1, 1, cpu=8, memory="32Gi"), gpu_nodes(2, 1, cpu=1, memory="32Gi")])
def test_a_group_waits_for_its_least_resources(tmp_path: Path, nodes: list[Document]) -> None:
    objects = [*nodes, *training("003-coscheduling-group", 4)]
    assert scheduled(tmp_path, "--profile", "coscheduling", objects=objects)["binds"] == {}


def test_a_group_whose_least_resources_no_cluster_has_is_told_so(tmp_path: Path) -> None:
    objects = [*gpu_nodes(2, 1, cpu=64, memory="64Gi"), *training("003-min-resources", 4)]
    answer = scheduled(tmp_path, "--profile", "coscheduling", objects=objects)
    assert answer["binds"] == {}
    assert "nvidia.com/gpu" in answer["groups"]["default/training-job"]["why"]
    objects = [*gpu_nodes(4, 1, cpu=4, memory="8Gi"), *training("003-min-resources", 4)]
    assert len(scheduled(tmp_path, "--profile", "coscheduling", objects=objects)["binds"]) == 4


def test_a_group_fails_when_its_time_is_up_and_nothing_is_kept_for_it() -> None:
    world = worlds.world(nodes=3, gpus=1, policy=policy_of_profile("coscheduling"))
    for document in training("003-timeout", 4, gpus=1):
        world.store.create(document)
    phases = {}
    for moment in (299, 302):
        worlds.run(world, moment)
        phases[moment] = world.store.get(OLDER_GROUP, "default", "training-job")["status"]["phase"]
    assert phases == {299: "Scheduling", 302: "ScheduleFailed"}
    assert not any(pod["spec"].get("nodeName") or pod["status"].get("nominatedNodeName") for pod in world.store.items(POD))


def test_a_priority_class_lets_a_gang_go_first(tmp_path: Path) -> None:
    priority, pod = seed("003-priority")
    urgent = [priority, *seed("003-timeout"), *copies(pod, 4, "worker", gpus=1)]
    usual = deepcopy(training("003-timeout", 4, gpus=1))
    for item in usual:
        item["metadata"]["name"] = f"a-{item['metadata']['name']}"  # would come first by its name
        item["metadata"].get("labels", {}).update({"pod-group.scheduling.sigs.k8s.io/name": "a-training-job"})
    answer = scheduled(tmp_path, objects=[*gpu_nodes(4, 1), *usual, *urgent])
    assert sorted(answer["binds"]) == [f"default/worker-{number}" for number in range(4)]


# --- Volcano (document 003) -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["volcano", "phalanx"])
@pytest.mark.parametrize(("gpus", "starts"), [(2, True), (1, False)])
def test_a_parameter_server_and_its_workers_start_together(tmp_path: Path, profile: str, gpus: int, starts: bool) -> None:
    objects = [*gpu_nodes(1, gpus), *seed("003-volcano-job")]
    result = json.loads(run(tmp_path, "simulate", "--profile", profile, "--until", "10m", "-o", "json", objects=objects).stdout)
    (gang,) = result["gangs"]
    assert (gang["started"] is not None) is starts
    assert gang["minimum"] == 3
    assert gang["tasks"] == 3 or not starts  # a Job that Volcano does not admit has no pods


# --- Volcano's condition and cache (documents 000 and 004) ----------------------------------------------------------------


def test_half_of_a_gang_of_four_is_unschedulable_in_these_words(tmp_path: Path) -> None:
    objects = [build.node("node-0", cpu=2), *build.gang("train", tasks=4, cpu=1)]
    group = scheduled(tmp_path, "--profile", "volcano", objects=objects)["groups"]["default/train"]
    (condition,) = group["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Unschedulable", "True", "NotEnoughResources")
    assert condition["message"].startswith("2/4 tasks in gang unschedulable: ")


def test_the_cache_of_refusals_can_be_switched_off(tmp_path: Path) -> None:
    config = tmp_path / "volcano-scheduler.conf"
    config.write_text(
        'actions: "enqueue, allocate"\n'
        "tiers: [{plugins: [{name: priority}, {name: gang}]}, {plugins: [{name: predicates}]}]\n"
        "configurations:\n- name: allocate\n  arguments:\n    enablePredicateErrorCache: false\n"
    )
    result = CliRunner().invoke(main, ["config", "check", str(config)], prog_name="phalanx")
    assert result.exit_code == 0, result.output
