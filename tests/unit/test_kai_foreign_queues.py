"""Queues and gangs of Volcano's dialect under KAI's rules."""

from collections.abc import Sequence

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle
from tests.support import kai_objects as kai

DESERVED = {"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "2"}


def cluster() -> Cluster:
    return build.cluster(nodes=2, gpus=4, policy=kai.policy())


def fair_gpus(cycle: Cycle, queue: str) -> float:
    return float(cycle.answer["queues"][queue]["fair_share"]["gpu"])


def coscheduled(*, gpus: int) -> list[build.Document]:
    """Two pods in a PodGroup of Coscheduling, which has no queues: it is in the queue `default`."""
    meta = {"namespace": "default", "name": "plain"}
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": meta, "spec": {"minMember": 2}}
    members = [build.pod(f"plain-{number}", gpus=gpus) for number in range(2)]
    for pod in members:
        pod["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "plain"}
    return [group, *members]


def kueue_pod(number: int = 0) -> build.Document:
    """A pod that says itself that it is one of two, with a local queue that no Queue stands for."""
    pod = build.pod(f"plain-{number}", gpus=1)
    pod["metadata"]["labels"] = {"kueue.x-k8s.io/pod-group-name": "plain", "kueue.x-k8s.io/queue-name": "research"}
    pod["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    return pod


def test_a_queue_has_what_it_deserves_as_quota_its_capability_as_limit_and_its_weight() -> None:
    objects = ObjectCluster()
    objects.put(build.queue("team", weight=3, deserved=DESERVED, capability={"nvidia.com/gpu": "6"}))
    bounds = objects.snapshot(0).queues["team"].bounds
    assert bounds is not None
    assert (bounds.quota, bounds.limit, bounds.weight) == ((4000.0, float(1 << 30), 2.0), (-1.0, -1.0, 6.0), (3.0, 3.0, 3.0))


def test_a_queue_that_says_nothing_has_no_quota_and_no_limit() -> None:
    objects = ObjectCluster()
    objects.put(build.queue("team"))
    bounds = objects.snapshot(0).queues["team"].bounds
    assert bounds is not None
    assert (bounds.quota, bounds.limit) == ((0.0, 0.0, 0.0), (-1.0, -1.0, -1.0))


@pytest.mark.parametrize("other", [build.pod_group("a"), build.queue("b"), coscheduled(gpus=1)[0], kueue_pod()])
def test_the_queues_that_always_exist_take_part_only_where_other_dialects_are(other: build.Document) -> None:
    objects = ObjectCluster()
    for document in (kai.queue("team"), *kai.gang("own", tasks=1)):
        objects.put(document)
    assert objects.snapshot(0).queues["default"].bounds is None
    objects.put(other)
    assert objects.snapshot(0).queues["default"].bounds is not None
    objects.remove(other)
    assert objects.snapshot(0).queues["default"].bounds is None


def test_a_gang_in_the_queue_default_starts() -> None:
    cycle = cluster().submit(build.gang("a", tasks=8, gpus=1)).run_cycle()
    assert len(cycle.binds) == 8


def test_queues_share_by_their_weights_and_under_root() -> None:
    found = cluster().submit(build.queue("big", weight=3, parent="root"), build.queue("small", weight=1, parent="root"))
    for queue in ("big", "small"):
        found.submit(build.gang(queue, tasks=8, min_member=1, queue=queue, gpus=1))
    cycle = found.run_cycle()
    assert (fair_gpus(cycle, "big"), fair_gpus(cycle, "small")) == (6.0, 2.0)
    assert len(cycle.binds) == 8


def test_a_limit_holds() -> None:
    found = cluster().submit(build.queue("team", capability={"nvidia.com/gpu": "3"}))
    cycle = found.submit(build.gang("a", tasks=8, min_member=1, queue="team", gpus=1)).run_cycle()
    assert len(cycle.binds) == 3


def test_gangs_that_run_count_though_nothing_is_to_be_decided_for_them() -> None:
    found = cluster().submit(build.queue("one"), build.queue("two"))
    found.submit(build.gang("a", tasks=8, min_member=1, queue="one", gpus=1))
    found.carry_out(found.run_cycle()).carry_out(found.run_cycle())
    found.submit(build.gang("b", tasks=4, min_member=1, queue="two", gpus=1))
    cycle = found.run_cycle()
    assert cycle.answer["queues"]["one"]["allocated"]["gpu"] == 8.0
    assert len(cycle.answer["evictions"]) == 1
    assert {entry["for"] for entry in cycle.answer["evictions"].values()} == {"default/b"}


# --- gangs of other dialects ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gang", [coscheduled(gpus=1), [kueue_pod(0), kueue_pod(1)]])
@pytest.mark.parametrize("beside", [[], [build.pod_group("other")], [kai.queue("team", parent="")]])
def test_a_gang_of_a_dialect_without_such_queues_starts_whatever_else_there_is(
    gang: list[build.Document], beside: list[build.Document]
) -> None:
    cycle = cluster().submit(gang, beside).run_cycle()
    assert (len(cycle.binds), cycle.why("plain")) == (2, "")


def test_a_queue_of_kais_called_default_bounds_them() -> None:
    cycle = cluster().submit(kai.queue("default", parent="", quota=1, limit=1), coscheduled(gpus=1)).run_cycle()
    assert cycle.binds == []
    assert cycle.why("plain").startswith("over limit: queue 'default'")


def test_a_gang_whose_queue_does_not_exist_is_told_what_to_create() -> None:
    cycle = cluster().submit(build.gang("lost", tasks=2, queue="nobody", gpus=1)).run_cycle()
    assert cycle.binds == []
    assert cycle.why("lost") == "queue 'nobody' does not exist; create a Queue of scheduling.run.ai"


def test_a_gang_of_another_dialect_is_told_what_is_wrong_with_the_nodes() -> None:
    found = cluster().submit(kai.queue("default", parent="", quota=-1))
    old = kai.gang("old", gpus=4, queue="default", on="node-0", preemptibility="non-preemptible")
    sentence = "1 of 2 tasks fit; no place for 4 nvidia.com/gpu (2 nodes: 2 lack nvidia.com/gpu (4 of 8 are free, 8 needed))"
    assert found.submit(old, coscheduled(gpus=4)).run_cycle().why("plain").startswith(sentence)
    old = [build.pod_group("old", phase="Running"), build.pod("old-0", group="old", on="node-0", gpus=4)]
    found = cluster().submit(*old, build.gang("team", tasks=2, gpus=4))
    assert found.run_cycle().why("team").startswith(sentence)


# --- queues of one name --------------------------------------------------------------------------------------------------

BOTH = (kai.queue("default", parent="", quota=2, limit=2), build.queue("default", capability={"nvidia.com/gpu": "6"}))


def running(documents: Sequence[build.Document], profile: str) -> int:
    """Return how many of eight pods start when the objects come in this order."""
    policy = kai.policy() if profile == "kai" else policy_of_profile(profile)
    gang = kai.gang("a", tasks=8, min_member=1, gpus=1, queue="default")
    return len(build.cluster(nodes=2, gpus=4, cpu=64, policy=policy).submit(*documents, gang).run_cycle().binds)


@pytest.mark.parametrize("documents", [BOTH, BOTH[::-1]])
def test_of_two_queues_of_one_name_the_own_one_counts_in_whatever_order_they_come(documents: Sequence[build.Document]) -> None:
    assert running(documents, "kai") == 2
    assert running(documents, "phalanx") == 6


@pytest.mark.parametrize(("gone", "left"), [(BOTH[0], (-1.0, -1.0, 6.0)), (BOTH[1], (-1.0, -1.0, 2.0))])
def test_when_one_of_them_goes_the_other_one_counts(gone: build.Document, left: tuple[float, ...]) -> None:
    objects = ObjectCluster()
    for document in BOTH:
        objects.put(document)
    objects.remove(gone)
    snapshot = objects.snapshot(0)
    bounds = snapshot.queues["default"].bounds
    assert (bounds is not None and bounds.limit, dict(snapshot.namesakes)) == (left, {})
