"""A simulated autoscaler: which nodes it asks for, when, and when it gives them back."""

from dataclasses import replace
from typing import Any

from phalanx.model.kinds import NODE, POD
from phalanx.sim.autoscaler import is_unschedulable
from phalanx.sim.node_pools import AutoscalerSettings, NodePool, NodeTemplate, Stockout
from phalanx.sim.result import Run, result
from phalanx.sim.settings import Settings, Span
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import sim_worlds as worlds

HOUR = 3600.0
EIGHT_GPUS = NodeTemplate({"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"})


def pool(name: str = "gpu", **more: Any) -> NodePool:
    return NodePool(**{"name": name, "template": EIGHT_GPUS, "max": 16, **more})


def world(*pools: NodePool, nodes: int = 0, is_solo: bool = False, seed: int = 0, offers: Any = None, **more: Any) -> World:
    settings = Settings(autoscaler=AutoscalerSettings(pools or (pool(),), **more))
    return worlds.world(nodes=nodes, settings=settings, is_solo=is_solo, seed=seed, **(offers or {}))


def events(world: World) -> list[tuple[float, str, str, int]]:
    assert world.autoscaler is not None
    return [(item.moment, item.pool, item.kind, item.count) for item in world.autoscaler.provider.events]


def kinds(world: World, kind: str) -> list[tuple[float, str, str, int]]:
    return [item for item in events(world) if item[2] == kind]


def node_names(world: World) -> list[str]:
    return [node["metadata"]["name"] for node in world.store.items(NODE)]


def running(world: World) -> int:
    return list(worlds.phases(world.store).values()).count("Running")


# --- scale-up --------------------------------------------------------------------------------------------------------------


def test_a_gang_of_eight_on_an_empty_pool_starts_whole_in_one_scale_up() -> None:
    cluster = world()
    worlds.submit(cluster, worlds.gang("train", tasks=8, gpus=8))
    worlds.run(cluster, 129)
    assert (running(cluster), node_names(cluster)) == (0, [])
    worlds.run(cluster, HOUR)
    assert events(cluster) == [(10.0, "gpu", "scale-up", 8), (130.0, "gpu", "delivered", 8)]
    assert running(cluster) == 8
    starts = {pod["status"]["startTime"] for pod in cluster.store.items(POD)}
    assert len(starts) == 1
    assert worlds.record(cluster, "train").started == 131.0


def test_small_pods_share_the_nodes_that_are_asked_for() -> None:
    cluster = world()
    worlds.submit(cluster, worlds.gang("train", tasks=12, gpus=2), worlds.gang("other", tasks=3, gpus=1))
    worlds.run(cluster, HOUR)
    assert kinds(cluster, "scale-up") == [(10.0, "gpu", "scale-up", 4)]
    assert running(cluster) == 15


def test_large_pods_are_packed_first() -> None:
    cluster = world()
    worlds.submit(cluster, worlds.gang("small", tasks=6, gpus=2), worlds.gang("large", tasks=2, gpus=6))
    worlds.run(cluster, HOUR)
    assert kinds(cluster, "scale-up") == [(10.0, "gpu", "scale-up", 3)]
    assert running(cluster) == 8


def test_pods_that_fit_on_nodes_on_their_way_get_no_others() -> None:
    cluster = world()
    worlds.submit(cluster, worlds.gang("first", tasks=3, gpus=4))
    worlds.submit(cluster, worlds.gang("second", tasks=1, gpus=4), at=60)
    worlds.run(cluster, HOUR)
    assert kinds(cluster, "scale-up") == [(10.0, "gpu", "scale-up", 2)]
    assert running(cluster) == 4


def test_pods_that_fit_on_nodes_that_are_there_get_no_others() -> None:
    cluster = world(nodes=2, offers={"gpus": 8, "cpu": 64, "memory": "512Gi"})
    worlds.submit(cluster, worlds.gang("train", tasks=2, gpus=8))
    worlds.run(cluster, HOUR)
    assert events(cluster) == []


def test_only_pods_that_are_unschedulable_count() -> None:
    def pod(**condition: str) -> dict[str, Any]:
        return {**build.pod("a"), "status": {"conditions": [{"type": "PodScheduled", **condition}]}}

    assert is_unschedulable(pod(status="False", reason="Unschedulable"))
    assert not is_unschedulable(pod(status="False", reason="SchedulingGated"))
    assert not is_unschedulable(pod(status="True", reason="Unschedulable"))
    assert not is_unschedulable(build.pod("a"))
    bound = pod(status="False", reason="Unschedulable")
    bound["spec"]["nodeName"] = "node-0"
    assert not is_unschedulable(bound)


