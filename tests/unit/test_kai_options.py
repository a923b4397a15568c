"""Options of the profile kai, what queues divide, and which jobs are left in peace."""

from functools import partial
from typing import Any

import pytest

from phalanx.actions.kai.failed_jobs import FailedJobs
from phalanx.config.builtin import KAI_CATALOGUE
from phalanx.errors import ConfigError
from phalanx.model.queue_usage import QueueHistory
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle, Document
from tests.support import kai_objects as kai
from tests.support.open_sessions import gang_in, session_of

NOW = 1_767_268_800.0  # 2026-01-01T12:00:00Z
A_MINUTE_AGO = "2026-01-01T11:59:00Z"
FOREVER = {"arguments": {"defaultReclaimMinRuntime": "1h", "defaultPreemptMinRuntime": "1h"}}


def evicted(cycle: Cycle) -> list[str]:
    return [key.removeprefix("default/") for key in cycle.answer["evictions"]]


# --- how many jobs are tried ---------------------------------------------------------------------------------------------


def crowd(depths: dict[str, int], actions: str = "allocate") -> Cluster:
    """Six jobs in two queues on a node of 6 GPUs."""
    found = kai.cluster(gpus=6, actions=actions, options={"queueDepthPerAction": depths})
    jobs = [kai.gang(f"{queue}{number}", gpus=1, queue=queue) for queue in "ab" for number in range(3)]
    return found.submit(kai.queue("a", quota=3), kai.queue("b", quota=3), *jobs)


@pytest.mark.parametrize(("depth", "count"), [(-1, 6), (0, 0), (1, 2), (2, 4), (9, 6)])
def test_an_action_tries_so_many_jobs_of_each_queue(depth: int, count: int) -> None:
    assert len(crowd({"allocate": depth}).run_cycle().binds) == count


def test_the_first_jobs_in_order_are_tried_and_the_others_are_told() -> None:
    first = kai.gang("late", gpus=1, queue="a", priorityClassName="build-preemptible")
    cycle = crowd({"allocate": 1}).submit(first).run_cycle()
    assert ("late-0", "node-0") in cycle.binds
    text = "not tried by allocate: it takes 1 of the jobs of queue 'a' (queueDepthPerAction) and others come first"
    assert cycle.why("a0") == text


