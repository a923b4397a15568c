"""Expected starts: the cluster as it is, simulated on from now."""

from dataclasses import replace
from math import inf
from random import Random
from typing import Any

import pytest

from phalanx.config.builtin import catalogue_of
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import NAMESPACE
from phalanx.model.task import GangKey
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.sim.eta import SOON_SECONDS, Estimate, EtaQuestion, EtaRun, estimates, question_of, simulate_on
from phalanx.sim.known_durations import Durations
from phalanx.sim.running_work import DURATION
from phalanx.sim.settings import FOREVER
from phalanx.sim.world import World
from phalanx.testing import build

Document = dict[str, Any]
NOW = 1_767_600_000.0  # 2026-01-05T08:00:00Z
AN_HOUR_AGO, HALF_AN_HOUR_AGO = "2026-01-05T07:00:00Z", "2026-01-05T07:30:00Z"


def gang(
    name: str, *, on: str = "", started: str = AN_HOUR_AGO, duration: str = "", tasks: int = 1, gpus: int = 1
) -> list[Document]:
    group, *pods = build.gang(name, tasks=tasks, gpus=gpus)
    group["metadata"] |= {"annotations": {DURATION: duration} if duration else {}, "creationTimestamp": started}
    for pod in pods if on else ():
        pod["spec"]["nodeName"], pod["status"] = on, {"phase": "Running", "startTime": started}
    group["status"]["phase"] = "Running" if on else "Pending"
    return [group, *pods]


def question(*parts: Any, horizon: float = 86_400.0, asked: tuple[str, ...] = ("w",)) -> EtaQuestion:
    documents = [item for part in parts for item in ([part] if isinstance(part, dict) else part)]
    cluster = ObjectCluster()
    for document in documents:
        cluster.put(document)
    snapshot = cluster.snapshot(NOW)
    return question_of(documents, snapshot, [f"default/{name}" for name in asked], Durations(documents, snapshot), horizon)


def run(asked: EtaQuestion, seed: int = 0, unknown: float = FOREVER, policy: Policy | None = None) -> EtaRun:
    chosen = policy or build.policy()
    world = World(
        Profile(chosen, catalogue_of(chosen.catalogue)), settings=asked.settings(seed, unknown), seed=seed, start=asked.now
    )
    return simulate_on(world, asked, seed)


def node(name: str = "node-0", gpus: int = 1) -> Document:
    return build.node(name, gpus=gpus)


def test_a_running_gang_ends_when_the_rest_of_its_duration_is_over() -> None:
    found = run(question(node(), gang("r", on="node-0", duration="90m"), gang("w")))
    assert found.starts["default/w"] == pytest.approx(1800, abs=3)
    assert found.after["default/w"] == ("default/r",)


def test_a_gang_that_fits_starts_at_once_and_waits_for_nobody() -> None:
    found = run(question(node(gpus=2), gang("r", on="node-0", duration="90m"), gang("w")))
    assert found.starts["default/w"] <= 3
    assert found.after["default/w"] == ()


def test_a_gang_that_waits_longer_goes_first_and_the_next_waits_for_it() -> None:
    """What is waiting keeps its age: it is not submitted anew."""
    early, late = gang("b", duration="10m"), gang("a", started=HALF_AN_HOUR_AGO)
    found = run(question(node(), gang("r", on="node-0", duration="90m"), late, early, asked=("a", "b")))
    assert found.starts["default/b"] == pytest.approx(1800, abs=3)
    assert found.starts["default/a"] == pytest.approx(2400, abs=6)
    assert found.after["default/a"] == ("default/b", "default/r")


def test_a_gang_of_unknown_duration_never_ends_and_is_named() -> None:
    asked = question(node(), gang("r", on="node-0"), gang("w"))
    runs = [run(asked, seed) for seed in range(2)]
    (found,) = estimates(asked, runs, run(asked, unknown=SOON_SECONDS))
    assert found == Estimate("default/w", (inf, inf), unknown=("default/r",))


def test_a_gang_that_would_not_start_anyway_has_no_unknown_reason() -> None:
    asked = question(node(), gang("r", on="node-0"), gang("w", gpus=2))
    (found,) = estimates(asked, [run(asked)], run(asked, unknown=SOON_SECONDS))
    assert (found.unknown, found.p50) == ((), None)


def test_what_starts_after_the_horizon_does_not_start() -> None:
    found = run(question(node(), gang("r", on="node-0", duration="3h"), gang("w"), horizon=3600.0))
    assert found.starts == {}
    assert found.reached <= 3600.0


def test_each_seed_draws_its_own_durations_and_always_the_same_ones() -> None:
    asked = question(node(), gang("r", on="node-0", duration="90m..5h"), gang("w"))
    starts = [run(asked, seed).starts["default/w"] for seed in (0, 1, 2, 0)]
    assert len(set(starts)) == 3
    assert starts[0] == starts[3]


def test_all_seeds_together_draw_from_every_part_of_what_is_possible() -> None:
    asked = replace(question(node(), gang("w")), seeds=4)
    drawn = {key: [asked.part(key, seed) for seed in range(4)] for key in ("a", "b", "c", "d")}
    assert all(sorted(int(part * 4) for part in parts) == [0, 1, 2, 3] for parts in drawn.values())
    assert len({tuple(int(part * 4) for part in parts) for parts in drawn.values()}) > 1


