"""Nothing of the input vanishes: `phalanx schedule` places what `phalanx run` would, and says what it leaves out and why."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.testing import build
from phalanx.testing.build import Document

GATE = "phalanx.dev/gang"


def schedule(*objects: Document, more: tuple[str, ...] = ()) -> Result:
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": [build.node("node-0", cpu=8), *objects]})
    return CliRunner().invoke(main, ["schedule", "-f", "-", *more], input=given, prog_name="phalanx")


def answer(*objects: Document, more: tuple[str, ...] = ()) -> Any:
    return json.loads(schedule(*objects, more=("-o", "json", *more)).stdout)


def pod(name: str, scheduler: str = "", *, group: str = "", gates: tuple[str, ...] = (), **meta: Any) -> Document:
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    spec |= {"schedulerName": scheduler} if scheduler else {}
    spec |= {"schedulingGates": [{"name": gate} for gate in gates]} if gates else {}
    annotations = {**({"scheduling.k8s.io/group-name": group} if group else {}), **meta.pop("annotations", {})}
    return {
        "apiVersion": "v1", "kind": "Pod", "spec": spec,
        "metadata": {"name": name, "namespace": "default", "annotations": annotations, **meta},
    }  # fmt: skip


def owner(api: str, kind: str, **spec: Any) -> Document:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "train", "namespace": "default"}, "spec": spec}


def left(found: Any) -> dict[str, tuple[str, str]]:
    return {item["object"]: (item["reason"], item["message"]) for item in found["leftOut"]}


# --- bare pods -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["phalanx", "volcano"])
def test_a_bare_pod_of_ours_is_a_gang_of_one(scheduler: str) -> None:
    result = schedule(pod("alone", scheduler))
    assert result.exit_code == 0
    assert "default/podgroup-alone  node-0 ×1" in result.stdout


def test_a_bare_pod_of_kais_scheduler_gets_a_group_of_kais() -> None:
    (group,) = answer(pod("alone", "kai-scheduler"))["groups"].values()
    assert group["why"] == "queue 'default-queue' does not exist"


def test_pods_of_one_owner_are_in_its_group() -> None:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    pods = [pod(f"web-{number}", "volcano", ownerReferences=[reference]) for number in range(2)]
    assert {task["group"] for task in answer(*pods)["tasks"].values()} == {"default/podgroup-u"}


def test_a_bare_pod_of_the_default_scheduler_is_left_out_and_nobody_is_alarmed() -> None:
    result = schedule(pod("alone"), pod("other"))
    assert result.exit_code == 0
    assert "2 Pods  default/alone, default/other  names no group, and kube-scheduler places it" in result.stdout


# --- schedulers ----------------------------------------------------------------------------------------------------------


def test_the_first_line_counts_the_pods_that_are_left_out() -> None:
    bound = build.pod("bound", on="node-0", cpu=1)
    assert schedule(pod("a"), pod("b")).stdout.startswith(
        "No gangs: the input has 1 node, 2 pods that are left out, and no PodGroup.\n"
    )
    assert schedule(bound, pod("b")).stdout.startswith(
        "No gangs: the input has 1 node with 1 pod, 1 pod that is left out, and no PodGroup.\n"
    )


def test_a_gang_of_a_scheduler_that_is_not_ours_waits_and_the_name_is_suggested() -> None:
    result = schedule(build.pod_group("train"), pod("train-0", "volcanoo", group="train"))
    assert result.exit_code == 3
    assert "1 of 1 task is not ours: schedulerName is 'volcanoo'; did you mean 'volcano'?" in result.stdout


def test_simulations_have_the_same_rule() -> None:
    objects = [build.node("node-0", cpu=8), build.pod_group("train"), pod("train-0", "volcanoo", group="train")]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    found = json.loads(CliRunner().invoke(main, ["simulate", "-", "--until", "1m", "-o", "json"], input=given).stdout)
    assert (found["gangs"][0]["started"], found["gangs"][0]["why"][:20]) == (None, "1 of 1 task is not o")


def test_a_name_that_is_given_is_ours_and_no_other() -> None:
    objects = build.pod_group("train"), pod("train-0", "gangs", group="train"), pod("bare", "gangs"), pod("kube", "phalanx")
    found = answer(*objects, more=("--scheduler-name", "gangs"))
    assert sorted(found["binds"]) == ["default/bare", "default/train-0"]
    assert left(found)["Pod default/kube"] == ("OtherScheduler", "schedulerName is 'phalanx'; ours is gangs")


# --- gates ---------------------------------------------------------------------------------------------------------------


def gated(name: str, *gates: str) -> Document:
    return pod(name, gates=gates, labels={GATE: "train"}, annotations={"phalanx.dev/min-member": "2"})


def test_gangs_behind_our_gate_are_planned() -> None:
    result = schedule(gated("a", GATE), gated("b", GATE))
    assert result.exit_code == 0
    assert f"when its scheduling gate {GATE!r} is removed" in result.stdout
    assert answer(gated("a", GATE), gated("b", GATE))["plans"] == {"default/a": "node-0", "default/b": "node-0"}


def test_a_gang_without_room_behind_our_gate_waits_for_what_is_missing_not_for_the_gate() -> None:
    large = [gated(name, GATE) for name in ("a", "b")]
    for item in large:
        item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "6"
    found = answer(*large)
    assert found["plans"] == {}
    assert found["groups"]["default/train"]["why"].startswith("1 of 2 tasks fit; ")


def test_a_pod_with_another_gate_too_is_not_planned() -> None:
    assert answer(gated("a", GATE), gated("b", GATE, "example.com/quota"))["plans"] == {}


def test_gates_of_others_are_named() -> None:
    found = answer(pod("alone", "phalanx", gates=("example.com/quota",)))
    (group,) = found["groups"].values()
    assert group["why"] == "1 of 1 task is held back by the scheduling gate 'example.com/quota'"


# --- groups and owners ---------------------------------------------------------------------------------------------------


def test_pods_of_a_missing_group_wait_for_it() -> None:
    result = schedule(pod("train-0", "volcano", group="absent"))
    assert result.exit_code == 3
    assert "1 pod waits for PodGroup default/absent of scheduling.volcano.sh, which does not exist; create it" in result.stdout


def test_pods_of_a_group_that_was_rejected_are_left_out() -> None:
    group = build.pod_group("train")
    found = answer({**group, "spec": {"minMember": "many"}}, pod("train-0", "volcano", group="train"))
    assert left(found)["Pod default/train-0"] == ("GroupRefused", "its PodGroup default/train was rejected")
    table = schedule({**group, "spec": {"minMember": "many"}}, pod("train-0", "volcano", group="train")).stdout
    assert "does not exist" not in table


TRY = "; 'phalanx try -f' decides on those that its controller would create"


@pytest.mark.parametrize(
    ("api", "kind", "who"),
    [
        ("batch.volcano.sh/v1alpha1", "Job", f"{TRY}, and 'phalanx simulate' creates them"),
        ("batch/v1", "Job", TRY),
        ("apps/v1", "StatefulSet", TRY),
        ("kubeflow.org/v1", "PyTorchJob", TRY),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", ", and nothing here creates them; add them to the input"),
        ("batch/v1", "CronJob", ", and nothing here creates them; add them to the input"),
    ],
)
def test_an_owner_without_pods_is_left_out(api: str, kind: str, who: str) -> None:
    template = {"spec": {"schedulerName": "volcano"}}
    assert left(answer(owner(api, kind, template=template))) == {
        f"{kind} default/train": ("NoPods", f"no pods of it are in the input{who}")
    }
    assert schedule(owner(api, kind, template=template)).exit_code == 3


@pytest.mark.parametrize("spec", [{"suspend": True}, {"replicas": 0}])
def test_an_owner_that_wants_no_pods_is_not_mentioned(spec: Document) -> None:
    assert "leftOut" not in answer(owner("apps/v1", "StatefulSet", **spec))


def test_an_owner_with_pods_is_not_left_out() -> None:
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    assert "leftOut" not in answer(owner("batch/v1", "Job"), pod("train-0", "volcano", ownerReferences=[reference]))


def test_a_simulation_names_the_gangs_that_never_started_in_its_last_line() -> None:
    objects = [build.node("node-0", cpu=8), *build.gang("large", tasks=9, cpu=1), *build.gang("small", tasks=1, cpu=1)]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    result = CliRunner().invoke(main, ["simulate", "-", "--until", "1m"], input=given)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "phalanx: 1 of 2 gangs never started: default/large"


def test_a_pod_that_names_two_groups_is_left_out_for_that_whichever_group_came_first() -> None:
    several = pod("train-0", "volcano", group="train")
    several["spec"]["schedulingGroup"] = {"podGroupName": "other"}
    other = {
        "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "other", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    }  # fmt: skip
    result = schedule(build.pod_group("train"), several, other, more=("-o", "json"))
    reason, message = left(json.loads(result.stdout))["Pod default/train-0"]
    assert (result.exit_code, reason) == (3, "TwoGroups")
    assert message.startswith("it belongs to two groups, default/train (volcano) and default/other (native)")
