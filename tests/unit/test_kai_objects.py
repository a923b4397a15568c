"""KAI's objects: what is broken is refused alone, with the reason, and everybody else is scheduled."""

from typing import Any

import pytest

from phalanx.errors import ConfigError, SnapshotError
from phalanx.testing import build
from tests.support import kai_objects as kai


def refused(document: build.Document) -> str:
    """Submit a broken object beside a good job; return the reason, the good job having started."""
    cluster = kai.cluster().submit(kai.queue("a", quota=4), kai.gang("good", gpus=1))
    with pytest.raises(SnapshotError) as problem:
        cluster.submit(document)
    assert cluster.run_cycle().binds == [("good-0", "node-0")]
    return str(problem.value)


def group(*parts: dict[str, Any], **spec: Any) -> build.Document:
    return kai.pod_group("bad", subGroups=list(parts), **spec)


def test_a_sub_group_whose_parent_is_unknown_is_refused() -> None:
    assert refused(group({"name": "worker", "parent": "crew"})) == (
        "PodGroup default/bad: spec.subGroups: 'worker' names the parent 'crew', which does not exist; "
        "add it, or leave the parent out"
    )


@pytest.mark.parametrize("parents", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "b"}])
def test_sub_groups_in_a_circle_are_refused(parents: dict[str, str]) -> None:
    reason = refused(group(*({"name": name, "parent": parent} for name, parent in parents.items())))
    assert reason.endswith("is its own ancestor; parents must form a tree, remove one of them")


def test_two_sub_groups_of_one_name_are_refused() -> None:
    assert refused(group({"name": "worker"}, {"name": "worker"})).endswith("two have the same name; give each its own")


def test_a_negative_minimum_of_a_sub_group_is_refused() -> None:
    assert refused(group({"name": "worker", "minMember": -1})).endswith("minMember of 'worker' is negative; write 1 or more")


def test_an_unknown_preemptibility_is_refused() -> None:
    assert "spec.preemptibility: 'maybe' is unknown" in refused(group(preemptibility="maybe"))


@pytest.mark.parametrize("kind", ["quota", "limit"])
@pytest.mark.parametrize("value", [-2, -0.5, 1e30, float("inf"), float("nan")])
def test_a_negative_bound_of_a_queue_is_refused(kind: str, value: float) -> None:
    queue = kai.queue("bad")
    queue["spec"]["resources"]["gpu"][kind] = value
    assert refused(queue) == f"Queue bad: spec.resources.gpu: {float(value)} is not an amount; write 0 or more, or -1 for no bound"


def test_a_negative_weight_of_a_queue_is_refused_alone() -> None:
    assert refused(kai.queue("bad", weight=-3)).startswith("Queue bad: spec.resources.gpu")


@pytest.mark.parametrize("field", ["preemptMinRuntime", "reclaimMinRuntime"])
def test_a_run_time_that_is_none_breaks_no_session(field: str) -> None:
    queue = kai.queue("a", quota=4)
    queue["spec"][field] = "soon"
    cluster = kai.cluster().submit(
        queue, kai.gang("old", on="node-0", gpus=4, annotations={kai.LAST_START: "2026-01-01T00:00:00Z"})
    )
    cluster.run_cycle()


@pytest.mark.parametrize("key", [kai.LAST_START, kai.STALE_SINCE])
@pytest.mark.parametrize("stamp", ["yesterday", "", "2026-13-45T00:00:00Z"])
def test_a_stamp_that_is_no_time_breaks_no_session(key: str, stamp: str) -> None:
    cluster = kai.cluster().submit(
        kai.queue("a", quota=4), kai.gang("train", tasks=2, on=["node-0"], gpus=1, annotations={key: stamp})
    )
    assert len(cluster.run_cycle().binds) == 1


def test_a_group_without_a_spec_breaks_no_session() -> None:
    bare = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "bare", "namespace": "default"}}
    cluster = kai.cluster().submit(kai.queue("a", quota=4), bare, kai.pod("p", "bare"), kai.gang("good", gpus=1))
    cycle = cluster.run_cycle()
    assert cycle.binds == [("good-0", "node-0")]
    assert cycle.why("bare") == "it names no queue"


def test_a_pod_that_names_a_sub_group_that_is_not_there_joins_none() -> None:
    parts = [{"name": "worker", "minMember": 1}]
    pods = [kai.pod("w", "serve", part="worker"), kai.pod("x", "serve", part="nobody"), kai.pod("y", "serve")]
    cycle = kai.cluster().submit(kai.queue("a", quota=4), kai.pod_group("serve", subGroups=parts), pods).run_cycle()
    assert [name for name, _ in cycle.binds] == ["w"]
    assert "pod default/x names the sub-group 'nobody', which takes no pods; write one of worker" in cycle.why("serve")
    assert "pod default/y has no label kai.scheduler/subgroup-name; write one of worker" in cycle.why("serve")


def test_a_group_that_lacks_pods_names_those_that_are_in_no_sub_group() -> None:
    parts = [{"name": "worker", "minMember": 2}]
    pods = [kai.pod("w", "serve", part="worker"), kai.pod("x", "serve", part="workers")]
    cycle = kai.cluster().submit(kai.queue("a", quota=4), kai.pod_group("serve", subGroups=parts), pods).run_cycle()
    assert cycle.why("serve") == (
        "waiting for pods: sub-group worker: 2 needed, 1 exists; "
        "pod default/x names the sub-group 'workers', which takes no pods; write one of worker"
    )


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"actions": "alocate"}, "actions: unknown action 'alocate'"),
        ({"options": {"grace": 1}}, "options.grace: unknown option"),
        ({"options": {"stalenessGracePeriodSeconds": "60s"}}, "options.stalenessGracePeriodSeconds: '60s' is wrong; write a whole"),
        (
            {"options": {"maxConsolidationPreemptees": None}},
            "options.maxConsolidationPreemptees: None is wrong; write a whole number",
        ),
        ({"options": {"schedulingSignatures": 1}}, "options.schedulingSignatures: 1 is wrong; write true or false"),
        ({"plugins": {"gang": {}}}, "plugins.gang: unknown plugin"),
        ({"plugins": {"topology": 3}}, "plugins.topology: expected a mapping"),
        ({"plugins": {"topology": {"arguments": 3}}}, "plugins.topology.arguments: expected a mapping"),
        ({"options": 3}, "options: expected a mapping"),
        ({"tiers": []}, "configuration.tiers: unknown key"),
    ],
)
def test_a_wrong_configuration_says_where(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        kai.policy(**config)