def test_the_filters_of_kubernetes_say_which_pool_helps() -> None:
    tainted = replace(EIGHT_GPUS, taints=({"key": "team", "value": "red", "effect": "NoSchedule"},))
    labelled = replace(EIGHT_GPUS, labels={"zone": "east"})
    cluster = world(pool("a", template=tainted), pool("b"), pool("c", template=labelled))
    group, train = worlds.gang("train", tasks=1, gpus=8)
    train["spec"]["nodeSelector"] = {"zone": "east"}
    worlds.submit(cluster, [group, train])
    worlds.run(cluster, HOUR)
    assert kinds(cluster, "scale-up") == [(10.0, "c", "scale-up", 1)]


def test_what_no_pool_could_hold_scales_nothing() -> None:
    cluster = world()
    worlds.submit(cluster, worlds.gang("train", tasks=1, gpus=16))
    worlds.run(cluster, HOUR)
    assert events(cluster) == []


def test_of_two_pools_the_one_of_which_less_is_wasted_is_taken() -> None:
    small = NodeTemplate({"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"})
    cluster = world(pool("large"), pool("small", template=small))
    worlds.submit(cluster, worlds.gang("train", tasks=2, gpus=1, cpu=6, memory="32Gi"))
    worlds.run(cluster, HOUR)
    assert kinds(cluster, "scale-up") == [(10.0, "small", "scale-up", 2)]


def test_of_two_equal_pools_the_first_by_name_is_taken() -> None:
    cluster = world(pool("b"), pool("a"))
    worlds.submit(cluster, worlds.gang("train", tasks=2, gpus=8))
    worlds.run(cluster, HOUR)
    assert [item[1] for item in kinds(cluster, "scale-up")] == ["a"]


# --- limits ----------------------------------------------------------------------------------------------------------------


def test_a_gang_larger_than_the_maximum_of_a_pool_gets_what_the_pool_may_have() -> None:
    cluster = world(pool(max=5))
    worlds.submit(cluster, worlds.gang("train", tasks=8, gpus=8))
    worlds.run(cluster, 300)
    assert events(cluster) == [(10.0, "gpu", "scale-up", 5), (130.0, "gpu", "delivered", 5)]
    assert running(cluster) == 0


def test_an_atomic_scale_up_gives_a_gang_all_nodes_or_none() -> None:
    cluster = world(pool(max=5), is_atomic=True)
    worlds.submit(cluster, worlds.gang("large", tasks=8, gpus=8), worlds.gang("train", tasks=5, gpus=8))
    worlds.run(cluster, 300)
    assert events(cluster) == [(10.0, "gpu", "scale-up", 5), (130.0, "gpu", "delivered", 5)]
    assert worlds.record(cluster, "train").started == 131.0
    assert worlds.record(cluster, "large").started is None


def test_gangs_that_scale_atomically_are_helped_one_per_scan() -> None:
    cluster = world(is_atomic=True)
    worlds.submit(cluster, worlds.gang("first", tasks=2, gpus=8), worlds.gang("second", tasks=3, gpus=8))
    worlds.run(cluster, HOUR)
    assert kinds(cluster, "scale-up") == [(10.0, "gpu", "scale-up", 2), (20.0, "gpu", "scale-up", 3)]
    assert running(cluster) == 5


def test_a_scheduler_without_gangs_starts_a_part_of_a_gang_on_a_pool_that_is_too_small() -> None:
    cluster = world(pool(max=5), is_solo=True)
    worlds.submit(cluster, worlds.gang("train", tasks=8, gpus=8))
    worlds.run(cluster, 300)
    assert running(cluster) == 5


# --- failures --------------------------------------------------------------------------------------------------------------


def test_a_pool_that_delivers_a_part_gives_it_back_when_nobody_uses_it() -> None:
    cluster = world(pool(stockouts=(Stockout(nodes=4),)), backoff=HOUR, max_backoff=HOUR)
    worlds.submit(cluster, worlds.gang("train", tasks=8, gpus=8))
    worlds.run(cluster, 0.9 * HOUR)
    scaling = [item[2:] for item in events(cluster)]
    assert scaling == [("scale-up", 8), ("delivered", 4), ("failed", 4), ("scale-down", 4)]
    assert kinds(cluster, "scale-down")[0][0] == 130 + 10 + 600
    assert (node_names(cluster), running(cluster)) == ([], 0)


def test_nodes_are_kept_for_pods_that_wait_if_asked_for() -> None:
    cluster = world(pool(stockouts=(Stockout(nodes=4),)), backoff=HOUR, max_backoff=HOUR, keeps_for_pending=True)
    worlds.submit(cluster, worlds.gang("train", tasks=8, gpus=8))
    worlds.run(cluster, 0.9 * HOUR)
    assert node_names(cluster) == ["gpu-1", "gpu-2", "gpu-3", "gpu-4"]


