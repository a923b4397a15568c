"""All or nothing holds for members without requests too: a gang starts only if they have a place, and evicts nobody in vain."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.config.policies import policy_of_profile
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support.broken_gangs import NOW

NOWHERE = {"nodeSelector": {"disk": "optane"}}
"""No node has it."""
OURS = pytest.mark.parametrize("profile", ["phalanx", "coscheduling"])


def schedule(*parts: Any, profile: str = "phalanx", more: tuple[str, ...] = ("-o", "json")) -> Result:
    objects = [document for part in parts for document in ([part] if isinstance(part, dict) else part)]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    arguments = ["schedule", "-f", "-", "--now", "2026-01-01T12:00:00Z", "--profile", profile, *more]
    return CliRunner().invoke(main, arguments, input=given, prog_name="phalanx")


def answer(*parts: Any, profile: str = "phalanx") -> Any:
    return json.loads(schedule(*parts, profile=profile).stdout)


def nodes(count: int = 2, **offers: Any) -> list[Document]:
    return [build.node(f"node-{number}", **offers) for number in range(count)]


def member(name: str, *, role: str = "", spec: Document | None = None, **asks: Any) -> Document:
    return build.in_group("train", build.pod(name, spec=spec, **asks), role=role)


def gang(*members: Document, min_member: int = 3, **spec: Any) -> list[Document]:
    return [build.pod_group("train", min_member=min_member, **spec), *members]


def two_workers() -> list[Document]:
    return [member("worker-0", role="worker", cpu=1), member("worker-1", role="worker", cpu=1)]


def bound(found: Any) -> list[str]:
    return [key.removeprefix("default/") for key in found["binds"]]


def why(found: Any) -> str:
    return str(found["groups"]["default/train"]["why"])


# --- starting ------------------------------------------------------------------------------------------------------------


@OURS
def test_a_gang_waits_for_a_member_without_requests_that_no_node_takes(profile: str) -> None:
    found = answer(nodes(), gang(*two_workers(), member("launcher", spec=NOWHERE)), profile=profile)
    assert bound(found) == []
    assert why(found) == (
        "2 of 3 tasks fit; 1 more place for a pod without requests needed"
        " (2 nodes: 2 do not match the nodeSelector disk=optane (no node has the label disk))"
    )


@OURS
def test_a_gang_of_which_nobody_asks_for_anything_waits_as_a_whole(profile: str) -> None:
    found = answer(nodes(), gang(member("a"), member("b"), member("c", spec=NOWHERE)), profile=profile)
    assert bound(found) == []
    assert why(found) == (
        "2 of 3 tasks fit; 1 more place for a pod without requests needed"
        " (2 nodes: 2 do not match the nodeSelector disk=optane (no node has the label disk))"
    )


@OURS
def test_members_without_requests_start_with_the_others(profile: str) -> None:
    mixed = answer(nodes(), gang(*two_workers(), member("launcher")), profile=profile)
    assert bound(mixed) == ["launcher", "worker-0", "worker-1"]
    free = answer(nodes(), gang(member("a"), member("b"), member("c")), profile=profile)
    assert bound(free) == ["a", "b", "c"]


@OURS
def test_a_gang_that_waits_for_a_member_without_requests_is_shown_as_waiting(profile: str) -> None:
    result = schedule(nodes(), gang(*two_workers(), member("launcher", spec=NOWHERE)), profile=profile, more=())
    assert result.exit_code == 3
    assert "default/train  default  Waits     3       0        0  2 of 3 tasks fit" in result.stdout


@OURS
def test_a_role_is_whole_only_with_members_that_have_a_place(profile: str) -> None:
    roles, workers = {"ps": 1, "worker": 2}, [*two_workers(), member("worker-2", role="worker", cpu=1)]
    stuck = gang(*workers, member("ps-0", role="ps", spec=NOWHERE), minTaskMember=roles)
    found = answer(nodes(), stuck, profile=profile)
    assert bound(found) == []
    assert why(found).startswith("3 of 3 tasks fit (ps: 0 of 1); 1 more place for a pod without requests needed")
    whole = gang(*workers, member("ps-0", role="ps"), minTaskMember=roles)
    assert bound(answer(nodes(), whole, profile=profile)) == ["ps-0", "worker-0", "worker-1", "worker-2"]


@OURS
def test_a_sub_group_is_whole_only_with_members_that_have_a_place(profile: str) -> None:
    policy = {"name": "half", "subGroupSize": 2, "minSubGroups": 2, "labelSelector": {}, "matchLabelKeys": ["half"]}
    members = [member(f"m-{number}", spec=NOWHERE if number == 3 else None) for number in range(4)]
    for number, pod in enumerate(members):
        pod["metadata"]["labels"] = {"half": str(number // 2)}
    stuck = gang(*members, min_member=4, subGroupPolicy=[policy])
    assert bound(answer(nodes(), stuck, profile=profile)) == []
    del members[3]["spec"]["nodeSelector"]
    assert bound(answer(nodes(), stuck, profile=profile)) == ["m-0", "m-1", "m-2", "m-3"]


@OURS
def test_a_member_beyond_the_minimum_keeps_nobody_from_starting(profile: str) -> None:
    stuck = answer(nodes(), gang(*two_workers(), member("extra", spec=NOWHERE), min_member=2), profile=profile)
    assert bound(stuck) == ["worker-0", "worker-1"]
    assert why(stuck).startswith("starts with its minimum of 2; 1 more task waits: no place for a pod without requests")
    free = answer(nodes(), gang(*two_workers(), member("extra"), min_member=2), profile=profile)
    assert bound(free) == ["extra", "worker-0", "worker-1"]


@OURS
def test_a_node_takes_no_more_members_without_requests_than_pods(profile: str) -> None:
    members = [member(f"m-{number}") for number in range(3)]
    short = answer(nodes(2, pods=1), gang(*members), profile=profile)
    assert bound(short) == []
    assert why(short).startswith("2 of 3 tasks fit; 1 more place for a pod without requests needed")
    assert len(bound(answer(nodes(3, pods=1), gang(*members), profile=profile))) == 3


@OURS
def test_in_virtual_time_a_gang_that_waits_for_such_a_member_holds_nothing(profile: str, tmp_path: Path) -> None:
    manifest = tmp_path / "cluster.yaml"
    manifest.write_text(yaml.safe_dump_all([*nodes(), *gang(*two_workers(), member("launcher", spec=NOWHERE))]))
    result = CliRunner().invoke(main, ["simulate", str(manifest), "--profile", profile, "--until", "10m"])
    assert "2 of 3 tasks fit; 1 more place for a pod without requests needed" in result.stdout
    assert re.search(r"^held +0\.0%$", result.stdout, re.MULTILINE)
    assert "DEADLOCKS" not in result.stdout


def test_members_without_requests_stay_in_the_network_domain_of_their_gang() -> None:
    leaves = [build.hypernode(f"rack-{number}", tier=1, members=[f"node-{number}"]) for number in range(2)]
    tree = [*leaves, build.hypernode("spine", tier=2, members=["rack-0", "rack-1"], of="HyperNode")]
    close = gang(*two_workers(), member("launcher"), networkTopology={"mode": "hard", "highestTierAllowed": 1})
    one_rack = nodes(2, cpu=2)
    one_rack[1]["status"]["allocatable"]["cpu"] = 1
    assert set(answer(one_rack, tree, close)["binds"].values()) == {"node-0"}
    one_rack[0]["status"]["allocatable"]["pods"] = 2
    assert bound(answer(one_rack, tree, close)) == []


def test_the_profile_volcano_starts_without_them_as_volcano_does() -> None:
    stuck = [nodes(), build.queue("default"), gang(*two_workers(), member("launcher", spec=NOWHERE), phase="Inqueue")]
    assert bound(answer(*stuck, profile="volcano")) == ["worker-0", "worker-1"]
    free = [nodes(), build.queue("default"), gang(*two_workers(), member("launcher"), phase="Inqueue")]
    assert bound(answer(*free, profile="volcano")) == ["launcher", "worker-0", "worker-1"]


@pytest.mark.parametrize(
    ("minima", "sentence"),
    [
        ({"min_member": 3}, "starts with 2 of 3 tasks, its minimum is 3; 1 more task waits: "),
        (
            {"min_member": 2, "minTaskMember": {"worker": 1, "ps": 1}},
            "starts with 2 of 3 tasks, its minimum is 2 (ps: 0 of 1); 1 more task waits: ",
        ),
    ],
)
def test_the_profile_volcano_says_which_minimum_it_starts_without(minima: Document, sentence: str) -> None:
    stuck = gang(*two_workers(), member("ps", role="ps", spec=NOWHERE), **{"phase": "Inqueue", **minima})
    found = schedule(nodes(), build.queue("default"), stuck, profile="volcano", more=())
    assert found.exit_code == 0
    assert sentence in found.stdout
    assert "Starts" in found.stdout


def test_any_configuration_can_ask_for_all_members(tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.yaml"
    conf.write_text("profile: volcano\nbestEffortMembers: with-gang\n")
    objects = [*nodes(), *gang(*two_workers(), member("launcher", spec=NOWHERE), phase="Inqueue")]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    arguments = ["schedule", "-f", "-", "--config", str(conf), "-o", "json"]
    assert bound(json.loads(CliRunner().invoke(main, arguments, input=given).stdout)) == []
    conf.write_text("profile: volcano\nbestEffortMembers: never\n")
    assert "bestEffortMembers: unknown rule 'never'" in CliRunner().invoke(main, arguments, input=given).stderr


def test_without_gangs_a_pod_without_requests_is_placed_like_any_other() -> None:
    assert bound(answer(nodes(), gang(member("a"), min_member=1), profile="default-scheduler")) == ["a"]


# --- evictions -----------------------------------------------------------------------------------------------------------


def priorities() -> list[Document]:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return [{**head, "metadata": {"name": name}, "value": value} for name, value in (("high", 100), ("low", 1))]


def running(*, min_member: int = 2, **spec: Any) -> list[Document]:
    """Return a gang that has all of the one node."""
    pods = [build.pod(f"old-{number}", group="old", on="node-0", cpu=4) for number in range(2)]
    return [build.pod_group("old", min_member=min_member, phase="Running", **spec), *pods]


def urgent(launcher: Document, **spec: Any) -> list[Document]:
    return gang(member("worker", cpu=4), launcher, min_member=2, **spec)


@OURS
def test_nobody_is_preempted_for_a_gang_with_a_member_that_no_node_takes(profile: str) -> None:
    there = [nodes(1), priorities(), running(priorityClassName="low")]
    found = answer(*there, urgent(member("launcher", spec=NOWHERE), priorityClassName="high"), profile=profile)
    assert (found["evictions"], found["pipelined"], bound(found)) == ({}, {}, [])
    assert why(found)
    found = answer(*there, urgent(member("launcher"), priorityClassName="high"), profile=profile)
    assert sorted(found["evictions"]) == ["default/old-0", "default/old-1"]
    assert sorted(found["pipelined"]) == ["default/launcher", "default/worker"]


@pytest.mark.parametrize("preemptive", ["all-dimensions", "any-dimension"])
def test_room_is_reclaimed_only_if_members_without_requests_have_a_place_too(preemptive: str) -> None:
    capacity = {"name": "capacity", "arguments": {"preemptive": preemptive}}
    fewest = [{"name": "gangreclaim", "arguments": {"victims": "fewest"}}]
    rules = {"victimRule": "all-agree", "bestEffortMembers": "with-gang", "configurations": fewest}
    policy = build.policy([["gang"], ["predicates", capacity]], "allocate, gangreclaim", **rules)
    there = [build.queue(name, deserved={"cpu": 4}, reclaimable=True) for name in ("mine", "theirs")]
    there += running(min_member=1, queue="theirs")

    def reclaimed(launcher: Document) -> build.Cycle:
        return build.cluster(nodes=1, policy=policy).submit(there, urgent(launcher, queue="mine")).run_cycle()

    assert reclaimed(member("launcher", spec=NOWHERE)).answer["evictions"] == {}
    cycle = reclaimed(member("launcher"))
    assert len(cycle.answer["evictions"]) == 1
    assert [pod for pod, _ in cycle.pipelined] == ["launcher", "worker"]


def test_a_gang_that_asks_for_nothing_takes_nothing_from_other_queues() -> None:
    there = [build.queue(name, deserved={"cpu": 4}, reclaimable=True) for name in ("mine", "theirs")]
    there += [*nodes(1, pods=2), *running(min_member=1, queue="theirs")]
    found = answer(there, gang(member("a"), min_member=1, queue="mine"))
    assert (found["evictions"], bound(found)) == ({}, [])
    assert "runs as many pods as it may" in why(found)


# --- staleness -----------------------------------------------------------------------------------------------------------


def test_a_gang_that_runs_without_a_member_without_requests_is_stale() -> None:
    workers = [build.pod(f"train-{number}", group="train", on="node-0", cpu=1) for number in range(2)]
    group = build.pod_group("train", min_member=3, phase="Running")
    stuck = build.pod("train-2", group="train", spec=NOWHERE)
    cluster = build.cluster(nodes=1, policy=policy_of_profile("phalanx")).submit(build.bound_for(group, *workers), stuck)
    first = cluster.run_cycle(now=NOW)
    assert first.why("train").startswith("2 of 3 tasks run, below the minimum of 3 for 0 s; evicted in 60 s")
    later = cluster.carry_out(first).run_cycle(now=NOW + 61)
    assert sorted(later.answer["evictions"]) == ["default/train-0", "default/train-1"]