def test_the_depth_of_one_action_does_not_bind_another() -> None:
    assert len(crowd({"reclaim": 0}).run_cycle().binds) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queueDepthPerAction": {"allocate": "many"}}, "options.queueDepthPerAction.allocate: 'many' is not a number of jobs"),
        ({"queueDepthPerAction": {"allocate": True}}, "options.queueDepthPerAction.allocate: True is not a number of jobs"),
        ({"queueDepthPerAction": {"enqueue": 1}}, "options.queueDepthPerAction.enqueue: unknown action; known: allocate"),
        ({"queueDepthPerAction": 5}, "options.queueDepthPerAction: expected a mapping, got int"),
        ({"usage": {"windowSize": "x"}}, "options.usage.windowSize: 'x' is not a duration"),
        ({"fullHierarchyFairness": "no"}, "options.fullHierarchyFairness: 'no' is wrong; write true or false"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as problem:
        kai.policy(options=options)
    assert str(problem.value).startswith(message)


# --- look-alikes ---------------------------------------------------------------------------------------------------------


def session_with(*parts: Any, **options: Any) -> Any:
    node, queues = build.node("n0", gpus=2, cpu=8), [kai.queue("default", parent="", quota=-1), kai.queue("a", quota=4)]
    classes = list(map(kai.priority_class, kai.CLASSES))
    return session_of(node, queues, classes, *parts, policy=kai.policy(options=options), catalogue=KAI_CATALOGUE)


def tried(session: Any, names: list[str]) -> list[str]:
    """Return which of these jobs are tried when every attempt is in vain."""
    found: list[str] = []

    def fail(name: str) -> bool:
        found.append(name)
        return False

    failed = FailedJobs(session)
    for name in names:
        failed.attempt(gang_in(session, name), partial(fail, name))
    return found


def test_a_job_like_one_that_failed_is_not_tried() -> None:
    session = session_with(kai.gang("one", gpus=4), kai.gang("two", gpus=4), kai.gang("three", gpus=3))
    assert tried(session, ["one", "two", "three"]) == ["one", "three"]


@pytest.mark.parametrize(
    "other",
    [
        kai.gang("two", gpus=4, priorityClassName="build"),
        kai.gang("two", gpus=4, preemptibility="non-preemptible"),
        kai.gang("two", gpus=4, queue="default"),
        kai.gang("two", gpus=4, tasks=2),
        kai.gang("two", gpus=4, cpu=2),
        kai.gang("two", gpus=4, topologyConstraint={"topology": "net", "requiredTopologyLevel": "rack"}),
    ],
    ids=["priority", "preemptibility", "queue", "size", "request", "topology"],
)
def test_a_job_that_is_not_quite_alike_is_tried(other: list[Document]) -> None:
    assert tried(session_with(kai.gang("one", gpus=4), other), ["one", "two"]) == ["one", "two"]


def test_every_job_is_tried_when_signatures_are_off() -> None:
    session = session_with(kai.gang("one", gpus=4), kai.gang("two", gpus=4), schedulingSignatures=False)
    assert tried(session, ["one", "two"]) == ["one", "two"]


def test_a_job_is_tried_again_once_something_has_changed() -> None:
    session = session_with(kai.gang("one", gpus=4), kai.gang("two", gpus=4), kai.gang("third", gpus=1))
    failed = FailedJobs(session)
    assert not failed.attempt(gang_in(session, "one"), lambda: False)
    with session.statement() as statement:
        statement.allocate(gang_in(session, "third").tasks, [0])
        statement.commit()
    assert failed.attempt(gang_in(session, "two"), lambda: True)


def test_a_job_that_is_spared_says_what_the_other_one_says() -> None:
    found = kai.cluster(gpus=2).submit(kai.queue("a", quota=4), kai.gang("one", gpus=4), kai.gang("two", gpus=4)).run_cycle()
    assert found.why("two") == found.why("one") != ""
    assert found.condition("two", "UnschedulableOnNodePool") is not None


# --- moving victims of reclaim -------------------------------------------------------------------------------------------


def movable(**options: Any) -> Cluster:
    """Queue `b` has exactly its share, 3 of 4 GPUs, one of them alone on a node where queue `a` needs both; it could move."""
    found = kai.cluster(nodes=2, gpus=2, actions="allocate, reclaim", options=options)
    found.submit(kai.queue("a", quota=2), kai.queue("b", quota=2))
    held = [kai.gang("left", on="node-0", gpus=1, queue="b"), kai.gang("right", on="node-1", gpus=1, queue="b")]
    return found.submit(*held, kai.gang("train", gpus=2, queue="a"))


def test_a_victim_of_reclaim_that_has_another_place_has_lost_nothing() -> None:
    cycle = movable().run_cycle()
    assert len(evicted(cycle)) == 1
    assert {name for name, _ in cycle.pipelined} == {"train-0", *evicted(cycle)}


def test_a_victim_that_may_not_be_moved_counts_as_lost() -> None:
    assert evicted(movable(allowConsolidatingReclaim=False).run_cycle()) == []


# --- young jobs ----------------------------------------------------------------------------------------------------------


def young(plugins: Any = None, **more: Any) -> Cluster:
    """Queue `b` has 2 GPUs beyond its quota in an elastic job of at least 2 that began a minute ago; queue `a` wants them."""
    found = kai.cluster(nodes=1, gpus=4, actions="allocate, reclaim", plugins=plugins or {"minruntime": FOREVER})
    found.submit(kai.queue("a", quota=4), kai.queue("b", quota=0))
    return found.submit(
        kai.gang("old", tasks=4, on="node-0", gpus=1, queue="b", annotations={kai.LAST_START: A_MINUTE_AGO}, **more)
    )


def test_a_young_elastic_job_gives_what_is_over_its_minimum() -> None:
    cycle = young(min_member=2).submit(kai.gang("train", gpus=2, queue="a")).run_cycle(now=NOW)
    assert evicted(cycle) == ["old-2", "old-3"]


def test_a_young_elastic_job_keeps_its_core() -> None:
    assert evicted(young(min_member=2).submit(kai.gang("train", gpus=3, queue="a")).run_cycle(now=NOW)) == []


def test_a_young_job_of_fixed_size_keeps_everything() -> None:
    assert evicted(young(min_member=4).submit(kai.gang("train", gpus=1, queue="a")).run_cycle(now=NOW)) == []


def test_an_hour_later_nobody_is_young() -> None:
    assert len(evicted(young(min_member=4).submit(kai.gang("train", gpus=1, queue="a")).run_cycle(now=NOW + 3600))) == 4


def on_two_nodes(**options: Any) -> Cluster:
    """An elastic job with its core on node-0, where another queue needs both GPUs; node-1 has room for the core."""
    found = kai.cluster(nodes=2, gpus=2, **options).submit(kai.queue("a", quota=2), kai.queue("b", quota=2))
    group, core, extra = kai.gang(
        "old", tasks=2, min_member=1, gpus=1, queue="b", on=["node-0"], annotations={kai.LAST_START: A_MINUTE_AGO}
    )
    other = kai.gang("other", on="node-1", gpus=1, queue="b", preemptibility="non-preemptible")
    return found.submit(group, core, kai.gated(extra), other, kai.gang("train", gpus=2, queue="a"))


def test_the_core_of_a_young_elastic_job_is_not_moved_by_reclaim() -> None:
    plugins = {"minruntime": FOREVER}
    assert evicted(on_two_nodes(actions="allocate, reclaim").run_cycle(now=NOW)) == ["old-0"]
    assert evicted(on_two_nodes(actions="allocate, reclaim", plugins=plugins).run_cycle(now=NOW)) == []


def test_consolidation_moves_young_jobs() -> None:
    cycle = on_two_nodes(actions="allocate, consolidation", plugins={"minruntime": FOREVER}).run_cycle(now=NOW)
    assert evicted(cycle) == ["old-0"]


@pytest.mark.parametrize(
    ("queues", "is_spared"),
    [
        ({"b": {"reclaimMinRuntime": "1h"}}, False),
        ({"right": {"reclaimMinRuntime": "1h"}}, True),
        ({"top": {"reclaimMinRuntime": "1h"}}, True),
        ({"right": {"reclaimMinRuntime": "0s"}, "top": {"reclaimMinRuntime": "1h"}}, False),
        ({"a": {"reclaimMinRuntime": "1h"}, "left": {"reclaimMinRuntime": "1h"}}, False),
    ],
    ids=["below the fork", "at the fork", "above the fork", "nearest first", "the other side"],
)
@pytest.mark.parametrize("method", ["lca", "queue"])
def test_the_time_of_reclaim_is_looked_up_from_the_fork_or_from_the_leaf(
    queues: dict[str, dict[str, Any]], is_spared: bool, method: str
) -> None:
    plugins = {"minruntime": {"arguments": {"reclaimResolveMethod": method}}}
    found = kai.cluster(gpus=4, actions="allocate, reclaim", plugins=plugins)
    tree = {"top": ("", -1), "left": ("top", 4), "right": ("top", 0), "a": ("left", 4), "b": ("right", 0)}
    for name, (parent, quota) in tree.items():
        found.submit(kai.queue(name, parent=parent, quota=quota, **queues.get(name, {})))
    old = kai.gang("old", on="node-0", gpus=4, queue="b", annotations={kai.LAST_START: A_MINUTE_AGO})
    cycle = found.submit(old, kai.gang("train", gpus=4, queue="a")).run_cycle(now=NOW)
    is_spared = is_spared or (method == "queue" and "b" in queues)
    assert bool(evicted(cycle)) != is_spared


# --- arguments -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(KAI_CATALOGUE.plugins))
def test_every_plugin_refuses_arguments_that_it_does_not_have(name: str) -> None:
    policy = kai.policy(plugins={name: {"arguments": {"nonsense": "1"}}})
    with pytest.raises(ConfigError, match=f"plugin '{name}', argument 'nonsense': unknown setting"):
        KAI_CATALOGUE.plugins[name](next(plugin for plugin in policy.plugins() if plugin.name == name))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("proportion", {"kValue": "much"}, "argument 'kValue': 'much' is not a number"),
        ("proportion", {"kValue": -1}, "argument 'kValue': -1.0 is not a number of 0 or more"),
        (
            "proportion",
            {"relcaimerSaturationMultiplier": 0.5},
            "argument 'relcaimerSaturationMultiplier': 0.5 is not a number of 1",
        ),
        ("minruntime", {"defaultPreemptMinRuntime": "soon"}, "'soon' is not a duration; write for example '1h30m'"),
        ("minruntime", {"reclaimResolveMethod": "root"}, "'root' is unknown; write 'lca' or 'queue'"),
        ("nodeplacement", {"gpu": "scatter"}, "'scatter' is unknown; write 'binpack' or 'spread'"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(name: str, arguments: dict[str, Any], message: str) -> None:
    policy = kai.policy(plugins={name: {"arguments": arguments}})
    with pytest.raises(ConfigError, match=message):
        KAI_CATALOGUE.plugins[name](next(plugin for plugin in policy.plugins() if plugin.name == name))


# --- what queues divide --------------------------------------------------------------------------------------------------


def fair_share(*parts: Any, queue: str = "a", **more: Any) -> dict[str, float]:
    found = kai.cluster(gpus=4, **more).submit(kai.queue("a", quota=0), kai.gang("train", tasks=9, min_member=1, gpus=1))
    share: dict[str, float] = found.submit(*parts).run_cycle().answer["queues"][queue]["fair_share"]
    return share


def foreign(**spec: Any) -> Document:
    return build.pod("theirs", on="node-0", gpus=3, cpu=60, spec=spec)


def test_pods_of_other_schedulers_are_taken_from_what_queues_divide() -> None:
    assert fair_share()["gpu"] == 4
    assert fair_share(foreign(schedulerName="default-scheduler"))["gpu"] == 1
    assert fair_share(foreign())["gpu"] == 1
    assert fair_share(foreign())["cpu"] == 4000


def test_pods_of_the_own_scheduler_without_a_group_are_not() -> None:
    assert fair_share(foreign(schedulerName="kai-scheduler"))["gpu"] == 4


def test_pods_that_hold_a_device_for_others_are_not() -> None:
    helper = foreign()
    helper["metadata"]["labels"] = {"app": "kai-resource-reservation"}
    assert fair_share(helper)["gpu"] == 4


def test_nodes_that_are_not_ready_do_not_count() -> None:
    node = build.node("node-0", gpus=4, cpu=64, memory="256Gi")
    node["status"]["conditions"] = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "Unknown"}]
    assert fair_share(node)["gpu"] == 0
    node["status"]["conditions"][1]["status"] = "True"
    assert fair_share(node)["gpu"] == 4


