"""What sessions leave on groups, the next ones build on: since when a gang is stale, above all."""

from phalanx.controllers.controller import RecordEvent
from phalanx.explain.events import eviction_text
from phalanx.explain.quarantine import quarantine_condition
from phalanx.model.kinds import GROUP_BY_DIALECT, HYPERNODE, POD, Document
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.session.decision import Eviction
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import kai_objects as kai
from tests.support import same_gang as speech
from tests.support import sim_worlds as worlds

HEALING = build.policy((("gang",), ("predicates",)), "allocate, heal")


def group(world: World, dialect: str) -> Document:
    return world.store.get(GROUP_BY_DIALECT[dialect], "default", "train")


def losing_a_node(world: World, gang: list[Document]) -> World:
    """Return a world in which a gang loses one of its two pods for good after 100 seconds."""
    worlds.submit(world, gang)
    world.plan(100, lambda: world.faults.die("node-1"))
    return world


def healing() -> World:
    return losing_a_node(worlds.world(nodes=2, gpus=1, policy=HEALING), worlds.gang("train", tasks=2, gpus=1))


def kai_world() -> World:
    world = worlds.world(nodes=2, cpu=8, gpus=1, policy=kai.policy())
    world.load([kai.queue("default", parent="", quota=-1), kai.queue("a", quota=2), kai.priority_class("train")])
    return losing_a_node(world, [*kai.gang("train", tasks=2, gpus=1)])


def test_a_group_that_was_deleted_and_made_anew_gets_its_phase_anew() -> None:
    world, (first, *_) = worlds.world(nodes=1), worlds.gang("train", tasks=1)
    for moment in (0, 10):
        world.store.create(first)
        worlds.run(world, moment + 5)
        assert group(world, "volcano")["status"]["phase"] == "Inqueue"
        world.store.delete(GROUP_BY_DIALECT["volcano"], "default", "train")


def test_the_condition_of_a_stale_gang_keeps_its_time() -> None:
    world = healing()
    for moment in (110, 150):
        worlds.run(world, moment)
        (stale,) = [item for item in group(world, "volcano")["status"]["conditions"] if item["type"] == "Stale"]
        assert stale["lastTransitionTime"] == "2026-01-01T00:01:40Z"


def test_what_is_left_of_a_stale_gang_goes_after_its_grace_and_not_before() -> None:
    world = healing()
    worlds.run(world, 155)
    assert worlds.phases(world.store) == {"train-0": "Running", "train-1": "Pending"}
    worlds.run(world, 230)
    assert worlds.phases(world.store) == {"train-0": "Pending", "train-1": "Pending"}


def test_kai_stamps_a_group_that_started_and_one_that_is_stale_and_takes_the_second_stamp_away() -> None:
    world = kai_world()
    worlds.run(world, 150)
    stamps = group(world, "kai")["metadata"]["annotations"]
    assert stamps[kai.LAST_START] == "2026-01-01T00:00:00Z"
    assert stamps[kai.STALE_SINCE].startswith("2026-01-01T00:01:4")
    world.plan(155, lambda: world.faults.come_back("node-1"))
    worlds.run(world, 170)
    assert kai.STALE_SINCE not in group(world, "kai")["metadata"]["annotations"]


def test_kai_evicts_what_is_left_of_a_stale_gang_after_its_grace() -> None:
    world = kai_world()
    worlds.run(world, 155)
    assert worlds.phases(world.store)["train-0"] == "Running"
    worlds.run(world, 250)
    assert worlds.phases(world.store)["train-0"] == "Pending"


def test_a_kai_job_that_tries_each_pool_once_is_not_tried_again_where_it_failed() -> None:
    world = worlds.world(nodes=1, cpu=8, gpus=1, policy=kai.policy())
    world.load([kai.queue("default", parent="", quota=-1), kai.queue("a", quota=2), kai.priority_class("train")])
    worlds.submit(world, kai.gang("train", tasks=2, gpus=1, schedulingBackoff=1))
    worlds.submit(world, kai.gang("again", tasks=2, gpus=1))
    world.plan(60, lambda: world.load([build.node(f"late-{number}", cpu=8, gpus=1) for number in range(3)]))
    worlds.run(world, 50)
    (attempt,) = group(world, "kai")["status"]["schedulingConditions"]
    assert (attempt["type"], attempt["nodePool"], attempt["transitionID"]) == ("UnschedulableOnNodePool", "default", "1")
    worlds.run(world, 200)
    phases = worlds.phases(world.store)
    assert {name: phases[f"{name}-0"] for name in ("train", "again")} == {"train": "Pending", "again": "Running"}
    again = world.store.get(GROUP_BY_DIALECT["kai"], "default", "again")
    assert again["status"]["schedulingConditions"] == []


def test_a_group_of_volcano_counts_its_pods() -> None:
    world = worlds.world(nodes=2, gpus=1)
    worlds.submit(world, worlds.gang("train", tasks=2, gpus=1))
    worlds.run(world, 5)
    status = group(world, "volcano")["status"]
    assert {word: status[word] for word in ("running", "succeeded", "failed")} == {"running": 2, "succeeded": 0, "failed": 0}


def test_the_counts_of_a_running_group_follow_its_members() -> None:
    world = worlds.world(nodes=3, gpus=1)
    worlds.submit(world, worlds.gang("train", tasks=3, min_member=1, gpus=1))
    worlds.run(world, 10)
    assert counts(world) == (3, 0, 0)
    for pod, phase in (("train-1", "Succeeded"), ("train-2", "Failed")):
        world.store.patch(POD, "default", pod, {"status": {"phase": phase}}, is_status=True)
    worlds.run(world, 20)
    assert counts(world) == (1, 1, 1)


