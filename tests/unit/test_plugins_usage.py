"""Usage: busy nodes are refused, idle ones preferred, and old measurements forgotten."""

from typing import Any

import numpy as np
import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.errors import ConfigError, SnapshotError
from phalanx.plugins.usage import UsagePlugin
from phalanx.session.cycle import open_session
from phalanx.session.node_answers import Site
from phalanx.session.session import Session
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

NOW = 1767268800.0
STAMP, OLD_STAMP = "2026-01-01T12:00:00Z", "2026-01-01T11:54:59Z"


def metrics(node: str, cpu: str, memory: str = "0", at: str = STAMP) -> Document:
    return {
        "apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": {"name": node},
        "timestamp": at, "window": "20s", "usage": {"cpu": cpu, "memory": memory},
    }  # fmt: skip


def cluster(*measured: Document, **arguments: Any) -> Cluster:
    """Two nodes of eight cpu and 32Gi."""
    policy = build.policy([["gang", "predicates", {"name": "usage", "arguments": arguments}]])
    return build.cluster(nodes=2, policy=policy).submit(*measured)


def nodes_of(found: Cluster, tasks: int = 1, **asks: Any) -> list[str]:
    found.submit(build.gang("train", tasks=tasks, min_member=1, **(asks or {"cpu": 1})))
    return [node for _, node in found.run_cycle(now=NOW).binds]


def test_the_idler_node_is_preferred() -> None:
    assert nodes_of(cluster(metrics("node-0", "4"), metrics("node-1", "2"))) == ["node-1"]


def test_nodes_above_a_threshold_are_refused_with_the_reason() -> None:
    found = cluster(metrics("node-0", "6500m"), metrics("node-1", "1", "30Gi"))
    assert nodes_of(found) == []
    assert found.why("train").endswith("1 has a busy cpu, 1 has its memory in use)")


def test_thresholds_can_be_set() -> None:
    assert nodes_of(cluster(metrics("node-0", "6500m"), metrics("node-1", "7700m"), thresholds={"cpu": 90})) == ["node-0"]


def test_a_measurement_of_more_than_five_minutes_ago_counts_as_none() -> None:
    assert nodes_of(cluster(metrics("node-0", "8", at=OLD_STAMP), metrics("node-1", "8"))) == ["node-0"]


def test_a_node_that_nobody_measured_comes_after_one_with_room() -> None:
    assert nodes_of(cluster(metrics("node-1", "6"))) == ["node-1"]


def session_of(found: Cluster) -> Session:
    return open_session(found.objects.snapshot(NOW), found.policy, CATALOGUE)


def scores(session: Session, extra: int = 0) -> list[float]:
    shape = next(iter(session.gangs.values())).tasks[0].task.shape
    (hook,) = [plugin.node_scores for _, _, plugin in session.plugins if isinstance(plugin, UsagePlugin)]
    found: list[float] = hook(session, shape, Site(slice(None), extra, extra)).tolist()
    return found


def test_the_score_is_the_mean_free_share_times_the_weight() -> None:
    found = cluster(metrics("node-0", "4", "8Gi"), metrics("node-1", "0", "0")).submit(build.gang("train", cpu=1))
    assert scores(session_of(found)) == pytest.approx([(0.5 + 0.75) / 2 * 500, 500.0])


def test_new_tasks_are_estimated_before_they_show_in_a_measurement() -> None:
    found = cluster(metrics("node-0", "0"), metrics("node-1", "0"))
    found.submit(build.pod("new", on="node-0", cpu=4), build.gang("train", cpu=1))
    assert scores(session_of(found)) == pytest.approx([(1 - 4 * 0.7 / 8 + 1) / 2 * 500, 500.0])


def test_tasks_that_run_for_a_while_are_in_the_measurement_already() -> None:
    found = cluster(metrics("node-0", "0"), metrics("node-1", "0")).submit(build.gang("train", cpu=1))
    old = build.pod("old", on="node-0", cpu=4)
    old["status"]["startTime"] = OLD_STAMP
    assert scores(session_of(found.submit(old))) == [500.0, 500.0]


def test_placements_of_the_session_count_one_by_one_and_are_undone_exactly() -> None:
    found = cluster(metrics("node-0", "3500m"), metrics("node-1", "3500m")).submit(build.gang("train", tasks=4, cpu=1))
    session = session_of(found)
    tasks, before = next(iter(session.gangs.values())).tasks, scores(session)
    ahead = [scores(session, extra)[0] for extra in range(4)]
    with session.statement() as statement:
        seen = []
        for task in tasks:
            seen.append(scores(session)[0])
            statement.allocate([task], [0])
    assert seen == ahead
    assert scores(session) == before


def test_tasks_spread_over_idle_nodes_because_estimates_count() -> None:
    assert nodes_of(cluster(metrics("node-0", "0"), metrics("node-1", "0")), tasks=4, cpu=1).count("node-0") == 2


def test_best_effort_tasks_are_estimated_too() -> None:
    found = cluster(metrics("node-0", "0"), metrics("node-1", "0"), estimator={"be_cpu": "4", "be_memory": "0"})
    found.submit(build.pod("new", on="node-0"), build.gang("train", cpu=1))
    assert scores(session_of(found)) == pytest.approx([375.0, 500.0])


def test_metrics_may_come_before_their_node_and_go_with_it() -> None:
    found = cluster(metrics("late", "4"))
    assert "late" not in found.objects.snapshot(NOW).surroundings.node_usage
    found.submit(build.node("late"))
    assert found.objects.snapshot(NOW).surroundings.node_usage["late"].cpu == 0.5
    found.remove("Node", "late")
    assert "late" not in found.objects.snapshot(NOW).surroundings.node_usage


def test_broken_metrics_are_refused_and_change_nothing() -> None:
    found = cluster(metrics("node-0", "4"))
    with pytest.raises(SnapshotError, match=r"NodeMetrics node-0: usage\.cpu"):
        found.submit(metrics("node-0", "much"))
    assert found.objects.snapshot(NOW).surroundings.node_usage["node-0"].cpu == 0.5


def test_wrong_settings_name_themselves() -> None:
    with pytest.raises(ConfigError, match=r"thresholds\.memory"):
        session_of(cluster(thresholds={"memory": 80}))
    with pytest.raises(ConfigError, match=r"estimator\.be_cpu"):
        session_of(cluster(estimator={"be_cpu": "many"}))


def test_evicting_a_new_task_gives_back_its_estimate() -> None:
    found = cluster(metrics("node-0", "0"), metrics("node-1", "0"))
    found.submit(build.pod_group("old", phase="Running"), build.pod("old-0", group="old", on="node-0", cpu=4))
    session = session_of(found.submit(build.gang("train", cpu=1)))
    (victim,) = session.running_on(0)
    before = np.array(scores(session))
    with session.statement() as statement:
        statement.evict(victim, action="preempt", preemptor="x", reason="y")
        assert scores(session) == [500.0, 500.0]
    assert np.array_equal(before, scores(session))
