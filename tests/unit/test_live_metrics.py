"""Metrics: what is counted when, and that what is gone is no longer shown."""

import asyncio
from typing import Any

import pytest

from phalanx.config.builtin import catalogue_of
from phalanx.live.metric_gauges import LastMinute
from phalanx.live.metrics import Metrics
from phalanx.model.kinds import POD
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey, TaskKey
from phalanx.model.watch_event import WatchEvent
from phalanx.scheduling.timing import Times
from phalanx.session.cycle import run_cycle
from phalanx.session.decision import Decisions, Fault
from phalanx.state.snapshot import Snapshot
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import kai_objects as kai
from tests.support import sim_worlds as worlds

NOW = 1_767_225_600.0


class _Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def metrics(clock: _Clock) -> Metrics:
    return Metrics(clock)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def decided(cluster: build.Cluster, now: float = NOW) -> tuple[Snapshot, Decisions]:
    snapshot = cluster.objects.snapshot(now)
    return snapshot, run_cycle(snapshot, cluster.policy, catalogue_of(cluster.policy.catalogue))


def created(documents: list[Any], seconds_ago: float) -> list[Any]:
    documents[0]["metadata"]["creationTimestamp"] = moment_text(NOW - seconds_ago)
    return documents


def test_a_gang_that_gets_its_places_was_scheduled_and_one_that_does_not_was_not(metrics: Metrics) -> None:
    cluster = build.cluster(nodes=3, gpus=1).submit(build.gang("bert", tasks=3, gpus=1), build.gang("gpt", tasks=4, gpus=1))
    metrics.note(*decided(cluster))
    assert value(metrics, "phalanx_gang_schedule_attempts_total", result="scheduled", queue="default") == 1
    assert value(metrics, "phalanx_gang_schedule_attempts_total", result="unschedulable", queue="default") == 1
    assert value(metrics, "podgroup_waiting_pods") == 4


def test_a_gang_that_runs_is_not_an_attempt(metrics: Metrics) -> None:
    cluster = build.cluster(nodes=1).submit(build.pod_group("bert"), build.pod("bert-0", group="bert", on="node-0", cpu=1))
    metrics.note(*decided(cluster))
    assert b'attempts_total{queue="default"' not in metrics.text()


def test_a_gang_that_could_not_be_considered_is_an_error(metrics: Metrics) -> None:
    snapshot, decisions = decided(build.cluster().submit(build.gang("bert", cpu=1)))
    decisions.outcomes.clear()
    decisions.faults[GangKey("default/bert")] = Fault("a plugin failed", "")
    metrics.note(snapshot, decisions)
    assert value(metrics, "phalanx_gang_schedule_attempts_total", result="error", queue="default") == 1


def test_a_reason_is_no_longer_shown_when_no_gang_waits_for_it(metrics: Metrics) -> None:
    cluster = build.cluster(nodes=1, cpu=4).submit(build.gang("bert", cpu=8, queue="nowhere"))
    metrics.note(*decided(cluster))
    assert value(metrics, "phalanx_pending_gangs", queue="nowhere", reason="QueueNotFound") == 1
    cluster.remove("PodGroup", "bert").remove("Pod", "bert-0")
    metrics.note(*decided(cluster))
    assert b"phalanx_pending_gangs{" not in metrics.text()
    assert value(metrics, "podgroup_waiting_pods") == 0


def test_a_gang_that_a_session_left_out_still_counts(metrics: Metrics) -> None:
    cluster = build.cluster(nodes=1, cpu=4, policy=build.policy([["gang", "predicates"]])).submit(build.gang("bert", cpu=8))
    snapshot, decisions = decided(cluster)
    metrics.note(snapshot, decisions)
    metrics.note(snapshot, Decisions())
    assert value(metrics, "phalanx_pending_gangs", queue="default", reason="TooLarge") == 1


def test_a_gang_has_started_when_its_last_bind_is_through(metrics: Metrics, clock: _Clock) -> None:
    cluster = build.cluster(nodes=2).submit(created(build.gang("bert", tasks=2, cpu=8), seconds_ago=40))
    metrics.note(*decided(cluster))
    clock.now += 2
    metrics.bind_ended(TaskKey("default/bert-0"), "bound", seconds=0.01)
    assert value(metrics, "phalanx_gang_scheduling_duration_seconds_count") == 0
    metrics.bind_ended(TaskKey("default/bert-1"), "bound", seconds=0.01)
    assert value(metrics, "phalanx_gang_scheduling_duration_seconds_sum") == 42
    assert value(metrics, "podgroup_scheduling_duration_seconds_sum") == 42


