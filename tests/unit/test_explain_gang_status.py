"""What a gang waits for, as a code."""

from typing import Any

import pytest

from phalanx.explain.gang_status import gang_status
from phalanx.explain.gangs import gang_list
from phalanx.explain.reason_code import reason_code
from phalanx.model.task_status import Status
from phalanx.testing import build
from phalanx.testing.build import Document, policy

PLAIN = policy([["gang", "predicates"]], "allocate")
WITH_QUEUES = policy([["gang", "predicates", "proportion"]], "enqueue, allocate")
INQUEUE, TINY = build.pod_group("bert", min_member=1, phase="Inqueue"), build.queue("tiny", capability={"cpu": 1})
GATE: Document = {"schedulingGates": [{"name": "example.com/wait"}]}


def with_spec(**spec: Any) -> list[Document]:
    return [build.pod_group("bert"), build.pod("bert-0", group="bert", cpu=1, spec=spec)]


def code_in(*documents: Any, chosen: Any = PLAIN, **offers: Any) -> str:
    cluster = build.cluster(nodes=2, policy=chosen, **offers).submit(*documents)
    return reason_code(cluster.run_cycle().decisions.outcomes[0], cluster.objects.snapshot(0.0))


@pytest.mark.parametrize(
    ("gang", "chosen", "code"),
    [
        (build.gang("bert", tasks=2, cpu=4), PLAIN, ""),
        (build.gang("bert", tasks=2, cpu=40), PLAIN, "TooLarge"),
        (build.gang("bert", tasks=3, cpu=8), PLAIN, "InsufficientResources"),
        (build.gang("bert", tasks=3, cpu=5), PLAIN, "ScatteredResources"),
        (build.gang("bert", tasks=9, cpu=2), WITH_QUEUES, "InsufficientResources"),
        (with_spec(nodeSelector={"disk": "ssd"}), PLAIN, "NodeSelectorMismatch"),
        (with_spec(volumes=[{"persistentVolumeClaim": {"claimName": "data"}}]), PLAIN, "VolumeClaimNotFound"),
        ([build.pod_group("bert", min_member=2)], PLAIN, "NoPods"),
        (build.gang("bert", tasks=2, min_member=3, cpu=1), PLAIN, "NotEnoughTasks"),
        (build.gang("bert", queue="nowhere", cpu=1), PLAIN, "QueueNotFound"),
        ([INQUEUE, build.pod("bert-0", group="bert", spec=GATE, cpu=1)], PLAIN, "Gated"),
        (build.gang("bert", tasks=20, cpu=2), policy([["gang"]], "backfill"), "NotAdmitted"),
        ([TINY, *build.gang("bert", queue="tiny", tasks=2, cpu=1)], WITH_QUEUES, "QueueQuotaExceeded"),
    ],
)  # fmt: skip
def test_each_gang_waits_for_one_thing(gang: list[Document], chosen: Any, code: str) -> None:
    assert code_in(gang, chosen=chosen) == code


def test_a_gang_that_was_not_tried_says_so() -> None:
    group, pod = build.gang("bert", cpu=1)
    group["status"]["phase"] = "Inqueue"
    assert code_in(group, pod, chosen=policy([["gang"]], "backfill")) == "NotTried"


def test_a_gang_for_which_no_domain_is_large_enough_says_so() -> None:
    group, *pods = build.gang("bert", tasks=2, cpu=5)
    group["spec"]["networkTopology"], group["status"]["phase"] = {"mode": "hard", "highestTierAllowed": 1}, "Inqueue"
    leaves = [build.hypernode(f"leaf-{number}", tier=1, members=[f"node-{number}"]) for number in range(2)]
    chosen = policy([["gang"], ["predicates", "network-topology-aware"]])
    assert code_in(group, pods, leaves, chosen=chosen) == "NoDomain"


def test_a_gang_that_is_evicted_or_pipelined_says_so() -> None:
    group, pod = build.pod_group("bert", phase="Running"), build.pod("bert-0", group="bert", on="node-0", cpu=1)
    cluster = build.cluster(policy=PLAIN).submit(group, pod)
    outcome, snapshot = cluster.run_cycle().decisions.outcomes[0], cluster.objects.snapshot(0.0)
    outcome.state.move(outcome.state.tasks[0], Status.RELEASING)
    assert reason_code(outcome, snapshot) == "Evicted"
    outcome.state.move(outcome.state.tasks[0], Status.PIPELINED)
    assert reason_code(outcome, snapshot) == "Pipelined"


@pytest.mark.parametrize(("phase", "status"), [("Running", "Empty"), ("Inqueue", "Empty"), ("Pending", "Waits")])
def test_a_gang_without_pods_is_empty_unless_it_waits_to_be_admitted(phase: str, status: str) -> None:
    cluster = build.cluster().submit(build.pod_group("bert", min_member=2, phase=phase))
    (item,) = gang_list(cluster.objects.snapshot(0.0), lambda state: "")["items"]
    assert item["status"] == status


@pytest.mark.parametrize(("phases", "status"), [(("Pending", "Pending"), "Bound"), (("Running", "Pending"), "Runs")])
def test_a_gang_of_which_no_pod_runs_does_not_run(phases: tuple[str, ...], status: str) -> None:
    pods = [build.pod(f"bert-{number}", group="bert", on="node-0", cpu=1) for number in range(2)]
    pods = [{**pod, "status": {"phase": phase}} for pod, phase in zip(pods, phases, strict=True)]
    cluster = build.cluster(nodes=2, policy=PLAIN).submit(build.pod_group("bert", min_member=2, phase="Running"), *pods)
    found = gang_status(cluster.run_cycle().decisions.outcomes[0].state)
    assert (found, found.has_minimum) == (status, True)
