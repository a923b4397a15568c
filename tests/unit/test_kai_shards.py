"""SchedulingShards and node pools: who sees what, and how each shard decides."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.cli.schedule_batch import answer_line
from phalanx.config.kai_shards import ACTION_PRIORITIES, PLUGIN_PRIORITIES
from phalanx.config.policies import policy_of_pool_shard
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import ConfigError, SnapshotError
from phalanx.session.policy import Policy
from phalanx.session.shard_decisions import unseen
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import kai_objects as kai


def policy(**spec: Any) -> Policy:
    cluster = ObjectCluster()
    cluster.put(kai.shard("fast", **spec))
    return policy_of_pool_shard(cluster.snapshot(0.0).surroundings.pool_shards["fast"])


def plugins(**spec: Any) -> list[str]:
    return [plugin.name for plugin in policy(**spec).plugins()]


def arguments(plugin: str, **spec: Any) -> dict[str, object]:
    return dict(next(each.arguments for each in policy(**spec).plugins() if each.name == plugin))


# --- the policy of a shard -----------------------------------------------------------------------------------------------


def test_plugins_come_in_the_order_of_their_priorities() -> None:
    found = plugins()
    assert found == sorted(found, key=lambda name: -PLUGIN_PRIORITIES.get(name, 1899))
    assert set(PLUGIN_PRIORITIES) - set(found) == {"gpuspread", "snapshot"}
    assert found[:2] == ["predicates", "nodetypes"]


def test_actions_come_in_the_order_of_their_priorities() -> None:
    assert policy().actions == tuple(ACTION_PRIORITIES)


def test_spreading_gpus_changes_the_plugins_and_switches_consolidation_off() -> None:
    found = policy(placementStrategy={"gpu": "spread"})
    names = [plugin.name for plugin in found.plugins()]
    assert "gpuspread" in names
    assert not {"gpupack", "gpusharingorder"} & set(names)
    assert "consolidation" not in found.actions
    assert arguments("nodeplacement", placementStrategy={"gpu": "spread"}) == {"gpu": "spread", "cpu": "binpack"}


def test_spreading_cpu_switches_consolidation_off_and_keeps_the_plugins() -> None:
    found = policy(placementStrategy={"cpu": "spread"})
    assert "consolidation" not in found.actions
    assert plugins(placementStrategy={"cpu": "spread"}) == plugins()


def test_consolidation_can_be_switched_on_again() -> None:
    found = policy(placementStrategy={"gpu": "spread"}, actions={"consolidation": {"enabled": True}})
    assert found.actions[-1] == "consolidation"
    found = policy(placementStrategy={"gpu": "spread"}, actions={"consolidation": {"enabled": True, "priority": 450}})
    assert found.actions[1] == "consolidation"


def test_plugins_can_be_switched_reordered_and_set() -> None:
    assert "elastic" not in plugins(plugins={"elastic": {"enabled": False}})
    assert plugins(plugins={"predicates": {"priority": 50}})[-2:] == ["predicates", "nodetypes"]
    assert arguments("proportion", kValue=0.5) == {"kValue": "0.5"}
    assert arguments("proportion", kValue=0.5, plugins={"proportion": {"arguments": {}}}) == {}
    assert "reflectjoborder" not in plugins(plugins={"reflectjoborder": {"enabled": True}})


def test_pack_inside_nodes_and_spread_over_them() -> None:
    names = plugins(placementStrategy={"gpu": "spread"}, plugins={"gpuspread": {"enabled": False}, "gpupack": {"enabled": True}})
    assert "gpupack" in names
    assert "gpuspread" not in names


def test_min_run_times_become_arguments() -> None:
    found = arguments("minruntime", minRuntime={"preemptMinRuntime": "5m", "reclaimMinRuntime": "1h"})
    assert found == {"defaultPreemptMinRuntime": "5m", "defaultReclaimMinRuntime": "1h"}


def test_flags_become_options() -> None:
    args = {
        "max-consolidation-preemptees": "-1", "default-staleness-grace-period": "2m", "use-scheduling-signatures": "false",
        "full-hierarchy-fairness": "false", "allow-consolidating-reclaim": "false", "restrict-node-scheduling": "true",
        "schedule-period": "5s", "leader-elect": "true",
    }  # fmt: skip
    found = policy(args=args, queueDepthPerAction={"reclaim": 5}).options
    assert found == {
        "maxConsolidationPreemptees": -1, "stalenessGracePeriodSeconds": 120, "schedulingSignatures": False,
        "fullHierarchyFairness": False, "allowConsolidatingReclaim": False, "restrictNodeScheduling": True,
        "queueDepthPerAction": {"reclaim": 5}, "usage": {}, "bindBackoffLimit": -1,
    }  # fmt: skip
    assert policy(args={"default-staleness-grace-period": "-1s"}).options["stalenessGracePeriodSeconds"] == -1


def test_the_window_of_usage_comes_from_the_shard() -> None:
    params = {"windowSize": "24h", "windowType": "cron", "cronWindowDurationString": "0 0 * * *", "fetchInterval": "1m"}
    found = policy(usageDBConfig={"clientType": "prometheus", "connectionString": "http://prometheus", "usageParams": params})
    assert found.options["usage"] == {"windowSize": "24h", "windowType": "cron", "cronWindowDurationString": "0 0 * * *"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"placementStrategy": {"gpu": "scatter"}},
            "spec.placementStrategy.gpu: 'scatter' is unknown; write 'binpack' or 'spread'",
        ),
        ({"plugins": {"elastik": {}}}, "spec.plugins.elastik: unknown plugin; known: bindbackoff, dynamicresources,"),
        ({"actions": {"backfill": {}}}, "spec.actions.backfill: unknown action; known: allocate, consolidation,"),
        ({"args": {"no-such-flag": "1"}}, "spec.args['no-such-flag']: unknown flag; known: allow-consolidating-reclaim,"),
        ({"args": {"full-hierarchy-fairness": "no"}}, "spec.args['full-hierarchy-fairness']: 'no' is not a switch; write 'true'"),
        ({"args": {"max-consolidation-preemptees": "x"}}, "spec.args['max-consolidation-preemptees']: 'x' is not a whole number"),
        ({"args": {"default-staleness-grace-period": "x"}}, "spec.args['default-staleness-grace-period']: 'x' is not a duration"),
        ({"queueDepthPerAction": {"reclaim": -2}}, "spec.queueDepthPerAction.reclaim: -2 is not a number of jobs; write 0 or more"),
        ({"queueDepthPerAction": {"enqueue": 2}}, "spec.queueDepthPerAction.enqueue: unknown action; known: allocate,"),
        (
            {"minRuntime": {"preemptMinRuntime": "soon"}},
            "plugins.minruntime: plugin 'minruntime', argument 'defaultPreemptMinRuntime'",
        ),
        (
            {"plugins": {"ray": {"arguments": {"x": "1"}}}},
            "plugins.ray: plugin 'ray', argument 'x': unknown setting; it takes no arg",
        ),
        ({"kValue": -1}, "plugins.proportion: plugin 'proportion', argument 'kValue': -1.0 is not a number of 0 or more"),
        ({"usageDBConfig": {"usageParams": {"windowSize": "x"}}}, "spec.usageDBConfig.usage.windowSize: 'x' is not a duration"),
    ],
)
def test_a_shard_that_makes_no_sense_is_refused_with_its_name(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as problem:
        policy(**spec)
    assert str(problem.value).startswith(f"SchedulingShard fast: {message}")


def test_a_shard_of_the_wrong_form_is_refused_when_it_is_read() -> None:
    with pytest.raises(SnapshotError, match=r"SchedulingShard fast: spec\.args"):
        policy(args={"leader-elect": True})
    with pytest.raises(SnapshotError, match=r"spec\.actions\.allocate\.arguments: actions have none"):
        policy(actions={"allocate": {"arguments": {"a": "b"}}})


# --- what a shard sees ---------------------------------------------------------------------------------------------------


def objects() -> list[Document]:
    """Two nodes of 4 GPUs without a pool and one of 8 in pool `h100`; a job for each, and one whose pool nobody takes."""
    nodes = [build.node(name, gpus=4, cpu=16) for name in ("plain-0", "plain-1")]
    fast = kai.in_pool("h100", [build.node("fast-0", gpus=8, cpu=16)])
    jobs = [
        *kai.gang("here", gpus=1),
        *kai.in_pool("h100", kai.gang("there", gpus=1)),
        *kai.in_pool("a100", kai.gang("lost", gpus=1)),
    ]
    shards = [kai.shard("default"), kai.shard("h100", partitionLabelValue="h100")]
    return [*nodes, *fast, *jobs, *shards, kai.queue("default", parent="", quota=-1), kai.queue("a", quota=2)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(objects()))
    return tmp_path


def schedule(folder: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["schedule", "-f", str(folder), "--now", "2026-01-01T12:00:00Z", *more], prog_name="phalanx")


def decided(folder: Path, *more: str) -> dict[str, Any]:
    result = schedule(folder, "--profile", "kai", "-o", "json", *more)
    assert result.exit_code in (0, 3), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_shard_decides_for_its_pool_alone(folder: Path) -> None:
    found = decided(folder, "--shard", "h100")
    assert found["binds"] == {"default/there-0": "fast-0"}
    assert list(found["groups"]) == ["default/there"]
    assert list(found["queues"]) == ["a", "default"]


def test_the_shard_without_a_value_takes_what_has_no_label(folder: Path) -> None:
    found = decided(folder, "--shard", "default")
    assert list(found["groups"]) == ["default/here"]
    assert found["binds"]["default/here-0"].startswith("plain")


def test_without_a_name_every_shard_decides_and_the_answer_is_one(folder: Path) -> None:
    found = decided(folder)
    assert found["binds"] == {"default/here-0": "plain-0", "default/there-0": "fast-0"}
    assert list(found["groups"]) == ["default/here", "default/lost", "default/there"]
    assert list(found["queues"]) == ["a", "default", "default/a", "default/default", "h100/a", "h100/default"]


def test_the_status_of_a_queue_sums_over_all_shards(folder: Path) -> None:
    found = decided(folder)["queues"]
    assert found["a"]["status"]["requested"]["nvidia.com/gpu"] == "3"
    assert found["a"]["status"]["allocated"]["nvidia.com/gpu"] == "2"
    assert found["default"]["status"]["childQueues"] == ["a"]


def test_bind_requests_and_events_name_the_pool(folder: Path) -> None:
    found = decided(folder)
    pools = [document["metadata"]["labels"].get("kai.scheduler/node-pool") for document in found["bindRequests"]]
    assert pools == [None, "h100"]
    told = {event["object"]: event["message"].rpartition(" ")[2] for event in found["events"] if event["reason"] == "Scheduled"}
    assert told == {"default/here-0": "default", "default/there-0": "h100"}


def test_a_reservation_belongs_to_the_shard_of_its_node(folder: Path) -> None:
    user = kai.pod("half-0", "half", share=0.5, on="fast-0", device="d0")
    used = [*kai.in_pool("h100", [kai.pod_group("half", queue="a")]), user, kai.reservation("d0", on="fast-0")]
    (folder / "more.yaml").write_text(yaml.safe_dump_all(used))
    nothing: dict[str, list[str]] = {"create": [], "delete": [], "unreserved": []}
    assert decided(folder)["gpuReservations"] == decided(folder, "--shard", "default")["gpuReservations"] == nothing


def test_a_job_whose_pool_nobody_takes_is_told_so(folder: Path) -> None:
    result = schedule(folder, "--profile", "kai")
    assert result.exit_code == 3
    assert "no SchedulingShard takes node pool 'a100'" in result.stdout
    found = decided(folder)
    (condition,) = found["groups"]["default/lost"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("NoShard", "no SchedulingShard takes node pool 'a100'")
    assert any(condition["message"] in event["message"] for event in found["events"] if event["object"] == "default/lost")


def test_what_is_said_of_a_job_that_no_shard_sees_has_the_time_of_the_session() -> None:
    cluster = ObjectCluster()
    for document in objects():
        cluster.put(document)
    part = unseen(cluster.snapshot(1000.0), {"", "h100"})
    assert part is not None
    assert [(outcome.state.key, outcome.now) for outcome in part.decisions.outcomes] == [("default/lost", 1000.0)]


def test_a_gang_behind_our_gate_stays_in_its_pool(folder: Path) -> None:
    """The node of its pool is full; one outside would take it."""
    full = [kai.pod("big-0", "big", gpus=8, on="fast-0")]
    gated = kai.in_pool("h100", kai.gang("held", gpus=4))
    for document in (item for item in gated if item["kind"] == "Pod"):
        document["spec"]["schedulingGates"] = [{"name": "phalanx.dev/gang"}]
    (folder / "more.yaml").write_text(yaml.safe_dump_all([*kai.in_pool("h100", [kai.pod_group("big", queue="a")]), *full, *gated]))
    found = decided(folder)
    assert found.get("plans", {}) == {}
    assert "0 of 8 nvidia.com/gpu are free" in found["groups"]["default/held"]["why"]  # those of the pool


def test_a_simulation_says_of_each_gang_what_its_shard_sees(folder: Path) -> None:
    more = kai.in_pool("h100", kai.gang("large", tasks=3, gpus=4))
    (folder / "more.yaml").write_text(yaml.safe_dump_all(more))
    command = ["simulate", str(folder), "--profile", "kai", "--until", "1m", "-o", "json"]
    gangs = json.loads(CliRunner().invoke(main, command, prog_name="phalanx").stdout)["gangs"]
    why = {gang["name"]: gang["why"] for gang in gangs}
    assert "no SchedulingShard takes node pool 'a100'" in why["default/lost"]
    assert "(1 node" in why["default/large"]


def test_fair_shares_are_those_of_the_pool(folder: Path) -> None:
    (folder / "more.yaml").write_text(yaml.safe_dump_all(kai.in_pool("h100", kai.gang("big", tasks=20, min_member=1, gpus=1))))
    found = decided(folder)["queues"]
    assert found["h100/a"]["fair_share"]["gpu"] == 8
    assert found["default/a"]["fair_share"]["gpu"] == 1


def test_a_pod_of_another_pool_holds_its_room_and_is_no_victim(folder: Path) -> None:
    stranger = kai.in_pool("h100", kai.gang("stranger", on=["plain-0", "plain-1"], tasks=2, gpus=4, queue="a"))
    (folder / "more.yaml").write_text(yaml.safe_dump_all(stranger))
    found = decided(folder, "--shard", "default")
    assert found["binds"] == {}
    assert found["evictions"] == {}


def test_without_shards_everything_belongs_to_one_scheduler(tmp_path: Path) -> None:
    documents = [document for document in objects() if document["kind"] != "SchedulingShard"]
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(documents))
    assert len(decided(tmp_path)["binds"]) == 3


def test_each_shard_decides_by_its_own_policy(folder: Path) -> None:
    (folder / "z.yaml").write_text(
        yaml.safe_dump_all([kai.shard("default", placementStrategy={"gpu": "spread"}), *kai.gang("second", gpus=1)])
    )
    found = decided(folder, "--shard", "default")["binds"]
    assert found == {"default/here-0": "plain-0", "default/second-0": "plain-1"}


def test_a_configuration_that_says_more_comes_before_the_shards(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    config = tmp_path_factory.mktemp("config") / "kai.yaml"
    config.write_text(yaml.safe_dump({"profile": "kai", "actions": "stalegangeviction"}))
    result = schedule(folder, "--config", str(config), "-o", "json")
    assert json.loads(result.stdout)["binds"] == {}


def test_a_shard_that_is_not_there_is_an_error_that_names_the_others(folder: Path) -> None:
    result = schedule(folder, "--profile", "kai", "--shard", "b200")
    assert result.exit_code == 1
    assert "shard 'b200': no such SchedulingShard in the input; there are: default, h100" in result.stderr


def test_two_shards_for_one_pool_are_refused(folder: Path) -> None:
    (folder / "more.yaml").write_text(yaml.safe_dump(kai.shard("other", partitionLabelValue="h100")))
    result = schedule(folder, "--profile", "kai")
    assert "SchedulingShard other: h100 takes node pool 'h100' too; give each its own partitionLabelValue" in result.stderr


@pytest.mark.parametrize("option", [["--shard", "h100"], ["--usage", "usage.yaml"]])
def test_other_profiles_know_neither_shards_nor_usage(folder: Path, option: list[str]) -> None:
    result = schedule(folder, "--profile", "volcano", *option)
    assert result.exit_code == 2
    assert "only the profile kai knows it; add '--profile kai'" in result.stderr


def test_nodes_that_no_shard_takes_are_noted(folder: Path) -> None:
    (folder / "more.yaml").write_text(yaml.safe_dump_all(kai.in_pool("a100", [build.node("idle-0"), build.node("idle-1")])))
    result = schedule(folder, "--profile", "kai")
    assert "note: no SchedulingShard takes the node pool of 2 nodes: idle-0, idle-1" in result.stderr
    assert "no SchedulingShard" not in schedule(folder, "--profile", "kai", "--shard", "h100").stderr


def test_a_batch_request_names_its_shard_under_flags() -> None:
    request = {"id": 1, "config": {"profile": "kai", "flags": {"shardName": "h100"}}, "objects": objects()}
    found = answer_line(json.dumps(request).encode())
    assert found["error"] is None
    assert found["binds"] == {"default/there-0": "fast-0"}


# --- one attempt per pool ------------------------------------------------------------------------------------------------

FAILED = {
    "type": "UnschedulableOnNodePool",
    "status": "True",
    "nodePool": "default",
    "reason": "PodSchedulingErrors",
    "message": "no",
}


def waiting(*conditions: dict[str, Any], pool: str = "", **spec: Any) -> build.Cluster:
    """A job of one GPU on a cluster of one node, with what was said about it before."""
    group, pod = kai.gang("train", gpus=1, **spec)
    group["status"] = {"schedulingConditions": list(conditions)}
    return kai.cluster(gpus=1).submit(kai.queue("a", quota=4), kai.in_pool(pool, [group]) if pool else [group], pod)


def test_a_job_that_failed_in_its_pool_and_tries_once_is_left_alone() -> None:
    cycle = waiting(FAILED, schedulingBackoff=1).run_cycle()
    assert cycle.binds == []
    assert cycle.why("train") == (
        "it failed in node pool 'default' and tries each pool once (schedulingBackoff 1); give it the label of another pool"
    )
    assert cycle.answer["groups"]["default/train"]["conditions"] == [FAILED]
    assert cycle.answer["queues"]["a"]["fair_share"]["gpu"] == 0


@pytest.mark.parametrize("backoff", [{}, {"schedulingBackoff": -1}])
def test_a_job_is_tried_again_unless_it_says_otherwise(backoff: dict[str, Any]) -> None:
    assert len(waiting(FAILED, **backoff).run_cycle().binds) == 1


def test_a_job_is_tried_in_its_new_pool() -> None:
    assert len(waiting(FAILED, pool="h100", schedulingBackoff=1).run_cycle().binds) == 1


def test_the_latest_condition_counts() -> None:
    later = {**FAILED, "nodePool": "h100", "transitionID": "11"}
    assert len(waiting(later, {**FAILED, "transitionID": "2"}, schedulingBackoff=1).run_cycle().binds) == 1
    assert waiting({**FAILED, "transitionID": "2"}, later, pool="h100", schedulingBackoff=1).run_cycle().binds == []


def test_other_conditions_do_not_hide_the_latest_attempt() -> None:
    group, pod = kai.gang("train", gpus=1, schedulingBackoff=1)
    group["metadata"]["annotations"][kai.STALE_SINCE] = "2026-01-01T11:58:00Z"
    group["status"] = {"schedulingConditions": [FAILED], "conditions": [{"type": "Other", "status": "True"}]}
    found = kai.cluster(gpus=1).submit(kai.queue("a", quota=4), group, pod).run_cycle()
    assert found.binds == []
    assert found.answer["groups"]["default/train"]["conditions"] == [FAILED]


def test_nobody_tells_anything_about_a_job_that_no_scheduler_looks_at() -> None:
    assert waiting(FAILED, schedulingBackoff=1).run_cycle().answer["events"] == []


def test_the_condition_names_its_pool() -> None:
    full = waiting(schedulingBackoff=1).submit(kai.gang("old", on="node-0", gpus=1, preemptibility="non-preemptible"))
    (condition,) = full.run_cycle().answer["groups"]["default/train"]["conditions"]
    assert condition["nodePool"] == "default"
    assert condition["message"].startswith("Node-Pool 'default': Resources were not found for pod default/train-0 due to:")


def test_pods_are_told_unless_the_group_does_not_want_that() -> None:
    loud = waiting().submit(kai.gang("old", on="node-0", gpus=1, preemptibility="non-preemptible"))
    quiet = waiting(markUnschedulable=False).submit(kai.gang("old", on="node-0", gpus=1, preemptibility="non-preemptible"))
    assert loud.run_cycle().answer["tasks"]["default/train-0"]["reason"] == "Unschedulable"
    assert "reason" not in quiet.run_cycle().answer["tasks"]["default/train-0"]
    assert quiet.run_cycle().answer["groups"]["default/train"]["conditions"]


def test_a_backoff_that_is_none_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r"spec\.schedulingBackoff: 3 is unknown; write 1 to be tried once"):
        waiting(schedulingBackoff=3)


def test_a_transition_that_is_no_number_is_refused() -> None:
    with pytest.raises(SnapshotError, match="transitionID: 'x' is not a whole number"):
        waiting({**FAILED, "transitionID": "x"})


# --- usage from files ----------------------------------------------------------------------------------------------------


def two_teams() -> list[Document]:
    """Two equal queues that both want all 8 GPUs of a node."""
    jobs = [document for name in "ab" for document in kai.gang(f"job-{name}", tasks=8, min_member=1, gpus=1, queue=name)]
    queues = [kai.queue("default", parent="", quota=-1), kai.queue("a"), kai.queue("b")]
    return [build.node("n0", gpus=8, cpu=64), *queues, *jobs]


def samples(amount: float) -> list[list[object]]:
    return [["2026-01-01T00:00:00Z", amount], ["2026-01-01T11:59:00Z", amount]]


def prometheus(amount: float) -> dict[str, Any]:
    values = [[1767225600, str(amount)], [1767268740, str(amount)]]
    series = {"metric": {"__name__": "kai_queue_allocated_gpus", "queue_name": "a"}, "values": values}
    return {"status": "success", "data": {"resultType": "matrix", "result": [series]}}


@pytest.mark.parametrize("document", [{"queues": {"a": {"gpu": samples(8.0)}}}, prometheus(8.0)], ids=["own form", "prometheus"])
def test_usage_is_read_from_a_file(tmp_path: Path, document: dict[str, Any]) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "all.yaml").write_text(yaml.safe_dump_all(two_teams()))
    (tmp_path / "usage.json").write_text(json.dumps(document))
    config = tmp_path / "kai.yaml"
    config.write_text(yaml.safe_dump({"profile": "kai", "options": {"usage": {"windowSize": "12h"}}}))
    options = ["--config", str(config), "--usage", str(tmp_path / "usage.json"), "-o", "json"]
    queues = json.loads(schedule(tmp_path / "objects", *options).stdout)["queues"]
    assert (queues["a"]["fair_share"]["gpu"], queues["b"]["fair_share"]["gpu"]) == (0, 8)


def test_a_file_of_usage_that_cannot_be_read_is_named(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("usage") / "usage.yaml"
    file.write_text(yaml.safe_dump({"queues": {"a": {"tpu": []}}}))
    result = schedule(folder, "--profile", "kai", "--usage", str(file))
    assert result.exit_code == 1
    assert f"{file}, document 1: queues.a.tpu: unknown resource; known: cpu, memory, gpu" in result.stderr


def test_a_batch_request_brings_its_usage() -> None:
    now, usage = "2026-01-01T12:00:00Z", {"queues": {"a": {"gpu": samples(8.0)}}, "capacity": {"gpu": samples(8.0)}}
    request = {"id": 1, "now": now, "config": {"profile": "kai"}, "objects": two_teams(), "usage": usage}
    found = answer_line(json.dumps(request).encode())
    assert found["queues"]["a"]["fair_share"]["gpu"] == 0
    bad = answer_line(json.dumps({**request, "usage": 5}).encode())
    assert bad["error"].startswith("usage: expected a mapping, got int")
