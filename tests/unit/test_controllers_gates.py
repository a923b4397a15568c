"""Gangs behind our gate, with a scheduler behind it that places pods one by one."""

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.controllers.gates import GateLifter
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.gated_cluster import GatedCluster
from phalanx.dialects.gates import AFTERWARDS, GATE, MIN_MEMBER, TIMEOUT, GangGates, as_made, gates_of, plan_of, plans, written
from phalanx.errors import Conflict, SnapshotError
from phalanx.model.kinds import NODE, POD, Document
from phalanx.model.merging import merged
from phalanx.model.task import GangKey, TaskKey
from phalanx.scheduling.gates import GatePlanner
from phalanx.session.cycle import Profile
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import gated_gangs as gates
from tests.support import native_groups as native
from tests.support import sim_worlds as worlds


def held(world: World) -> list[str]:
    return [pod["metadata"]["name"] for pod in world.store.items(POD) if GATE in gates_of(pod)]


# --- who starts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["default-scheduler", "phalanx", "volcano"])
def test_of_two_gangs_that_would_block_each_other_one_starts_whole(profile: str) -> None:
    found = gates.world(nodes=3, gpus=1, policy=None if profile == "default-scheduler" else policy_of_profile(profile))
    worlds.submit(found, gates.gang("a", 3, gpus=1), gates.gang("b", 3, gpus=1))
    worlds.run(found, 30)
    assert gates.placed(found, "a") == {"a-0": "node-0", "a-1": "node-1", "a-2": "node-2"}
    assert held(found) == ["b-0", "b-1", "b-2"]
    assert found.reasons()["default/b"].startswith("0 of 3 tasks fit; 3 more places for 1 nvidia.com/gpu needed")
    for name in gates.placed(found, "a"):
        found.store.delete(POD, "default", name, grace=0)
    worlds.run(found, 60)
    assert len(gates.placed(found, "b")) == 3


def test_nobody_starts_before_there_are_enough_pods() -> None:
    found = gates.world(nodes=3, gpus=1)
    first, *rest = gates.gang("a", 3, gpus=1)
    worlds.submit(found, [first])
    worlds.run(found, 10)
    assert held(found) == ["a-0"]
    assert found.reasons() == {"default/a": "only 1 of the 3 pods it needs are there"}
    worlds.submit(found, rest, at=20)
    worlds.run(found, 30)
    assert len(gates.placed(found, "a")) == 3