def test_an_atomic_scale_up_that_fails_in_part_delivers_nothing() -> None:
    cluster = world(pool(stockouts=(Stockout(nodes=4),)), is_atomic=True, backoff=HOUR, max_backoff=HOUR)
    worlds.submit(cluster, worlds.gang("train", tasks=8, gpus=8))
    worlds.run(cluster, 0.9 * HOUR)
    assert events(cluster) == [(10.0, "gpu", "scale-up", 8), (130.0, "gpu", "failed", 8)]


def test_after_a_stockout_the_gang_starts() -> None:
    cluster = world(pool(stockouts=(Stockout(nodes=0, until=600),)))
    worlds.submit(cluster, worlds.gang("train", tasks=8, gpus=8))
    worlds.run(cluster, HOUR)
    assert [item[0] for item in kinds(cluster, "scale-up")] == [10.0, 430.0, 1150.0]
    assert worlds.record(cluster, "train").started == 1271.0


def test_a_pool_backs_off_longer_each_time_up_to_a_limit() -> None:
    cluster = world(pool(delay=Span(0.0, 0.0), stockouts=(Stockout(nodes=0),)), backoff=60, max_backoff=200)
    worlds.submit(cluster, worlds.gang("train", tasks=1, gpus=8))
    worlds.run(cluster, 700)
    assert [item[0] for item in kinds(cluster, "scale-up")] == [10.0, 70.0, 190.0, 390.0, 590.0]


def test_while_a_pool_backs_off_another_one_helps() -> None:
    cluster = world(pool("a", stockouts=(Stockout(nodes=0),)), pool("b"))
    worlds.submit(cluster, worlds.gang("train", tasks=2, gpus=8))
    worlds.run(cluster, HOUR)
    assert [item[:3] for item in kinds(cluster, "scale-up")] == [(10.0, "a", "scale-up"), (140.0, "b", "scale-up")]
    assert running(cluster) == 2


def test_which_nodes_fail_and_how_long_they_take_is_drawn_from_the_seed() -> None:
    def history(seed: int) -> list[tuple[float, str, str, int]]:
        cluster = world(pool(delay=Span(60, 300), failure_rate=0.3), seed=seed)
        worlds.submit(cluster, worlds.gang("train", tasks=8, gpus=8))
        worlds.run(cluster, HOUR)
        return events(cluster)

    assert history(1) == history(1)
    assert history(1) != history(2)
    assert any(kind == "failed" for _, _, kind, _ in history(1))


# --- scale-down ------------------------------------------------------------------------------------------------------------


def test_idle_nodes_leave_after_the_unneeded_time_down_to_the_minimum() -> None:
    cluster = world(pool(min=2))
    worlds.submit(cluster, *(worlds.gang(f"train-{number}", tasks=1, gpus=8, duration="20m") for number in range(5)))
    worlds.run(cluster, 2 * HOUR)
    assert kinds(cluster, "scale-up") == [(10.0, "gpu", "scale-up", 3)]
    assert kinds(cluster, "scale-down") == [(1201 + 9 + 600, "gpu", "scale-down", 2), (1331 + 9 + 600, "gpu", "scale-down", 1)]
    assert node_names(cluster) == ["gpu-3", "gpu-4"]


def test_a_node_that_is_used_again_in_time_stays() -> None:
    cluster = world()
    worlds.submit(cluster, worlds.gang("first", tasks=1, gpus=8, duration="10m"))
    worlds.submit(cluster, worlds.gang("second", tasks=1, gpus=8, duration="10m"), at=1200)
    worlds.run(cluster, 2100)
    assert (len(kinds(cluster, "scale-up")), kinds(cluster, "scale-down")) == (1, [])
    worlds.run(cluster, 3000)
    assert len(kinds(cluster, "scale-down")) == 1


def test_a_node_whose_annotation_forbids_it_stays() -> None:
    protected = replace(EIGHT_GPUS, annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"})
    cluster = world(pool(template=protected))
    worlds.submit(cluster, worlds.gang("train", tasks=1, gpus=8, duration="10m"))
    worlds.run(cluster, 2 * HOUR)
    assert node_names(cluster) == ["gpu-1"]
    cluster.store.patch(NODE, "", "gpu-1", {"metadata": {"annotations": None}})
    worlds.run(cluster, 3 * HOUR)
    assert node_names(cluster) == []


def test_pods_of_daemon_sets_keep_no_node() -> None:
    cluster = world()
    worlds.submit(cluster, worlds.gang("train", tasks=1, gpus=8, duration="10m"))
    worlds.run(cluster, 200)
    agent = build.pod("agent", on="gpu-1", cpu=1)
    agent["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1"}]
    cluster.load([agent])
    worlds.run(cluster, HOUR)
    assert node_names(cluster) == []


