"""How many of the sub-groups of a KAI PodGroup start together: `minSubGroup`, in KAI's profile and in Phalanx's own."""

from collections.abc import Sequence
from typing import Any

import pytest

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.explain.no_effect import notes_without_effect
from phalanx.session.cycle import run_cycle
from phalanx.state.gang_state import GangState
from phalanx.state.staleness import leftovers, stale_parts
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle, Document
from tests.support import kai_objects as kai

PROFILES = ("kai", "phalanx")
REPLICAS = ("r-0", "r-1", "r-2")


def cluster(profile: str, *, gpus: int) -> Cluster:
    if profile == "kai":
        return kai.cluster(gpus=gpus).submit(kai.queue("a", quota=-1))
    found = build.cluster(nodes=1, gpus=gpus, cpu=64, policy=policy_of_profile(profile))
    return found.submit(kai.queue("a", parent="", quota=-1), kai.priority_class("train"))


def service(parts: Sequence[dict[str, Any]], *, pods: int = 2, on: Sequence[str] = (), **spec: Any) -> list[Document]:
    """Return a PodGroup and pods of one GPU for each leaf of it, `REPLICA-NUMBER`; those in `on` run on node-0."""
    parents = {part.get("parent") for part in parts}
    names = [(str(part["name"]), number) for part in parts if part["name"] not in parents for number in range(pods)]
    group = kai.pod_group("serve", subGroups=list(parts), **spec)
    if "minSubGroup" in spec:
        del group["spec"]["minMember"]
    place = dict.fromkeys(on, "node-0")
    members = [
        kai.pod(f"{leaf}-{number}", "serve", part=leaf, gpus=1, on=place.get(f"{leaf}-{number}", "")) for leaf, number in names
    ]
    return [group, *members]


def replicas(least: int = 2) -> list[dict[str, Any]]:
    return [{"name": name, "minMember": least} for name in REPLICAS]


def bound(cycle: Cycle) -> list[str]:
    return sorted(name for name, _ in cycle.binds)


@pytest.mark.parametrize("profile", PROFILES)
def test_without_a_number_every_sub_group_is_needed_whatever_min_member_says(profile: str) -> None:
    assert bound(cluster(profile, gpus=4).submit(service(replicas(), min_member=1)).run_cycle()) == []
    assert len(bound(cluster(profile, gpus=6).submit(service(replicas(), min_member=1)).run_cycle())) == 6


def notes(profile: str, **spec: Any) -> list[str]:
    found = cluster(profile, gpus=4).submit(service(replicas(), **spec))
    snapshot = found.objects.snapshot(0.0)
    decisions = run_cycle(snapshot, found.policy, catalogue_of(found.policy.catalogue))
    return list(notes_without_effect([(snapshot, decisions)]))


@pytest.mark.parametrize("profile", PROFILES)
def test_a_min_member_that_has_no_effect_is_told(profile: str) -> None:
    assert notes(profile, min_member=1) == [
        "PodGroup default/serve: spec.minMember is 1, but has no effect beside subGroups, which need 6 pods;"
        " write as minSubGroup how many of them are needed, or leave minMember out if all are"
    ]


@pytest.mark.parametrize("spec", [{"min_member": 6}, {"min_member": 3}, {"min_member": 0}, {"minSubGroup": 2}])
def test_a_min_member_that_says_that_all_are_needed_is_not(spec: dict[str, Any]) -> None:
    assert notes("kai", **spec) == []


@pytest.mark.parametrize("profile", PROFILES)
def test_as_many_sub_groups_start_as_are_needed(profile: str) -> None:
    cycle = cluster(profile, gpus=4).submit(service(replicas(), minSubGroup=2)).run_cycle()
    assert bound(cycle) == ["r-0-0", "r-0-1", "r-1-0", "r-1-1"]
    assert cycle.phase("serve") == "Running"