# --- one level of queues -------------------------------------------------------------------------------------------------


def departments(**options: Any) -> Cluster:
    """Two departments; the one with a single project has a weight of 1 against 1, its project the same as the other two."""
    found = kai.cluster(gpus=6, options=options)
    found.submit(kai.queue("left", parent="", quota=0), kai.queue("right", parent="", quota=0))
    for name, parent in {"a": "left", "b": "left", "c": "right"}.items():
        found.submit(kai.queue(name, parent=parent, quota=0), kai.gang(f"job-{name}", tasks=6, min_member=1, gpus=1, queue=name))
    return found


def test_departments_share_before_their_projects_do() -> None:
    queues = departments().run_cycle().answer["queues"]
    assert [queues[name]["fair_share"]["gpu"] for name in "abc"] == [2, 1, 3]


def test_projects_share_alike_without_the_hierarchy() -> None:
    queues = departments(fullHierarchyFairness=False).run_cycle().answer["queues"]
    assert [queues[name]["fair_share"]["gpu"] for name in "abc"] == [2, 2, 2]
    assert queues["left"].keys() == {"status"}


# --- nodes for pods with and without GPUs --------------------------------------------------------------------------------


def labelled() -> Cluster:
    found = kai.cluster(nodes=0, actions="allocate", options={"restrictNodeScheduling": True}).submit(kai.queue("a", quota=4))
    for name, labels in {"both": ("gpu", "cpu"), "cpu": ("cpu",), "gpu": ("gpu",), "none": ()}.items():
        roles = {f"node-role.kubernetes.io/{label}-worker": "" for label in labels}
        found.submit(build.node(name, gpus=4, cpu=8, labels=roles))
    return found