def test_a_gang_of_which_a_bind_failed_has_not_started_until_the_next_try(metrics: Metrics) -> None:
    cluster = build.cluster(nodes=2).submit(created(build.gang("bert", tasks=2, cpu=8), seconds_ago=40))
    metrics.note(*decided(cluster))
    metrics.bind_ended(TaskKey("default/bert-0"), "failed", seconds=0.01)
    metrics.bind_ended(TaskKey("default/bert-1"), "bound", seconds=0.01)
    assert value(metrics, "phalanx_gang_scheduling_duration_seconds_count") == 0
    metrics.note(*decided(cluster))
    metrics.bind_ended(TaskKey("default/bert-0"), "bound", seconds=0.01)
    metrics.bind_ended(TaskKey("default/bert-1"), "bound", seconds=0.01)
    assert value(metrics, "phalanx_gang_scheduling_duration_seconds_count") == 1
    assert value(metrics, "phalanx_binds_total", result="failed") == 1
    assert value(metrics, "phalanx_binds_total", result="bound") == 3


def test_binds_of_a_gang_that_was_deleted_meanwhile_start_nothing(metrics: Metrics) -> None:
    cluster = build.cluster(nodes=1).submit(build.gang("bert", cpu=1))
    metrics.note(*decided(cluster))
    metrics.note(*decided(cluster.remove("PodGroup", "bert").remove("Pod", "bert-0")))
    metrics.bind_ended(TaskKey("default/bert-0"), "bound", seconds=0.01)
    assert value(metrics, "phalanx_gang_scheduling_duration_seconds_count") == 0


def test_pods_of_the_last_minute_make_the_rate(metrics: Metrics, clock: _Clock) -> None:
    for number in range(120):
        metrics.bind_ended(TaskKey(f"default/bert-{number}"), "bound", seconds=0.01)
    assert value(metrics, "phalanx_pods_scheduled_per_second") == 2
    clock.now += 61
    assert value(metrics, "phalanx_pods_scheduled_per_second") == 0
    assert value(metrics, "phalanx_pods_scheduled_total") == 120


def test_what_happened_a_minute_ago_leaves_the_rate_second_by_second(clock: _Clock) -> None:
    rate = LastMinute(clock)
    rate.add(60)
    clock.now += 30
    rate.add(120)
    assert rate.per_second() == 3
    clock.now += 30
    assert rate.per_second() == 2


def test_a_rate_that_nobody_asks_for_remembers_a_minute(clock: _Clock) -> None:
    rate = LastMinute(clock)
    for _ in range(500):
        clock.now += 1
        rate.add()
    assert len(rate._counts) <= 61


def test_attempts_of_a_queue_that_is_gone_are_shown_no_more(metrics: Metrics) -> None:
    cluster = build.cluster(nodes=1, gpus=1).submit(build.queue("team"))
    gang = build.gang("bert", tasks=1, gpus=1)
    gang[0]["spec"]["queue"] = "team"
    metrics.note(*decided(cluster.submit(gang)))
    assert value(metrics, "phalanx_gang_schedule_attempts_total", result="scheduled", queue="team") == 1
    for document in (*gang, build.queue("team")):
        cluster.objects.remove(document)
    metrics.note(*decided(cluster))
    assert b'queue="team"' not in metrics.text()


def test_victims_are_counted_for_each_gang_that_they_go_for(metrics: Metrics) -> None:
    policy = build.policy([["priority", "gang"], ["predicates"]], "allocate, preempt")
    cluster = build.cluster(nodes=2, cpu=4, policy=policy)
    cluster.submit({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100})
    group = build.pod_group("low", min_member=1, phase="Running")
    cluster.submit(group, [build.pod(f"low-{n}", group="low", on=f"node-{n}", cpu=4) for n in range(2)])
    high = build.gang("high", tasks=1, cpu=4)
    high[0]["spec"]["priorityClassName"] = high[1]["spec"]["priorityClassName"] = "high"
    high[0]["status"]["phase"], high[1]["spec"]["priority"] = "Inqueue", 100
    metrics.note(*decided(cluster.submit(high)))
    assert value(metrics, "phalanx_preemption_victims_count") == 1
    assert value(metrics, "phalanx_preemption_victims_sum") == 1
    assert value(metrics, "phalanx_pending_gangs", queue="default", reason="Pipelined") == 1