def test_after_a_scale_up_no_node_is_removed_for_a_while() -> None:
    cluster = world(delay_after_add=1800.0)
    worlds.submit(cluster, worlds.gang("train", tasks=1, gpus=8, duration="1m"))
    worlds.run(cluster, HOUR)
    assert kinds(cluster, "scale-down") == [(1810.0, "gpu", "scale-down", 1)]


def test_nodes_of_the_manifests_are_never_removed() -> None:
    cluster = world(nodes=1, offers={"gpus": 8, "cpu": 64, "memory": "512Gi"})
    worlds.run(cluster, 2 * HOUR)
    assert node_names(cluster) == ["node-0"]


def test_a_node_of_a_pool_that_is_lost_is_replaced() -> None:
    cluster = world()
    worlds.submit(cluster, worlds.gang("train", tasks=2, gpus=8))
    cluster.plan(600, lambda: cluster.faults.leave("gpu-2"))
    worlds.run(cluster, HOUR)
    assert [item[3] for item in kinds(cluster, "scale-up")] == [2, 1]
    assert (running(cluster), node_names(cluster)) == (2, ["gpu-1", "gpu-2"])


# --- what comes out ----------------------------------------------------------------------------------------------------------


def test_the_result_says_what_pools_were_asked_for_and_what_is_paid() -> None:
    cluster = world(pool(stockouts=(Stockout(nodes=6),)), pool("zone"), backoff=HOUR, max_backoff=HOUR)
    worlds.submit(cluster, worlds.gang("train", tasks=7, gpus=8, duration="30m"))
    worlds.run(cluster, 2 * HOUR)
    found = result(cluster, Run("phalanx"))
    assert found["autoscaler"]["pools"]["gpu"] == {
        "scaleUps": 1, "nodesRequested": 7, "nodesDelivered": 6, "nodesFailed": 1, "nodesGivenBack": 6,
        "nodeSeconds": found["autoscaler"]["pools"]["gpu"]["nodeSeconds"],
        "amountSeconds": 8 * found["autoscaler"]["pools"]["gpu"]["nodeSeconds"],
    }  # fmt: skip
    removed = next(item["time"] for item in found["autoscaler"]["events"] if item["event"] == "scale-down")
    assert found["autoscaler"]["pools"]["gpu"]["nodeSeconds"] == 6 * (removed - 130)
    assert found["metrics"]["autoscaler"]["nodesDelivered"] == found["autoscaler"]["pools"]["zone"]["nodesDelivered"] + 6


def test_the_chart_of_nodes_shows_when_a_node_was_not_there() -> None:
    cluster = world()
    worlds.submit(cluster, worlds.gang("train", tasks=1, gpus=8, duration="30m"))
    worlds.run(cluster, 2 * HOUR)
    (row,) = result(cluster, Run("phalanx"))["nodes"]["held"]
    assert (row[0], row[-1]) == (None, None)
    assert 1.0 in row
    assert 0.0 in row


def test_without_gpus_anywhere_cpus_are_counted() -> None:
    cluster = world(pool("cpu", template=NodeTemplate({"cpu": "8", "memory": "32Gi"})))
    worlds.submit(cluster, worlds.gang("train", tasks=2, cpu=8))
    worlds.run(cluster, HOUR)
    found = result(cluster, Run("phalanx"))
    assert found["resource"] == "cpu"
    assert found["autoscaler"]["pools"]["cpu"]["amountSeconds"] == 16 * (HOUR - 130)


def test_a_world_without_an_autoscaler_says_nothing_of_one() -> None:
    cluster = worlds.world(nodes=1)
    worlds.run(cluster, 10)
    found = result(cluster, Run("phalanx"))
    assert "autoscaler" not in found
    assert "autoscaler" not in found["metrics"]


def test_a_gang_that_waits_for_quota_scales_nothing() -> None:
    cluster = world()
    cluster.load([build.queue("small", capability={"nvidia.com/gpu": 8})])
    worlds.submit(cluster, worlds.gang("train", tasks=2, gpus=8, queue="small"))
    worlds.run(cluster, HOUR)
    assert events(cluster) == []


def test_a_gang_that_fits_in_part_on_nodes_that_are_there_gets_the_rest_in_one_scale_up() -> None:
    cluster = world(pool(min=2))
    worlds.submit(cluster, worlds.gang("train", tasks=5, gpus=8))
    worlds.run(cluster, HOUR)
    assert kinds(cluster, "scale-up") == [(10.0, "gpu", "scale-up", 3)]
    assert running(cluster) == 5