@pytest.mark.parametrize("profile", PROFILES)
def test_fewer_sub_groups_than_are_needed_do_not_start(profile: str) -> None:
    assert bound(cluster(profile, gpus=3).submit(service(replicas(), minSubGroup=2)).run_cycle()) == []


@pytest.mark.parametrize("profile", PROFILES)
def test_a_sub_group_beyond_what_is_needed_starts_as_a_whole_or_not_at_all(profile: str) -> None:
    assert len(bound(cluster(profile, gpus=5).submit(service(replicas(), minSubGroup=2)).run_cycle())) == 4
    assert len(bound(cluster(profile, gpus=6).submit(service(replicas(), minSubGroup=2)).run_cycle())) == 6


@pytest.mark.parametrize("profile", PROFILES)
def test_a_sub_group_that_no_node_takes_is_passed_over(profile: str) -> None:
    documents = service(replicas(), minSubGroup=2)
    documents[1]["spec"]["nodeSelector"] = {"zone": "nowhere"}
    assert bound(cluster(profile, gpus=8).submit(documents).run_cycle()) == ["r-1-0", "r-1-1", "r-2-0", "r-2-1"]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_sub_group_without_its_pods_is_passed_over(profile: str) -> None:
    documents = service(replicas(), minSubGroup=2)
    assert len(bound(cluster(profile, gpus=8).submit(documents[:1], documents[3:]).run_cycle())) == 4


@pytest.mark.parametrize("profile", PROFILES)
def test_a_parent_says_how_many_below_it_are_needed(profile: str) -> None:
    below = [{"name": name, "minMember": 2, "parent": "prefill"} for name in ("p-0", "p-1")]
    parts: list[dict[str, Any]] = [{"name": "prefill", "minSubGroup": 1}, *below, {"name": "decode", "minMember": 2}]
    cycle = cluster(profile, gpus=5).submit(service(parts, min_member=4)).run_cycle()
    assert bound(cycle) == ["decode-0", "decode-1", "p-0-0", "p-0-1"]
    assert bound(cluster(profile, gpus=3).submit(service(parts, min_member=4)).run_cycle()) == []


@pytest.mark.parametrize("profile", PROFILES)
def test_a_parent_may_need_none_of_those_below_it(profile: str) -> None:
    below = [{"name": name, "minMember": 2, "parent": "more"} for name in ("m-0", "m-1")]
    parts: list[dict[str, Any]] = [{"name": "base", "minMember": 2}, {"name": "more", "minSubGroup": 0}, *below]
    assert bound(cluster(profile, gpus=3).submit(service(parts, min_member=2)).run_cycle()) == ["base-0", "base-1"]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_leaf_may_need_no_pods(profile: str) -> None:
    parts: list[dict[str, Any]] = [{"name": "head", "minMember": 1}, {"name": "workers", "minMember": 0}]
    assert bound(cluster(profile, gpus=1).submit(service(parts, pods=1)).run_cycle()) == ["head-0"]


def test_the_minimum_is_the_least_that_meets_the_tree() -> None:
    def minimum(documents: list[Document]) -> int:
        objects = ObjectCluster()
        objects.put(documents[0])
        return next(iter(objects.snapshot(0).gangs.values())).min_member

    assert minimum(service(replicas(), min_member=1)) == 6
    assert minimum(service(replicas(), minSubGroup=2)) == 4
    assert minimum(kai.gang("plain", tasks=3)) == 3


# --- sub-groups that can be spared ---------------------------------------------------------------------------------------


def running(*names: str) -> list[str]:
    return [f"{name}-{number}" for name in names for number in range(2)]


def test_a_sub_group_that_is_not_needed_goes_before_the_others_and_as_a_whole() -> None:
    found = cluster("kai", gpus=6).submit(service(replicas(), minSubGroup=2, on=running(*REPLICAS)))
    found.submit(kai.gang("urgent", gpus=1, priorityClassName="build"))
    evicted = sorted(found.run_cycle().answer["evictions"])
    assert evicted == ["default/r-2-0", "default/r-2-1"]