def test_a_gang_waits_for_all_that_leave_its_nodes() -> None:
    """Two gangs on one node, and an unrelated one that ends meanwhile."""
    parts = [gang("x", on="node-0", duration="70m"), gang("y", on="node-0", duration="80m"), gang("z", on="node-1", duration="75m")]
    found = run(question(node(gpus=2), node("node-1", gpus=1), *parts, gang("w", gpus=2)))
    assert found.after["default/w"] == ("default/y", "default/x")


def test_a_gang_that_waits_for_its_queue_waits_for_the_gang_that_leaves_it() -> None:
    queue = build.queue("default", capability={"nvidia.com/gpu": 1})
    found = run(question(node(), node("node-1"), queue, gang("r", on="node-0", duration="90m"), gang("w")))
    assert found.starts["default/w"] == pytest.approx(1800, abs=3)
    assert found.after["default/w"] == ("default/r",)


def test_a_pod_without_a_gang_ends_at_its_deadline_at_the_latest() -> None:
    pod = build.pod("alone", on="node-0", gpus=1, spec={"activeDeadlineSeconds": 5400})
    pod["status"]["startTime"] = AN_HOUR_AGO
    found = [run(question(node(), pod, gang("w")), seed).starts["default/w"] for seed in range(5)]
    assert all(0 < start < 1810 for start in found)
    assert len(set(found)) == 5


def test_finished_pods_neither_run_again_nor_hold_anything() -> None:
    group, pod = gang("f", on="node-0", duration="1h")
    pod["status"]["phase"] = "Succeeded"
    assert run(question(node(), group, pod, gang("w"))).starts["default/w"] <= 3


def test_namespaces_and_classes_that_every_cluster_has_are_no_trouble() -> None:
    spaces: list[Document] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": name}}}
        for name in ("ml", "default")
    ]
    critical = {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000}
    spaces.append({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **critical})
    group, pod = gang("w")
    for item in (group, pod):
        item["metadata"]["namespace"] = "ml"
    asked = replace(question(node(), group, pod, *spaces), gangs=(GangKey("ml/w"),))
    chosen = build.policy()
    world = World(Profile(chosen, catalogue_of(chosen.catalogue)), settings=asked.settings(0), start=NOW)
    assert simulate_on(world, asked, 0).starts["ml/w"] <= 3
    assert [world.store.get(NAMESPACE, "", name)["metadata"]["labels"]["team"] for name in ("ml", "default")] == ["ml", "default"]


def test_an_estimate_counts_seeds_in_which_the_gang_did_not_start() -> None:
    found = Estimate("a", (10.0, 20.0, 30.0, inf))
    assert (found.p50, found.p90, found.seeds_started) == (20.0, None, 3)


def test_later_submissions_move_p90_and_leave_p50_alone() -> None:
    found = Estimate("a", tuple(map(float, range(20))), tuple(map(float, range(100, 110))))
    assert (found.p50, found.p90) == (9.0, 109.0)


def test_p90_is_never_earlier_than_without_later_submissions() -> None:
    starts = tuple(map(float, range(20)))
    assert Estimate("a", starts, (1.0,) * 10).p90 == Estimate("a", starts).p90 == 18.0


def test_p90_of_n_runs_holds_nine_times_in_ten_for_another_draw_like_them() -> None:
    """Draw n runs and the truth alike, many times: how often does the truth come by p90?"""
    chance = Random(1)
    for runs in (9, 20):
        drawn = [
            (Estimate("a", tuple(sorted(chance.random() for _ in range(runs)))).p90 or 0.0, chance.random()) for _ in range(4000)
        ]
        assert 0.88 < sum(truth <= p90 for p90, truth in drawn) / len(drawn) < 0.93


def test_runs_with_later_submissions_say_nothing_about_p50_or_the_reason() -> None:
    asked = question(node(), gang("w"))
    alone = EtaRun(0, {"default/w": 10.0}, {"default/w": ("g",)}, {}, 0.0)
    crowded = EtaRun(0, {"default/w": 5.0}, {"default/w": ("h",)}, {}, 0.0, has_arrivals=True)
    (found,) = estimates(asked, [crowded, alone])
    assert found == Estimate("default/w", (10.0,), (5.0,), ("g",))


def test_the_middle_run_says_what_the_gang_waits_for() -> None:
    asked = question(node(), gang("w"))
    runs = [
        EtaRun(seed, {"default/w": start}, {"default/w": (f"g{seed}",)}, {}, 0.0) for seed, start in enumerate((30.0, 10.0, 20.0))
    ]
    (found,) = estimates(asked, runs)
    assert (found.p50, found.after) == (20.0, ("g2",))


def test_a_simulation_that_is_stopped_says_so() -> None:
    asked = question(node(), gang("r", on="node-0", duration="90m"), gang("w"))
    profile = Profile(build.policy(), catalogue_of(build.policy().catalogue))
    found = simulate_on(World(profile, settings=asked.settings(0), start=NOW), asked, 0, lambda: True)
    assert (found.is_whole, found.starts) == (False, {})
    assert GangKey("default/w") in asked.gangs