def test_a_timeout_is_counted_once() -> None:
    policy = build.policy([["gang", "coscheduling"], ["predicates"]], "allocate")
    world = worlds.world(nodes=1, policy=policy, cpu=4)
    metrics = Metrics(lambda: world.now)
    world.loop.decided.append(metrics.note)
    worlds.submit(world, sigs.gang("bert", tasks=2, cpu=4, spec={"scheduleTimeoutSeconds": 10}))
    worlds.run(world, 15)
    assert value(metrics, "podgroup_scheduling_timeout_total") == 1


def test_figures_of_queues_are_in_cores_bytes_and_devices(metrics: Metrics) -> None:
    cluster = build.cluster(nodes=2, gpus=4).submit(build.queue("research", capability={"cpu": "1500m", "nvidia.com/gpu": 2}))
    cluster.submit(
        build.pod_group("bert", queue="research", phase="Running"), build.gang("gpt", cpu=3, memory="1Gi", queue="research")
    )
    cluster.submit(build.pod("bert-0", group="bert", on="node-0", cpu=2, memory="1Gi", gpus=1))
    metrics.note(*decided(cluster))
    found = {
        (kind, resource): value(metrics, "phalanx_queue_resources", queue="research", resource=resource, kind=kind)
        for kind in ("allocated", "requested", "capability", "deserved") for resource in ("cpu", "memory", "nvidia.com/gpu")
    }  # fmt: skip
    assert found == {
        ("allocated", "cpu"): 2, ("allocated", "memory"): 1 << 30, ("allocated", "nvidia.com/gpu"): 1,
        ("requested", "cpu"): 5, ("requested", "memory"): 2 << 30, ("requested", "nvidia.com/gpu"): 1,
        ("capability", "cpu"): 1.5, ("capability", "memory"): None, ("capability", "nvidia.com/gpu"): 2,
        ("deserved", "cpu"): 1.5, ("deserved", "memory"): 2 << 30, ("deserved", "nvidia.com/gpu"): 1,
    }  # fmt: skip


def test_a_queue_has_what_the_queues_below_it_have(metrics: Metrics) -> None:
    cluster = build.cluster().submit(build.queue("lab"), build.queue("nlp", parent="lab"), build.queue("vision", parent="lab"))
    for name in ("nlp", "vision"):
        group = build.pod_group(name, queue=name, phase="Running")
        cluster.submit(group, build.pod(f"{name}-0", group=name, on="node-0", cpu=2))
    metrics.note(*decided(cluster))
    assert value(metrics, "phalanx_queue_resources", queue="lab", resource="cpu", kind="allocated") == 4


def test_queues_whose_parents_go_in_a_circle_are_counted_all_the_same(metrics: Metrics) -> None:
    cluster = build.cluster().submit(build.queue("hen", parent="egg"), build.queue("egg", parent="hen"))
    cluster.submit(build.gang("bert", cpu=2, queue="hen"))
    metrics.note(*decided(cluster))
    assert value(metrics, "phalanx_queue_resources", queue="egg", resource="cpu", kind="requested") == 2


def test_what_has_no_bound_in_a_queue_of_kai_is_left_out(metrics: Metrics) -> None:
    cluster = kai.cluster(gpus=4).submit(kai.queue("research", quota=2, limit=3), kai.gang("bert", queue="research", gpus=1))
    metrics.note(*decided(cluster))
    found = {
        kind: value(metrics, "phalanx_queue_resources", queue="research", resource="nvidia.com/gpu", kind=kind)
        for kind in ("deserved", "capability", "fair_share")
    }
    assert found == {"deserved": 2, "capability": 3, "fair_share": 1}
    assert value(metrics, "phalanx_queue_resources", queue="default", resource="nvidia.com/gpu", kind="capability") is None


def test_a_quiet_session_leaves_what_queues_deserve(metrics: Metrics) -> None:
    cluster = build.cluster().submit(build.queue("research"), build.gang("bert", cpu=2, queue="research"))
    snapshot, decisions = decided(cluster)
    metrics.note(snapshot, decisions)
    metrics.note(snapshot, Decisions())
    assert value(metrics, "phalanx_queue_resources", queue="research", resource="cpu", kind="deserved") == 2