def test_pods_go_to_nodes_that_are_labelled_for_them() -> None:
    jobs = [kai.gang(f"gpu-{number}", gpus=4) for number in range(3)] + [kai.gang("cpu", cpu=7, tasks=3, min_member=1)]
    cycle = labelled().submit(*jobs).run_cycle()
    assert {node for name, node in cycle.binds if name.startswith("gpu")} == {"both", "gpu"}
    assert {node for name, node in cycle.binds if name.startswith("cpu")} == {"both", "cpu"}
    assert "node(s) are not for pods with GPUs" in str(cycle.condition("gpu-2", "UnschedulableOnNodePool"))


def test_only_gpus_of_gpu_workers_are_divided() -> None:
    cycle = labelled().submit(kai.gang("train", tasks=20, min_member=1, gpus=1)).run_cycle()
    assert cycle.answer["queues"]["a"]["fair_share"]["gpu"] == 8


# --- usage over time -----------------------------------------------------------------------------------------------------


def shares(k_value: float, used: dict[str, float], **options: Any) -> list[float]:
    """Return the fair shares of two equal queues that used these parts of 8 GPUs all the time."""
    found = kai.cluster(gpus=8, plugins={"proportion": {"arguments": {"kValue": k_value}}}, options=options)
    for name in "ab":
        found.submit(kai.queue(name, quota=0), kai.gang(f"job-{name}", tasks=8, min_member=1, gpus=1, queue=name))
    series = {name: {"gpu": (((NOW - 7200, 8 * part), (NOW - 60, 8 * part)),)} for name, part in used.items()}
    found.objects.put_history(QueueHistory(series, {"gpu": (((NOW - 7200, 8.0), (NOW - 60, 8.0)),)}))
    queues = found.run_cycle(now=NOW).answer["queues"]
    return [queues[name]["fair_share"]["gpu"] for name in "ab"]