def counts(world: World) -> tuple[int, ...]:
    status = group(world, "volcano")["status"]
    return tuple(status[name] for name in ("running", "succeeded", "failed"))


def test_a_gang_that_lost_a_member_says_of_which_role_whoever_decides_about_it() -> None:
    world = worlds.world(nodes=2, gpus=1, policy=HEALING)
    members = [build.in_group("train", build.pod(f"train-{number}", gpus=1), role="worker") for number in range(2)]
    worlds.submit(world, [build.pod_group("train", min_member=2, minTaskMember={"worker": 2}), *members])
    world.plan(100, lambda: world.store.delete(POD, "default", "train-1"))
    worlds.run(world, 110)
    (aside,) = [item for item in group(world, "volcano")["status"]["conditions"] if item["type"] == "Quarantined"]
    assert aside["message"].startswith("too few pods (worker: 1 of 2); create")


def test_a_group_is_not_set_aside_by_the_session_that_admits_it_upon_which_its_pods_are_made() -> None:
    cluster = build.cluster(nodes=3, policy=build.policy(actions="enqueue, allocate"))
    cluster.submit(build.gang("train", tasks=3)[:-1])
    for phase, reason in (("Pending", None), ("Inqueue", "NotEnoughPods")):
        snapshot = cluster.objects.snapshot(0.0)
        assert snapshot.gangs[GangKey("default/train")].phase == phase
        cycle = cluster.run_cycle()
        found = quarantine_condition(cycle.decisions.outcomes[0], snapshot)
        assert (found and found.reason) == reason
        cluster.carry_out(cycle)


def test_the_event_of_a_pod_that_goes_for_nobody_names_nobody() -> None:
    gone = Eviction(Task(TaskKey("default/train-0"), "uid", Shape()), "heal", "", "below its minimum")
    assert eviction_text(gone) == "By heal: below its minimum"


def test_a_group_that_nobody_admits_is_set_aside_by_the_first_session() -> None:
    cluster = build.cluster(nodes=3, policy=build.policy(actions="enqueue, allocate"))
    cluster.submit(sigs.gang("train", tasks=3)[:-1])
    found = quarantine_condition(cluster.run_cycle().decisions.outcomes[0], cluster.objects.snapshot(0.0))
    assert found is not None
    assert found.reason == "NotEnoughPods"


def test_the_pods_of_a_gang_that_is_set_aside_are_told_once_and_their_conditions_count_on() -> None:
    world = speech.cluster(nodes=2, gpus=8)
    told: list[RecordEvent] = []
    world.on_event(told.append)
    pods = speech.gang("kueue", "train", tasks=4, gpus=1)
    for number, pod in enumerate(pods[:3]):
        worlds.submit(world, [pod], at=10 * number)
    worlds.run(world, 40)
    assert sorted(item.about["metadata"]["name"] for item in told if item.reason == "Quarantined") == [
        "train-0",
        "train-1",
        "train-2",
    ]
    (condition,) = [
        item for item in world.store.get(POD, "default", "train-0")["status"]["conditions"] if "3 of 4" in item["message"]
    ]
    assert condition["type"] == "PodScheduled"


def test_pods_say_why_they_wait_where_somebody_reads_it() -> None:
    for is_read in (True, False):
        world = worlds.world(nodes=1, gpus=1, is_served=is_read)
        worlds.submit(world, worlds.gang("train", tasks=2, gpus=1))
        worlds.run(world, 5)
        pod = world.store.get(POD, "default", "train-1")
        reasons = [item["reason"] for item in pod["status"].get("conditions", ()) if item["type"] == "PodScheduled"]
        assert reasons == (["Unschedulable"] if is_read else [])


def test_what_has_no_effect_in_a_group_is_recorded_once() -> None:
    world, told = worlds.world(nodes=1, cpu=4, policy=HEALING), list[RecordEvent]()
    world.on_event(told.append)
    first, *pods = worlds.gang("train", tasks=3, cpu=2)
    first["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    worlds.submit(world, [first, *pods])
    worlds.run(world, 300)
    assert [(event.reason, event.message) for event in told if event.is_warning and event.reason == "NoEffect"] == [
        (
            "NoEffect",
            "PodGroup default/train: spec.networkTopology is hard, but has no effect:"
            " no plugin of the configuration heeds HyperNodes; add network-topology-aware",
        )
    ]


def test_a_gang_whose_constraint_means_no_tier_is_quarantined_and_starts_when_the_tier_has_come() -> None:
    strict = build.policy(
        (("gang",), ("predicates", {"name": "network-topology-aware", "arguments": {"unresolvedTier": "refuse"}}))
    )
    world, (first, *pods) = worlds.world(nodes=1, cpu=8, policy=strict), worlds.gang("train", tasks=2, cpu=1)
    first["spec"]["networkTopology"] = {"mode": "hard", "highestTierName": "leaf"}
    world.load([build.hypernode("rack", tier=1, members=["node-0"])])
    worlds.submit(world, [first, *pods])
    worlds.run(world, 10)
    (found,) = [item for item in group(world, "volcano")["status"]["conditions"] if item["type"] == "Quarantined"]
    assert (found["reason"], "none has a tierName" in found["message"]) == ("Invalid", True)
    world.store.patch(HYPERNODE, "", "rack", {"spec": {"tierName": "leaf"}})
    worlds.run(world, 20)
    assert [item["spec"].get("nodeName") for item in world.store.items(POD)] == ["node-0", "node-0"]
