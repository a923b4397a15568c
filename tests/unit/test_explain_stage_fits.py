"""Stage fits of an explanation: classes of tasks, what stands against them, the nearest nodes."""

from typing import Any

from phalanx.explain.reading import Reading
from phalanx.explain.stages.fits import fits
from phalanx.explain.tree import Line, StageResult
from phalanx.testing import build

POLICY = build.policy(tiers=(("priority", "gang"), ("predicates", "nodeorder")))


def stage(*objects: Any, policy: Any = POLICY, nodes: int = 3, **offers: Any) -> StageResult:
    cluster = build.cluster(nodes=nodes, policy=policy, **offers).submit(*objects)
    decisions = cluster.run_cycle().decisions
    outcome = next(outcome for outcome in decisions.outcomes if outcome.state.key == "default/train")
    return fits(Reading(outcome, cluster.objects.snapshot(0.0), decisions, policy))


def texts(lines: tuple[Line, ...], depth: int = 0) -> list[str]:
    return [text for line in lines for text in ("  " * depth + line.text, *texts(line.lines, depth + 1))]


def test_a_class_of_tasks_is_shown_with_every_cause_and_the_nearest_nodes() -> None:
    old = build.pod("old", on="node-0", gpus=3)
    cordoned = build.node("idle", gpus=4, spec={"unschedulable": True})
    result = stage(old, cordoned, build.gang("train", tasks=4, gpus=2, cpu=1), nodes=2, gpus=4)
    assert result.ok is False
    assert texts(result.lines) == [
        "4 tasks with 2 nvidia.com/gpu, 1 cpu: 2 fit, 0 of 3 nodes take one more",
        "  1 is cordoned (idle)",
        "  2 lack nvidia.com/gpu (5 of 8 are free, 8 needed)",
        "  nearest: node-0 lacks 1 nvidia.com/gpu",
    ]
    assert (result.lines[0].code, result.lines[0].things["fitting"]) == ("NodeCordoned", 2)
    assert result.lines[0].lines[1].things == {
        "nodes": 2, "thing": "nvidia.com/gpu", "on": "node-0, node-1", "free": "5", "offered": "8", "most": "4", "needed": "8",
    }  # fmt: skip


def test_roles_that_fit_are_told_apart_from_those_that_do_not() -> None:
    group = build.pod_group("train", min_member=3, minTaskMember={"ps": 1, "worker": 2})
    workers = [build.in_group("train", build.pod(f"train-worker-{number}", cpu=1), role="worker") for number in range(2)]
    server = build.in_group("train", build.pod("train-ps-0", cpu=100), role="ps")
    result = stage(group, *workers, server)
    assert texts(result.lines)[:2] == [
        "ps, 1 task with 100 cpu: 0 of 3 nodes take one",
        "  no node is that large: the largest has 8 cpu",
    ]
    assert result.lines[0].code == "TooLarge"


def test_a_task_with_a_fault_of_its_own_needs_no_nodes() -> None:
    spec = {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}
    result = stage(build.pod_group("train"), build.pod("train-0", group="train", spec=spec, cpu=1))
    assert texts(result.lines)[1:] == ["  volume claim 'data' does not exist"]
    assert result.lines[0].code == "VolumeClaimNotFound"


def test_a_gang_that_starts_fits() -> None:
    result = stage(build.gang("train", tasks=3, cpu=1))
    assert (result.ok, texts(result.lines)) == (True, ["3 tasks with 1 cpu: fit"])


def test_a_gang_that_nobody_tried_has_nothing_to_say() -> None:
    result = stage(build.gang("train", tasks=1, cpu=1), policy=build.policy(actions="enqueue, backfill"))
    assert (result.ok, result.lines) == (None, ())


def test_a_cluster_that_is_full_for_a_queue_is_shown_like_full_nodes() -> None:
    result = stage(build.gang("train", tasks=4, gpus=1), policy=build.policy(), nodes=1, gpus=3)
    assert texts(result.lines) == [
        "4 tasks with 1 nvidia.com/gpu: 3 fit, 0 of 1 node takes one more", "  1 lacks nvidia.com/gpu (3 of 3 are free, 4 needed)",
    ]  # fmt: skip


def test_several_refusals_of_one_resource_are_shown_once() -> None:
    policy = build.policy(actions="enqueue, allocate, allocate")
    cluster = build.cluster(nodes=1, policy=policy, gpus=3).submit(build.gang("train", tasks=4, gpus=1))
    outcome = cluster.run_cycle().decisions.outcomes[0]
    assert len([verdict for verdict in outcome.state.verdicts if verdict.reason == "QueueQuotaExceeded"]) > 1
    assert len(fits(Reading(outcome, cluster.objects.snapshot(0.0), cluster.run_cycle().decisions, policy)).lines) == 1


def test_tasks_that_differ_only_in_what_is_not_said_share_a_line() -> None:
    pods = [
        build.pod(f"train-{number}", group="train", cpu=1, spec={"nodeSelector": {"kubernetes.io/os": "linux"}})
        for number in (0, 1)
    ]
    pods += [build.pod(f"train-{number}", group="train", cpu=1) for number in (2, 3)]
    node = build.node("a", cpu=8, labels={"kubernetes.io/os": "linux"})
    assert texts(stage(node, build.pod_group("train", min_member=4), *pods, nodes=0).lines) == ["4 tasks with 1 cpu: fit"]
