"""Room for whole gangs with the fewest victims: who goes, for whom, and what the message says."""

from collections.abc import Iterable

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle, Document
from tests.support import crowded_clusters as crowds

POLICY = policy_of_profile("phalanx")


def crowd(*, nodes: int = 1, cpu: int = 4, queues: Iterable[Document] = ()) -> Cluster:
    cluster = build.cluster(nodes=nodes, policy=POLICY, cpu=cpu).submit(crowds.classes())
    return cluster.submit(queues or [build.queue("blue")])


def running(name: str, places: Iterable[int], *, minimum: int = 1, cpu: int = 1, **spec: object) -> list[Document]:
    """Return a gang with one task on each of these nodes."""
    group = build.pod_group(name, min_member=minimum, phase="Running", **{"queue": "blue", **spec})
    return [group, *(build.pod(f"{name}-{n}", group=name, on=f"node-{place}", cpu=cpu) for n, place in enumerate(places))]


def urgent(name: str = "urgent", *, tasks: int = 1, cpu: int = 4, queue: str = "blue", priority: str = "high") -> list[Document]:
    gang = build.gang(name, tasks=tasks, queue=queue, cpu=cpu)
    gang[0]["spec"]["priorityClassName"] = priority
    return gang


def evicted(cycle: Cycle) -> list[str]:
    return sorted(key.removeprefix("default/") for key in cycle.decisions.evictions)


def message(cycle: Cycle, task: str) -> str:
    return str(cycle.answer["evictions"][f"default/{task}"]["message"])


def test_the_message_says_for_whom_by_which_right_and_what_becomes_of_the_gang() -> None:
    cluster = crowd().submit(running("old", [0, 0], minimum=1, priorityClassName="low"), urgent(cpu=3))
    cycle = cluster.run_cycle()
    entry = cycle.answer["evictions"]["default/old-0"]
    assert (entry["action"], entry["for"]) == ("gangpreempt", "default/urgent")
    assert entry["message"] == (
        "preempted by gang default/urgent (priority 10 over 1): its gang can spare it,"
        " and without its room default/urgent cannot start"
    )


def test_the_message_of_a_whole_gang_says_so() -> None:
    cycle = crowd().submit(running("old", [0, 0], minimum=2), urgent(cpu=3)).run_cycle()
    assert evicted(cycle) == ["old-0", "old-1"]
    assert "its whole gang goes" in message(cycle, "old-0")


def test_the_message_of_a_reclaim_names_both_queues() -> None:
    queues = [build.queue(name, deserved={"cpu": 2}) for name in ("blue", "green")]
    cluster = crowd(queues=queues).submit(running("old", [0, 0, 0, 0], minimum=1), urgent(cpu=2, queue="green"))
    cycle = cluster.run_cycle()
    assert cycle.answer["evictions"]["default/old-0"]["action"] == "gangreclaim"
    assert message(cycle, "old-0").startswith(
        "reclaimed for gang default/urgent (queue blue has more than it deserves, queue green less): its gang can spare it"
    )


def test_nobody_goes_when_not_every_task_of_the_gang_gets_a_place() -> None:
    cycle = crowd(nodes=2).submit(running("old", [0, 1]), urgent(tasks=3)).run_cycle()
    assert (evicted(cycle), cycle.pipelined) == ([], [])


def test_what_a_gang_could_spare_goes_with_it_when_it_goes_as_a_whole() -> None:
    cycle = crowd(nodes=2).submit(running("old", [0, 0, 1], minimum=2), urgent(tasks=2)).run_cycle()
    assert evicted(cycle) == ["old-0", "old-1", "old-2"]


def test_of_several_tasks_a_gang_gives_the_one_that_is_enough_and_stays_whole() -> None:
    gang = [*running("old", [0], minimum=1, cpu=1), build.pod("old-9", group="old", on="node-0", cpu=3)]
    cycle = crowd().submit(gang, urgent(cpu=3)).run_cycle()
    assert evicted(cycle) == ["old-9"]


def test_a_whole_gang_goes_rather_than_two() -> None:
    one = running("one", [0, 0], minimum=2, cpu=2)
    cluster = crowd(nodes=2).submit(one, running("two", [1], cpu=2), running("three", [1], cpu=2), urgent())
    assert evicted(cluster.run_cycle()) == ["one-0", "one-1"]


def test_less_important_gangs_go_first() -> None:
    low = running("zeta", [1], cpu=4, priorityClassName="low")
    cycle = crowd(nodes=2).submit(running("alpha", [0], cpu=4, priorityClassName="middle"), low, urgent()).run_cycle()
    assert evicted(cycle) == ["zeta-0"]