def test_times_are_kept_by_action_and_by_plugin_and_hook(metrics: Metrics) -> None:
    times = Times({"allocate": 0.25}, {("gang", "gang_ready"): 0.125})
    metrics.session_held(0.5, snapshot_seconds=0.0625, times=times)
    assert value(metrics, "phalanx_cycle_duration_seconds_sum") == 0.5
    assert value(metrics, "phalanx_snapshot_duration_seconds_sum") == 0.0625
    assert value(metrics, "phalanx_action_duration_seconds_sum", action="allocate") == 0.25
    assert value(metrics, "phalanx_long_sessions_total") == 0
    metrics.session_held(5.1, snapshot_seconds=0.1, times=Times())
    assert value(metrics, "phalanx_long_sessions_total") == 1
    assert value(metrics, "phalanx_plugin_duration_seconds_sum", plugin="gang", hook="gang_ready") == 0.125


def test_the_process_tells_of_itself(metrics: Metrics) -> None:
    metrics.leads(True)
    metrics.configured()
    metrics.watch_event("Pod", "ADDED")
    metrics.evicted("reclaim")
    assert value(metrics, "phalanx_leader") == 1
    assert value(metrics, "phalanx_config_last_reload_successful") == 1
    assert value(metrics, "phalanx_watch_events_total", kind="Pod", type="ADDED") == 1
    assert value(metrics, "phalanx_evictions_total", reason="reclaim") == 1
    assert b"phalanx_build_info{version=" in metrics.text()
    metrics.leads(False)
    assert value(metrics, "phalanx_leader") == 0


def test_the_process_counts_the_tasks_of_its_loop(metrics: Metrics) -> None:
    assert value(metrics, "phalanx_event_loop_tasks") == 0

    async def counted() -> list[float | None]:
        before = value(metrics, "phalanx_event_loop_tasks")
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(asyncio.sleep(0))
            during = value(metrics, "phalanx_event_loop_tasks")
        return [before, during, value(metrics, "phalanx_event_loop_tasks")]

    assert asyncio.run(counted()) == [1, 4, 1]


def test_a_configuration_that_was_refused_is_not_the_one_in_force(metrics: Metrics) -> None:
    metrics.configured()
    metrics.config_reloaded(False)
    assert value(metrics, "phalanx_config_last_reload_successful") == 0
    metrics.config_reloaded(True)
    assert value(metrics, "phalanx_config_last_reload_successful") == 1
    assert value(metrics, "phalanx_config_reloads_total", result="refused") == 1
    assert value(metrics, "phalanx_config_reloads_total", result="applied") == 1


def test_no_name_of_a_pod_or_a_gang_is_a_label(metrics: Metrics) -> None:
    cluster = build.cluster(nodes=3, gpus=1).submit(build.gang("bert", tasks=3, gpus=1), build.gang("gpt", tasks=4, gpus=1))
    metrics.note(*decided(cluster))
    metrics.bind_ended(TaskKey("default/bert-0"), "bound", seconds=0.01)
    assert b"bert" not in metrics.text()
    assert b"gpt" not in metrics.text()


def test_the_life_of_two_gangs_in_a_cluster() -> None:
    world = worlds.world(nodes=2, gpus=1)
    metrics = Metrics(lambda: world.now)
    world.loop.decided.append(metrics.note)

    def bound(event: WatchEvent) -> None:
        if event.kind is not POD or event.before is None or event.before["spec"].get("nodeName"):
            return
        if event.object["spec"].get("nodeName"):
            meta = event.object["metadata"]
            metrics.bind_ended(TaskKey(f"{meta['namespace']}/{meta['name']}"), "bound", seconds=0.01)

    world.store.listen(bound)
    worlds.submit(world, worlds.gang("bert", tasks=2, gpus=1, duration="10m"))
    worlds.submit(world, worlds.gang("gpt", tasks=2, gpus=1, duration="10m"), at=1)
    worlds.run(world, 60)
    assert value(metrics, "podgroup_waiting_pods") == 2
    worlds.run(world, 900)
    assert value(metrics, "podgroup_waiting_pods") == 0
    assert b"phalanx_pending_gangs{" not in metrics.text()
    assert value(metrics, "phalanx_gang_scheduling_duration_seconds_count") == 2
    assert value(metrics, "phalanx_gang_scheduling_duration_seconds_bucket", le="30.0") == 1
    assert value(metrics, "phalanx_gang_scheduling_duration_seconds_bucket", le="900.0") == 2
    assert value(metrics, "phalanx_pods_scheduled_total") == 4