def test_pods_are_pinned_to_their_nodes_and_keep_what_they_asked_for() -> None:
    found = gates.world(nodes=0)
    found.load([build.node(f"n{number}", gpus=1, labels={"zone": f"z{number % 2}"}) for number in range(4)])
    wanted = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": wanted}}
    worlds.submit(found, gates.gang("a", 2, gpus=1, spec={**gates.GATED, "affinity": {"nodeAffinity": required}}))
    worlds.run(found, 10)
    assert gates.placed(found, "a") == {"a-0": "n1", "a-1": "n3"}
    terms = found.store.get(POD, "default", "a-0")["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert terms == {
        "nodeSelectorTerms": [{**wanted[0], "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    }


def test_gates_of_others_are_left_alone_and_waited_for() -> None:
    found = gates.world(nodes=2, gpus=1)
    both: Document = {"schedulingGates": [{"name": GATE}, {"name": "example.com/quota"}]}
    pods = gates.gang("a", 2, gpus=1)
    pods[1]["spec"] |= both
    worlds.submit(found, pods)
    worlds.run(found, 10)
    assert held(found) == ["a-0", "a-1"]
    found.store.patch(POD, "default", "a-1", {"spec": {"schedulingGates": [{"name": GATE}]}})
    worlds.run(found, 20)
    assert len(gates.placed(found, "a")) == 2


def test_pods_of_a_podgroup_of_any_dialect_may_carry_the_gate() -> None:
    found = gates.world(nodes=2, gpus=1)
    worlds.submit(found, native.gang("a", tasks=2, gpus=1))
    spec = dict(gates.GATED)
    volcano = [build.in_group("x", build.pod(f"x-{number}", gpus=1, spec=spec)) for number in range(2)]
    worlds.submit(found, [build.pod_group("x", min_member=2), *volcano], at=1)
    own = [native.pod(f"y-{number}", "y", gpus=1, spec=spec) for number in range(2)]
    worlds.submit(found, [native.group("y", min_count=2), *own], at=1)
    worlds.run(found, 10)
    assert held(found) == ["x-0", "x-1", "y-0", "y-1"]
    for number in range(2):
        found.store.delete(POD, "default", f"a-{number}", grace=0)
    worlds.run(found, 20)
    assert [len(gates.placed(found, name)) for name in "xy"] in ([2, 0], [0, 2])


def test_a_pod_that_waits_without_a_gang_comes_first() -> None:
    found = gates.world(nodes=3, gpus=1)
    worlds.submit(found, gates.gang("a", 3, gpus=1), [build.pod("alone", gpus=1)])
    worlds.run(found, 30)
    assert gates.placed(found, "a") == {}
    assert worlds.phases(found.store)["alone"] == "Running"
    found.store.delete(POD, "default", "alone", grace=0)
    worlds.run(found, 60)
    assert len(gates.placed(found, "a")) == 3


def test_a_pod_that_takes_the_place_of_another_is_let_through_alone() -> None:
    found = gates.world(nodes=3, gpus=1)
    worlds.submit(found, gates.gang("a", 3, gpus=1))
    worlds.run(found, 10)
    found.store.delete(POD, "default", "a-1", grace=0)
    worlds.submit(found, [gates.pod("a-9", "a", 3, gpus=1)], at=20)
    worlds.run(found, 40)
    assert gates.placed(found, "a") == {"a-0": "node-0", "a-2": "node-2", "a-9": "node-1"}


def test_an_evicted_pod_comes_back_behind_its_gate_and_goes_elsewhere() -> None:
    found = gates.world(nodes=3, gpus=1)
    worlds.submit(found, gates.gang("a", 2, gpus=1))
    worlds.run(found, 10)
    pod = as_made(found.store.get(POD, "default", "a-0"))
    assert (gates_of(pod), plan_of(pod), pod["spec"]["affinity"]) == ([GATE], None, {})
    found.faults.lose(found.store.get(POD, "default", "a-0"))
    found.store.patch(NODE, "", "node-0", {"spec": {"unschedulable": True}})
    worlds.run(found, 60)
    assert gates.placed(found, "a") == {"a-0": "node-2", "a-1": "node-1"}


# --- plans ---------------------------------------------------------------------------------------------------------------


def planned(tasks: int, carried: int, *, now: float) -> World:
    """Return a world with a lifter and nobody who plans, in which some pods of a gang carry the plan for all."""
    found = gates.world(nodes=tasks, gpus=1, gates=None)
    found.submit([gates.gang("a", tasks, gpus=1)])
    chosen = plans({TaskKey(f"default/a-{number}"): f"node-{number}" for number in range(tasks)}, now)
    for number in range(carried):
        found.store.patch(POD, "default", f"a-{number}", written(chosen[TaskKey(f"default/a-{number}")]))
    return found


def test_a_plan_that_not_all_its_pods_carry_is_not_begun() -> None:
    found = planned(3, 2, now=worlds.world().start)
    worlds.run(found, 30)
    assert held(found) == ["a-0", "a-1", "a-2"]


def test_a_plan_that_is_too_old_is_not_begun() -> None:
    found = planned(2, 2, now=worlds.world().start - 61)
    worlds.run(found, 30)
    assert held(found) == ["a-0", "a-1"]


def test_a_plan_that_was_begun_is_finished_whatever_its_age() -> None:
    found = planned(2, 2, now=worlds.world().start - 61)
    pod = found.store.get(POD, "default", "a-0")
    plan = plan_of(pod)
    assert plan is not None
    found.store.patch(POD, "default", "a-0", GangGates().lifted(pod, plan))
    worlds.run(found, 30)
    assert gates.placed(found, "a") == {"a-0": "node-0", "a-1": "node-1"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_pods_of_a_plan_that_was_begun_are_not_planned_anew(order: tuple[int, int]) -> None:
    pods, keys = gates.gang("a", 2, gpus=1), [TaskKey("default/a-0"), TaskKey("default/a-1")]
    chosen = plans({keys[0]: "node-1", keys[1]: "node-0"}, 0.0)
    carrying = [merged(pod, written(chosen[key])) for pod, key in zip(pods, keys, strict=True)]
    for pod in carrying:
        pod["metadata"]["resourceVersion"] = "1"
    cluster = GatedCluster()
    for document in (build.node("node-0", gpus=1), build.node("node-1", gpus=1), *carrying):
        cluster.put(document)
    assert sorted(cluster.held) == keys
    begun = [merged(carrying[0], GangGates().lifted(carrying[0], chosen[keys[0]])), carrying[1]]
    for number in order:
        cluster.put(begun[number])
    tasks = [cluster.state.task(key) for key in keys]
    assert [task and task.node for task in tasks] == ["node-1", "node-0"]
    assert cluster.held == {}
    cluster.remove(begun[0])
    assert list(cluster.held) == keys[1:]


def test_a_plan_is_not_written_on_a_pod_that_has_changed_since() -> None:
    found = gates.world(nodes=1, gpus=1, gates=None)
    found.submit([gates.gang("a", 1, gpus=1)])
    planner = GatePlanner(Profile(build.policy(), CATALOGUE), found.store.everything)
    pod = found.store.get(POD, "default", "a-0")
    planner.notice(POD, pod, is_gone=False)
    (write,) = planner.plan(found.now)
    found.store.patch(POD, "default", "a-0", {"metadata": {"labels": {"by": "somebody"}}})
    with pytest.raises(Conflict):
        found.store.patch(write.kind, write.namespace, write.name, write.patch)


def test_a_plan_that_nobody_can_read_is_made_anew() -> None:
    found = gates.world(nodes=2, gpus=1)
    worlds.submit(found, gates.gang("a", 2, gpus=1, notes={"phalanx.dev/plan": "node-7"}))
    worlds.run(found, 10)
    assert len(gates.placed(found, "a")) == 2


def test_asked_again_the_lifter_writes_nothing() -> None:
    found = gates.world(nodes=2, gpus=1)
    worlds.submit(found, gates.gang("a", 2, gpus=1))
    worlds.run(found, 10)
    lifter = GateLifter()
    keys = {key for pod in found.store.items(POD) for key in lifter.concerns(found.store, POD, pod)}
    assert len(keys) == 1
    assert not [write for key in keys for write in lifter.reconcile(found.store, key).writes]


def test_a_pod_whose_node_goes_before_it_is_placed_is_made_anew_if_somebody_owns_it() -> None:
    found = gates.world(nodes=2, gpus=1, gates=None)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "job-uid", "controller": True}
    pods = gates.gang("a", 2, gpus=1)
    pods[0]["metadata"]["ownerReferences"] = [owner]
    found.submit([pods])
    chosen = plans({TaskKey("default/a-0"): "gone", TaskKey("default/a-1"): "gone"}, found.now)
    for name in ("a-0", "a-1"):
        found.store.patch(POD, "default", name, written(chosen[TaskKey(f"default/{name}")]))
    worlds.run(found, 30)
    assert [pod["metadata"]["name"] for pod in found.store.items(POD)] == ["a-1"]


def test_lifting_takes_only_our_gate() -> None:
    pod = gates.pod("a-0", "a", 1, spec={"schedulingGates": [{"name": "example.com/x"}, {"name": GATE}]})
    pod["metadata"]["resourceVersion"] = "1"
    plan = plans({TaskKey("default/a-0"): "n"}, 0.0)[TaskKey("default/a-0")]
    assert gates_of(merged(pod, GangGates().lifted(pod, plan))) == ["example.com/x"]


# --- time ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("afterwards", "left"), [("wait", ["a-0", "a-1"]), ("delete", [])])
def test_a_gang_that_waits_too_long_goes_on_waiting_or_is_deleted(afterwards: str, left: list[str]) -> None:
    found = gates.world(nodes=1, gpus=1)
    worlds.submit(found, gates.gang("a", 2, gpus=1, notes={TIMEOUT: "10m", AFTERWARDS: afterwards}))
    worlds.run(found, 599)
    assert held(found) == ["a-0", "a-1"]
    worlds.run(found, 601)
    assert held(found) == left


def test_a_gang_that_runs_is_left_alone_after_its_time() -> None:
    found = gates.world(nodes=2, gpus=1)
    worlds.submit(found, gates.gang("a", 2, gpus=1, notes={TIMEOUT: "10m", AFTERWARDS: "delete"}))
    worlds.run(found, 1000)
    assert len(gates.placed(found, "a")) == 2


def test_a_gang_that_stays_broken_is_deleted_with_what_runs() -> None:
    found = gates.world(nodes=2, gpus=1)
    worlds.submit(found, gates.gang("a", 2, gpus=1, notes={TIMEOUT: "10m", AFTERWARDS: "delete"}))
    worlds.run(found, 100)
    found.store.delete(POD, "default", "a-0", grace=0)
    found.submit([[build.pod("other", gpus=1, on="")]])
    worlds.run(found, 110)
    worlds.submit(found, [gates.pod("a-9", "a", 2, gpus=1, notes={TIMEOUT: "10m", AFTERWARDS: "delete"})], at=120)
    worlds.run(found, 1000)
    assert list(worlds.phases(found.store)) == ["other"]


# --- broken pods ---------------------------------------------------------------------------------------------------------


BROKEN = {
    (MIN_MEMBER, "many"): "'many' is not a whole number; write one, such as '4'",
    (MIN_MEMBER, "0"): "'0' is too small; write how many pods start together, 1 or more",
    (TIMEOUT, "soon"): "'soon' is not a duration; write for example '10m'",
    (AFTERWARDS, "explode"): "'explode' is unknown; write 'wait' or 'delete'",
}


@pytest.mark.parametrize("mark", BROKEN, ids=" ".join)
def test_a_broken_annotation_sets_its_pod_aside_alone(mark: tuple[str, str]) -> None:
    found = gates.world(nodes=2, gpus=1)
    worlds.submit(found, [gates.pod("bad-0", "bad", 1, gpus=1, notes=dict([mark]))], gates.gang("good", 2, gpus=1))
    worlds.run(found, 10)
    assert found.problems[0] == f"Pod default/bad-0: metadata.annotations['{mark[0]}']: {BROKEN[mark]}"
    assert len(gates.placed(found, "good")) == 2
    assert held(found) == ["bad-0"]


def test_pods_of_which_none_says_how_many_are_told() -> None:
    found = gates.world(nodes=2, gpus=1)
    pods = gates.gang("a", 2, gpus=1)
    for pod in pods:
        del pod["metadata"]["annotations"][MIN_MEMBER]
    worlds.submit(found, pods)
    worlds.run(found, 10)
    text = "2 pods wait in gang default/a, and none says how large it is; write the annotation 'phalanx.dev/min-member' on them"
    assert found.reasons() == {"default/a": text}
    worlds.submit(found, [gates.pod("a-2", "a", 2, gpus=1)], at=20)
    worlds.run(found, 40)
    assert len(gates.placed(found, "a")) == 2


def test_a_broken_pod_is_refused_as_it_is_read() -> None:
    with pytest.raises(SnapshotError, match=r"^Pod default/a-0: metadata.annotations\['phalanx.dev/min-member'\]: 'x' is not"):
        ObjectCluster().put(gates.pod("a-0", "a", "x"))


def test_a_gang_goes_with_its_last_pod() -> None:
    cluster = ObjectCluster()
    pods = gates.gang("a", 2)
    for pod in pods:
        cluster.put(pod)
    cluster.remove(pods[0])
    assert GangKey("default/a") in cluster.snapshot(0).gangs
    cluster.remove(pods[1])
    assert cluster.snapshot(0).gangs == {}