@pytest.mark.parametrize(
    ("k_value", "usage", "expected"),
    [
        (1.0, {}, [4, 4]),
        (0.0, {"a": 1.0}, [4, 4]),
        (1.0, {"a": 0.5, "b": 0.5}, [4, 4]),
        (1.0, {"a": 0.25}, [3, 5]),
        (1.0, {"a": 0.5}, [3, 5]),
        (1.0, {"a": 1.0}, [0, 8]),
        (4.0, {"a": 0.5}, [1, 7]),
    ],
)
def test_a_queue_that_used_much_gets_less_of_what_is_over(k_value: float, usage: dict[str, float], expected: list[float]) -> None:
    assert shares(k_value, usage) == expected


def test_usage_that_is_too_old_changes_nothing() -> None:
    assert shares(1.0, {"a": 1.0}, usage={"stalenessPeriod": "30s"}) == [4, 4]


def test_only_the_window_counts() -> None:
    def share(window: str) -> float:
        found = departments(usage={"windowSize": window})
        series = ((NOW - 7200, 6.0), (NOW - 3600, 0.0), (NOW - 60, 0.0))
        found.objects.put_history(QueueHistory({"c": {"gpu": (series,)}}, {"gpu": (((NOW - 7200, 6.0), (NOW - 60, 6.0)),)}))
        return float(found.run_cycle(now=NOW).answer["queues"]["c"]["fair_share"]["gpu"])

    assert share("1h") == 3
    assert share("2h") < 3


def test_departments_used_what_their_projects_did() -> None:
    found = departments()
    used = {"a": {"gpu": (((NOW - 7200, 3.0), (NOW - 60, 3.0)),)}, "b": {"gpu": (((NOW - 7200, 3.0), (NOW - 60, 3.0)),)}}
    found.objects.put_history(QueueHistory(used, {"gpu": (((NOW - 7200, 6.0), (NOW - 60, 6.0)),)}))
    queues = found.run_cycle(now=NOW).answer["queues"]
    assert queues["left"]["fair_share"]["gpu"] == 0
    assert queues["c"]["fair_share"]["gpu"] == 6