def protect_pod(gang: list[Document]) -> None:
    gang[1]["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"


def protect_group(gang: list[Document]) -> None:
    gang[0]["metadata"]["annotations"] = {"volcano.sh/preemptable": "false"}


def make_critical(gang: list[Document]) -> None:
    gang[1]["spec"]["priorityClassName"] = "system-node-critical"


def move_to_kube_system(gang: list[Document]) -> None:
    for item in gang:
        item["metadata"]["namespace"] = "kube-system"


@pytest.mark.parametrize("protect", [protect_pod, protect_group, make_critical, move_to_kube_system])
def test_a_gang_with_a_protected_task_does_not_go(protect: object) -> None:
    gang = running("old", [0, 0], minimum=2, cpu=2)
    assert callable(protect)
    protect(gang)
    assert evicted(crowd().submit(gang, urgent()).run_cycle()) == []


def test_a_gang_that_was_pipelined_in_this_session_does_not_lose_its_others() -> None:
    queues = [build.queue("blue", deserved={"cpu": 1}), build.queue("green", deserved={"cpu": 7})]
    mine = [*running("mine", [0], minimum=2, cpu=2, priorityClassName="high"), build.pod("mine-9", group="mine", cpu=4)]
    cluster = crowd(nodes=2, queues=queues).submit(running("old", [1], cpu=4), mine, urgent(cpu=3, queue="green"))
    cycle = cluster.run_cycle()
    assert evicted(cycle) == ["old-0"]
    assert cycle.pipelined == [("mine-9", "node-1")]


def test_a_full_queue_makes_room_in_its_quota_with_several_victims_of_one_node() -> None:
    cluster = crowd(nodes=2, cpu=8, queues=[build.queue("blue", capability={"cpu": 4})])
    cycle = cluster.submit(*(running(f"old-{n}", [0]) for n in range(4)), urgent(cpu=3)).run_cycle()
    assert evicted(cycle) == ["old-0-0", "old-1-0", "old-2-0"]
    assert len(cycle.pipelined) == 1


def limited(*parts: Iterable[Document], cpu: int = 8) -> Cycle:
    """Run a cycle for a gang that asks for a GPU, in a queue that may use one and uses it; the node has room for more."""
    cluster = build.cluster(nodes=1, policy=POLICY, cpu=16, gpus=8).submit(crowds.classes())
    queue = build.queue("blue", capability={"cpu": cpu, "nvidia.com/gpu": 1})
    gang = build.gang("urgent", tasks=1, queue="blue", cpu=1, gpus=1)
    gang[0]["spec"]["priorityClassName"] = "high"
    return cluster.submit(queue, *parts, gang).run_cycle()


def on_a_gpu(name: str, priority: str, *, cpu: int = 0) -> list[Document]:
    group = build.pod_group(name, min_member=1, phase="Running", queue="blue", priorityClassName=priority)
    return [group, build.pod(f"{name}-0", group=name, on="node-0", cpu=cpu, gpus=1)]


def test_a_search_ends_when_whoever_may_go_holds_nothing_that_the_queue_is_short_of() -> None:
    cycle = limited(on_a_gpu("guard", "high"), running("old", [0, 0], priorityClassName="low"))
    assert (evicted(cycle), cycle.binds, cycle.pipelined) == ([], [], [])


def test_a_less_important_gang_that_does_not_help_the_queue_stays() -> None:
    cycle = limited(running("old", [0, 0], priorityClassName="low"), on_a_gpu("sweep", "middle"))
    assert evicted(cycle) == ["sweep-0"]
    assert cycle.pipelined == [("urgent-0", "node-0")]


def test_a_queue_that_is_short_of_two_resources_makes_room_in_both() -> None:
    cycle = limited(running("old", [0], priorityClassName="low"), on_a_gpu("sweep", "middle"), cpu=1)
    assert evicted(cycle) == ["old-0", "sweep-0"]
    assert cycle.pipelined == [("urgent-0", "node-0")]


def test_a_full_parent_makes_room_with_victims_of_the_queue_beside() -> None:
    queues = [
        build.queue("team", capability={"cpu": 4}),
        build.queue("blue", parent="team", deserved={"cpu": 2}),
        build.queue("green", parent="team", deserved={"cpu": 2}),
    ]
    cycle = crowd(cpu=8, queues=queues).submit(running("old", [0, 0, 0, 0]), urgent(cpu=2, queue="green")).run_cycle()
    assert evicted(cycle) == ["old-0", "old-1"]
    assert len(cycle.pipelined) == 1


def test_tasks_that_need_no_room_do_not_keep_a_gang_from_its_place() -> None:
    gang = urgent(tasks=2)
    gang[1]["spec"]["containers"] = [{"name": "main"}]
    cycle = crowd().submit(running("old", [0], cpu=4), gang).run_cycle()
    assert evicted(cycle) == ["old-0"]


def mixed(cpus: list[int], *, minimum: int) -> list[Document]:
    gang = urgent(tasks=1, cpu=cpus[0])
    gang[0]["spec"]["minMember"] = minimum
    return [*gang, *(build.pod(f"urgent-{n}", group="urgent", cpu=cpu) for n, cpu in enumerate(cpus) if n)]


def test_tasks_of_several_sizes_are_packed_in_the_one_way_that_needs_no_victim() -> None:
    cluster = build.cluster(nodes=1, policy=POLICY, cpu=6).submit(
        crowds.classes(), build.queue("blue"), build.node("node-1", cpu=7)
    )
    cycle = cluster.submit(mixed([4, 3, 2, 2, 2], minimum=5)).run_cycle()
    assert evicted(cycle) == []
    assert len(cycle.binds) == 5


def test_a_gang_starts_with_its_small_tasks_when_the_large_one_has_no_place() -> None:
    cycle = crowd().submit(running("old", [0], cpu=4), mixed([9, 2, 2], minimum=2)).run_cycle()
    assert evicted(cycle) == ["old-0"]
    assert [task for task, _ in cycle.pipelined] == ["urgent-1", "urgent-2"]


def test_victims_of_a_gang_that_found_no_room_are_there_for_the_next() -> None:
    cluster = crowd(nodes=2).submit(running("one", [0, 1], cpu=4), urgent("large", tasks=3), urgent("small", tasks=2))
    cycle = cluster.run_cycle()
    assert {eviction.preemptor for eviction in cycle.decisions.evictions.values()} == {"default/small"}
    assert evicted(cycle) == ["one-0", "one-1"]


def test_a_queue_gives_no_more_than_what_it_has_beyond_its_part() -> None:
    queues = [build.queue("blue", deserved={"cpu": 3}), build.queue("green", deserved={"cpu": 4})]
    cluster = crowd(queues=queues).submit(running("one", [0, 0], minimum=2), running("two", [0, 0], minimum=2))
    assert evicted(cluster.submit(urgent(cpu=4, queue="green")).run_cycle()) == []
