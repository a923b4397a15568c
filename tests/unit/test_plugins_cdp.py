"""Cooldown protection."""

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.model.task import GangKey
from phalanx.session.cycle import open_session
from phalanx.testing import build
from phalanx.testing.build import Document

COOLDOWN = "volcano.sh/cooldown-time"
NOON = 1767268800.0
"""2026-01-01T12:00:00Z, when the pods below got their nodes."""


def pod(name: str = "web-0", *, label: str = "", annotation: str = "", phase: str = "Running") -> Document:
    document = build.pod(name, group="web", on="node-0", cpu=1)
    document["metadata"]["labels"].update({COOLDOWN: label} if label else {})
    document["metadata"]["annotations"].update({COOLDOWN: annotation} if annotation else {})
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"}
    document["status"] = {"phase": phase, "conditions": [condition]}
    return document


def may_go(document: Document, *, after_seconds: float) -> bool:
    policy = build.policy([["cdp"]], actions="preempt")
    cluster = build.cluster(nodes=1, policy=policy).submit(build.pod_group("web", phase="Running"), document)
    session = open_session(cluster.objects.snapshot(NOON + after_seconds), policy, CATALOGUE)
    gang = session.gang(GangKey("default/web"))
    assert gang is not None
    answers = [session.preemptable(gang.tasks[0], gang.tasks), session.reclaimable(gang.tasks[0], gang.tasks)]
    answers.append(session.evictable(gang.tasks[0], gang.tasks, "preempt"))
    assert all(answer == answers[0] for answer in answers)
    return bool(answers[0])


def test_a_task_is_protected_until_its_cooldown_is_over() -> None:
    assert not may_go(pod(annotation="10m"), after_seconds=599)
    assert may_go(pod(annotation="10m"), after_seconds=600)


def test_the_label_goes_before_the_annotation() -> None:
    assert may_go(pod(label="5m", annotation="10m"), after_seconds=400)
    assert not may_go(pod(label="15m", annotation="10m"), after_seconds=700)


@pytest.mark.parametrize("annotation", ["", "soon", "10"])
def test_a_task_without_a_cooldown_that_can_be_read_may_go_at_once(annotation: str) -> None:
    assert may_go(pod(annotation=annotation), after_seconds=0)


def test_a_task_that_does_not_run_yet_is_not_protected() -> None:
    assert may_go(pod(annotation="10m", phase="Pending"), after_seconds=1)


def test_a_task_whose_start_nobody_knows_is_not_protected() -> None:
    document = pod(annotation="10m")
    document["status"]["conditions"] = []
    assert may_go(document, after_seconds=1)


def test_preemption_waits_for_the_end_of_the_cooldown() -> None:
    policy = build.policy([["priority", "gang", "cdp"]], actions="preempt")
    cluster = build.cluster(nodes=1, policy=policy, cpu=1)
    cluster.submit({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10})
    cluster.submit(build.pod_group("web", min_member=0, phase="Running"), pod(annotation="10m"))
    cluster.submit(build.pod_group("high", phase="Inqueue", priorityClassName="high"), build.pod("high-0", group="high", cpu=1))
    evictions = [list(cluster.run_cycle(now=NOON + seconds).decisions.evictions) for seconds in (599, 600)]
    assert evictions == [[], ["default/web-0"]]