def test_a_sub_group_that_lost_a_pod_and_is_not_needed_makes_no_job_stale() -> None:
    left = [name for name in running(*REPLICAS) if name != "r-2-1"]
    documents = [document for document in service(replicas(), minSubGroup=2, on=left) if document["metadata"]["name"] != "r-2-1"]
    found = kai.cluster(gpus=6, actions="stalegangeviction", options={"stalenessGracePeriodSeconds": 0})
    assert found.submit(kai.queue("a", quota=-1), documents).run_cycle().answer["evictions"] == {}
    without_another = [document for document in documents if document["metadata"]["name"] != "r-1-0"]
    found = kai.cluster(gpus=6, actions="stalegangeviction", options={"stalenessGracePeriodSeconds": 0})
    assert len(found.submit(kai.queue("a", quota=-1), without_another).run_cycle().answer["evictions"]) == 4


@pytest.mark.parametrize(("lost", "gone"), [(["r-2-1"], ["r-2-0"]), (["r-1-1", "r-2-1"], ["r-0-0", "r-0-1", "r-1-0", "r-2-0"])])
def test_heal_takes_what_is_left_of_a_sub_group_that_is_not_needed_and_all_of_a_broken_gang(
    lost: list[str], gone: list[str]
) -> None:
    documents = service(replicas(), minSubGroup=2, on=running(*REPLICAS))
    for document in documents:
        if document["metadata"]["name"] in lost:
            document["status"] = {"phase": "Failed"}
    snapshot = cluster("phalanx", gpus=6).submit(documents).objects.snapshot(0.0)
    (gang,) = snapshot.gangs.values()
    state = GangState(gang, ((task, 0) for task in snapshot.members_of(gang.key).values()))
    assert sorted(task.task.name for task in leftovers(state, stale_parts(state))) == gone


# --- what is refused -----------------------------------------------------------------------------------------------------


def refusal(parts: Sequence[dict[str, Any]], **spec: Any) -> str:
    with pytest.raises(SnapshotError) as caught:
        ObjectCluster().put(service(parts, **spec)[0])
    return str(caught.value)


PARENT: list[dict[str, Any]] = [
    {"name": "decode"},
    {"name": "one", "parent": "decode", "minMember": 2},
    {"name": "two", "parent": "decode", "minMember": 3},
]


@pytest.mark.parametrize("written", [3, 1, 7])
def test_a_minimum_of_pods_on_a_parent_is_refused_with_what_to_write(written: int) -> None:
    text = refusal([{**PARENT[0], "minMember": written}, *PARENT[1:]])
    assert f"minMember of 'decode' is {written}, but it has 2 sub-groups and no own pods; write as minSubGroup how many" in text


@pytest.mark.parametrize("written", [0, 2, 5])
def test_a_minimum_on_a_parent_that_means_all_of_it_is_accepted(written: int) -> None:
    ObjectCluster().put(service([{**PARENT[0], "minMember": written}, *PARENT[1:]])[0])


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"minSubGroup": 4}, "spec.minSubGroup: 4 of 3 sub-groups cannot be needed; write 1 to 3"),
        ({"minSubGroup": 0}, "spec.minSubGroup: 0 of 3 sub-groups cannot be needed; write 1 to 3"),
    ],
)
def test_a_number_of_sub_groups_that_cannot_be_is_refused(spec: dict[str, int], sentence: str) -> None:
    assert sentence in refusal(replicas(), **spec)


def test_a_number_of_sub_groups_where_there_are_none_is_refused() -> None:
    assert "there are no sub-groups to count" in refusal([{"name": "leaf", "minSubGroup": 1}])
    assert "there are no sub-groups to count" in refusal([], minSubGroup=1)


def test_pods_and_sub_groups_cannot_both_be_counted() -> None:
    group = service(replicas(), minSubGroup=2)[0]
    group["spec"]["minMember"] = 4
    with pytest.raises(SnapshotError, match="minMember is there too"):
        ObjectCluster().put(group)
