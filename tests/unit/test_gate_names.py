"""Gangs behind scheduling gates of other names: those that the configuration or an option names are lifted, others are not."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of, policy_of_gates, policy_of_profile, with_gates
from phalanx.controllers.gates import GateLifter
from phalanx.dialects.gates import GATE, GangGates, as_made, gates_of, plan_of, plans
from phalanx.errors import ConfigError
from phalanx.model.kinds import POD
from phalanx.model.task import TaskKey
from phalanx.session.cycle import Profile
from phalanx.sim.world import World
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import gated_gangs as gates
from tests.support import sim_worlds as worlds

READY = "example.com/gang-ready"
WORKER = """
apiVersion: v1
kind: Pod
metadata:
  name: worker-{number}
  labels:
    pod-group.scheduling.sigs.k8s.io/name: training-job
spec:
  schedulingGates:
  - name: "example.com/gang-ready"
  containers:
  - name: worker
    image: training:v1
    resources:
      limits: {{nvidia.com/gpu: 1}}
"""
GROUP = """
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata:
  name: training-job
spec:
  minMember: 4
  scheduleTimeoutSeconds: 600
  minResources:
    cpu: "4"
    memory: "8Gi"
    nvidia.com/gpu: "2"
"""


def manifests(*, gpus: int) -> str:
    node = yaml.safe_dump(build.node("node-0", cpu=8, memory="64Gi", gpus=gpus))
    return "\n---\n".join([node, GROUP, *(WORKER.format(number=number) for number in range(4))])


def simulated(tmp_path: Path, *options: str, gpus: int) -> Any:
    (tmp_path / "all.yaml").write_text(manifests(gpus=gpus))
    command = ["simulate", str(tmp_path / "all.yaml"), "--until", "5m", *options]
    return CliRunner().invoke(main, command, prog_name="phalanx")


@pytest.mark.parametrize("profile", ["default-scheduler", "phalanx", "coscheduling"])
def test_a_gang_behind_a_gate_of_another_name_starts_as_a_whole(tmp_path: Path, profile: str) -> None:
    result = simulated(tmp_path, "--gate", READY, "--profile", profile, gpus=4)
    assert result.exit_code == 0, result.output
    assert "default/training-job starts" in result.stdout


def test_a_gang_that_does_not_fit_stays_behind_the_gate(tmp_path: Path) -> None:
    result = simulated(tmp_path, "--gate", READY, "--profile", "default-scheduler", gpus=3)
    assert "starts" not in result.stdout
    assert "3 of 4 tasks fit" in result.stdout


def test_a_gate_that_nobody_named_is_left_alone_and_the_reason_names_it(tmp_path: Path) -> None:
    result = simulated(tmp_path, gpus=4)
    assert "default/training-job starts" not in result.stdout
    assert f"held back by the scheduling gate '{READY}'" in result.stdout


def test_a_configuration_names_gates(tmp_path: Path) -> None:
    (tmp_path / "config.conf").write_text(f"profile: phalanx\nflags:\n  gates: [{READY}]\n")
    result = simulated(tmp_path, "--config", str(tmp_path / "config.conf"), gpus=4)
    assert "default/training-job starts" in result.stdout


def world() -> World:
    policy = with_gates(build.policy((("priority", "gang"), ("predicates", "nodeorder")), "allocate, backfill"), [READY])
    return worlds.world(
        policy=gates.ONE_BY_ONE, is_solo=True, nodes=2, cpu=2, controllers=[GateLifter(GangGates((READY,)))],
        gates=Profile(policy, CATALOGUE),
    )  # fmt: skip


def held(*names: str) -> Document:
    return {"schedulingGates": [{"name": name} for name in names]}


def test_all_gates_of_ours_are_removed_at_once_and_others_keep_the_gang_waiting() -> None:
    there = world()
    worlds.submit(there, gates.gang("train", 2, spec=held(READY, GATE), cpu=2))
    worlds.run(there, 10)
    assert len(gates.placed(there, "train")) == 2
    worlds.submit(there, gates.gang("other", 2, spec=held(READY, "example.com/quota")))
    worlds.run(there, 10)
    pods = [pod for pod in there.store.items(POD) if pod["metadata"]["name"].startswith("other")]
    assert [gates_of(pod) for pod in pods] == [[READY, "example.com/quota"]] * 2


def test_a_pod_that_is_made_anew_gets_the_gates_that_it_had() -> None:
    there = world()
    worlds.submit(there, gates.gang("train", 2, spec=held(READY), cpu=2))
    worlds.run(there, 10)
    (pod, _) = there.store.items(POD)
    assert gates_of(pod) == []
    assert gates_of(as_made(pod)) == [READY]


def test_a_plan_of_an_earlier_version_is_about_our_own_gate() -> None:
    plan = plans({TaskKey("default/a-0"): "node-0"}, 0.0)[TaskKey("default/a-0")]
    assert plan.gates == (GATE,)
    text = '{"id":"1","pods":1,"node":"node-0","made":"2026-01-01T00:00:00Z"}'
    found = plan_of({"metadata": {"annotations": {"phalanx.dev/plan": text}}})
    assert found is not None
    assert found.gates == (GATE,)


def test_options_add_to_the_names_of_the_configuration_and_plans_know_both() -> None:
    policy = with_gates(policy_of({"profile": "kai", "flags": {"gates": ["a.io/one"]}}), ["a.io/two", "a.io/one"])
    assert policy.flags.gates == ("a.io/one", "a.io/two")
    assert policy_of_gates(policy).flags.gates == policy.flags.gates
    assert with_gates(policy_of_profile("phalanx"), ()) == policy_of_profile("phalanx")


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ([3], "flags.gates: expected text, got int"),
        (["a b"], "flags.gates: 'a b' is not the name of a scheduling gate; write for example 'example.com/gang-ready'"),
        (["kueue.x-k8s.io/admission"], "belongs to Kueue; for clusters without Kueue write 'liftsKueueGate: true' in flags"),
        ("a.io/one", "flags.gates: expected a list, got str"),
    ],
)  # fmt: skip
def test_names_that_are_none_are_refused(names: object, problem: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        policy_of({"profile": "phalanx", "flags": {"gates": names}})
    assert problem in str(refusal.value)


def test_the_timeline_says_that_a_gang_was_deleted_because_its_time_was_up(tmp_path: Path) -> None:
    pods = [yaml.safe_load(WORKER.format(number=number)) for number in range(4)]
    for pod in pods:
        pod["metadata"]["annotations"] = {"phalanx.dev/timeout": "2m", "phalanx.dev/on-timeout": "delete"}
    objects = [build.node("node-0", cpu=8, memory="64Gi", gpus=3), yaml.safe_load(GROUP), *pods]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    result = CliRunner().invoke(main, ["simulate", str(tmp_path), "--until", "5m", "--gate", READY], prog_name="phalanx")
    text = "default/training-job times out: gang default/training-job was not whole in time; its 4 pods are deleted"
    assert any(line.split() == ["2m", *text.split()] for line in result.stdout.splitlines())
