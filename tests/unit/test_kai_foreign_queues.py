"""Queues and gangs of Volcano's dialect under KAI's rules."""

from phalanx.dialects.cluster import ObjectCluster
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle
from tests.support import kai_objects as kai

DESERVED = {"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "2"}


def cluster() -> Cluster:
    return build.cluster(nodes=2, gpus=4, policy=kai.policy())


def fair_gpus(cycle: Cycle, queue: str) -> float:
    return float(cycle.answer["queues"][queue]["fair_share"]["gpu"])


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


def test_the_queues_that_always_exist_take_part_only_where_volcanos_objects_are() -> None:
    objects = ObjectCluster()
    objects.put(kai.queue("team"))
    assert objects.snapshot(0).queues["default"].bounds is None
    objects.put(build.pod_group("a"))
    assert objects.snapshot(0).queues["default"].bounds is not None
    objects.remove(build.pod_group("a"))
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
