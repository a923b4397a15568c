"""What is said of reserved starts: to the gang that has one, to those that it holds back, and to programs."""

import pytest

from phalanx.actions.allocate import AllocateAction
from phalanx.actions.reservations import Reservations
from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey
from phalanx.session.cycle import open_session
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle, Document
from tests.support.reserving_policy import reserving_policy

NOW = 1_700_000_000
PHALANX = reserving_policy()


def gang(
    name: str, tasks: int, gpus: int, *, on: str = "", runs: str = "", queue: str = "default", ago: int = 600
) -> list[Document]:
    """Return a gang that came a while ago; it runs since then if `on` names a node, and says how long if `runs` does."""
    group, *pods = build.gang(name, tasks=tasks, queue=queue, cpu=0, gpus=gpus)
    for document in (group, *pods):
        document["metadata"]["creationTimestamp"] = moment_text(NOW - ago)
    if runs:
        group["metadata"]["annotations"] = {"phalanx.dev/duration": runs}
    for pod in pods if on else ():
        pod["spec"]["nodeName"], group["status"] = on, {"phase": "Running"}
        pod["status"] = {"phase": "Running", "startTime": moment_text(NOW - ago)}
    return [group, *pods]


def decided(
    *gangs: list[Document],
    nodes: int = 2,
    policy: Policy = PHALANX,
    queues: tuple[Document, ...] = (),
    reserved: tuple[str, ...] = (),
) -> Cycle:
    """Return a session; `reserved` had a reserved start in the one before."""
    found: Cluster = build.cluster(nodes=nodes, policy=policy, gpus=8).submit(*queues, *gangs)
    return found.run_cycle(now=NOW, reserved=tuple(map(GangKey, reserved)))


def test_the_first_in_line_hears_when_and_where_it_starts_and_others_hear_for_whom_room_is_kept() -> None:
    cycle = decided(
        gang("runs", 1, 8, on="node-0", runs="1h"), gang("large", 2, 8, ago=500), gang("short", 1, 4, runs="20m", ago=400),
        gang("long", 1, 4, runs="5h", ago=300),
    )  # fmt: skip
    at = moment_text(NOW + 3000)
    assert [pod for pod, _ in cycle.binds] == ["short-0"]
    assert cycle.why("large").endswith(f"reserved from {at} on node-0, node-1; 1 gang goes ahead meanwhile")
    assert cycle.why("long").endswith(f"room for it is kept for gang default/large from {at} on")
    assert cycle.answer["reservations"] == {
        "default/large": {
            "start": at, "nodes": ["node-0", "node-1"], "domain": "", "drained": False, "ahead": ["default/short"],
            "heldBack": ["default/long"],
        }
    }  # fmt: skip


def test_a_gang_that_does_not_touch_the_room_goes_ahead_however_long_it_runs() -> None:
    cycle = decided(gang("runs", 1, 8, on="node-0", runs="1h"), gang("large", 2, 8, ago=500), gang("long", 1, 4, ago=300), nodes=3)
    assert sorted(pod for pod, _ in cycle.binds) == ["large-0", "large-1"]
    cycle = decided(gang("runs", 1, 8, on="node-0", runs="1h"), gang("large", 2, 6, ago=500), gang("long", 1, 2, ago=300))
    assert [pod for pod, _ in cycle.binds] == ["long-0"]


def test_a_queue_at_its_limit_has_no_reserved_start() -> None:
    limited = build.queue("small", capability={"nvidia.com/gpu": 8})
    cycle = decided(
        gang("runs", 1, 8, on="node-0", runs="1h", queue="small"), gang("large", 2, 8, queue="small"), queues=(limited,)
    )  # fmt: skip
    assert "reservations" not in cycle.answer


def test_nobody_has_a_reserved_start_where_nobody_says_when_room_is_there() -> None:
    cycle = decided(gang("runs", 1, 8, on="node-0"), gang("large", 2, 8), gang("long", 1, 4, ago=300))
    assert "reservations" not in cycle.answer
    assert [pod for pod, _ in cycle.binds] == ["long-0"]


def test_after_the_bound_nodes_are_drained_for_it() -> None:
    cycle = decided(gang("runs", 1, 8, on="node-0"), gang("large", 2, 8, ago=13 * 3600), gang("long", 1, 4, ago=300))
    assert cycle.binds == []
    assert cycle.why("large").endswith("node-0, node-1 drained for it")
    assert cycle.why("long").endswith("room for it is kept for gang default/large until it starts")


def test_after_as_long_again_others_have_a_turn_on_nodes_that_were_drained_in_vain() -> None:
    for hours, is_drained in ((11, False), (13, True), (23, True), (25, False), (37, True), (229, True), (12 * 21 + 1, False)):
        cycle = decided(gang("runs", 1, 8, on="node-0"), gang("large", 2, 8, ago=hours * 3600), gang("long", 1, 4, ago=300))
        assert (cycle.binds == []) is is_drained, hours
        if not is_drained and hours < 240:
            assert cycle.decisions.again == NOW + (hours // 12 + 1) * 12 * 3600 - hours * 3600


def test_before_the_bound_another_session_is_due_when_it_is_reached() -> None:
    cycle = decided(gang("runs", 1, 8, on="node-0"), gang("large", 2, 8, ago=3600))
    assert cycle.decisions.again == NOW + 11 * 3600


def test_two_gangs_have_reserved_starts_one_behind_the_other() -> None:
    plugins = tuple(
        tuple(PluginPolicy("reservation", arguments={"depth": 2}) if each.name == "reservation" else each for each in tier)
        for tier in PHALANX.tiers
    )
    cycle = decided(
        gang("runs", 1, 8, on="node-0", runs="1h"), gang("first", 2, 8, ago=500, runs="2h"), gang("second", 2, 8, ago=400),
        policy=Policy(("allocate",), plugins, victim_rule="all-agree", best_effort_members="with-gang"),
    )  # fmt: skip
    starts = {gang: each["start"] for gang, each in cycle.answer["reservations"].items()}
    assert starts == {"default/first": moment_text(NOW + 3000), "default/second": moment_text(NOW + 3000 + 7200)}


def test_whoever_evicts_leaves_all_that_is_reserved_and_others_only_what_nobody_releases_in_time() -> None:
    """A gang that would end in time may be a victim: then its room is there, and must not go to the one that evicted it."""
    parts = gang("runs", 1, 8, on="node-0", runs="1h"), gang("large", 2, 8, ago=500), gang("long", 1, 4, ago=300)
    found = build.cluster(nodes=2, policy=PHALANX, gpus=8).submit(*parts)
    session = open_session(found.objects.snapshot(NOW), PHALANX, CATALOGUE)
    AllocateAction({}).run(session)
    reservations, row = Reservations.of(session), session.snapshot.space.names.index("nvidia.com/gpu")
    assert reservations is not None
    free, held = session.ledger.future[row].copy(), []
    for evicts in (False, True):
        reservations.hold_for(session.gangs[GangKey("default/long")], evicts=evicts)
        held.append((free - session.ledger.future[row]).tolist())
    reservations.release()
    assert held == [[0, 8000], [8000, 8000]]
    assert session.ledger.future[row].tolist() == free.tolist()


def urgent(documents: list[Document]) -> list[Document]:
    """Return the same gang, more important than others."""
    documents[0]["spec"]["priorityClassName"] = "high"
    return documents


HIGH: Document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}


def test_who_is_more_important_need_not_leave_room_to_a_reserved_start() -> None:
    runs, large = gang("runs", 1, 8, on="node-0", runs="1h"), gang("large", 2, 8, ago=500)
    cycle = decided(runs, large, urgent(gang("long", 1, 4, ago=300)), queues=(HIGH,), reserved=("default/large",))
    assert [pod for pod, _ in cycle.binds] == ["long-0"]


def test_one_start_is_reserved_for_each_priority() -> None:
    runs, large = gang("runs", 1, 8, on="node-0", runs="1h"), gang("large", 2, 8, runs="1h", ago=500)
    cycle = decided(runs, large, urgent(gang("larger", 2, 8, runs="2h", ago=300)), queues=(HIGH,), reserved=("default/large",))
    starts = {name: entry["start"] for name, entry in cycle.answer["reservations"].items()}
    assert starts == {"default/larger": moment_text(NOW + 3000), "default/large": moment_text(NOW + 3000 + 7200)}


def test_a_gang_that_had_a_reserved_start_has_it_before_who_came_first() -> None:
    runs, first = gang("runs", 1, 8, on="node-0", runs="1h"), gang("first", 2, 8, ago=550)
    second = gang("second", 2, 8, ago=500)
    for reserved, holder in (((), "default/first"), (("default/second",), "default/second")):
        cycle = decided(runs, first, second, reserved=reserved)
        assert list(cycle.answer["reservations"]) == [holder]


@pytest.mark.parametrize(
    ("has", "ago", "holder"),
    [(1, 13 * 3600, "default/rich"), (1, 600, "default/poor"), (16, 13 * 3600, "default/poor")],
    ids=["below its share", "came just now", "has its share"],
)
def test_who_has_waited_too_long_has_the_next_reserved_start_if_its_queue_is_below_its_share(
    has: int, ago: int, holder: str
) -> None:
    runs = [
        gang(f"runs-{node}", 1, min(has, 8), on=f"node-{node}", runs="14h", ago=13 * 3600, queue="rich")
        for node in range(1 + has // 9)
    ]
    rich, poor = gang("rich", 4, 8, ago=ago, queue="rich"), gang("poor", 4, 8, ago=500, queue="poor")
    cycle = decided(*runs, rich, poor, queues=(build.queue("rich"), build.queue("poor")), nodes=4)
    assert list(cycle.answer["reservations"]) == [holder]


@pytest.mark.parametrize(("hours", "reserved"), [(11, False), (12, True)])
def test_in_the_profile_phalanx_only_who_has_waited_for_twelve_hours_has_a_reserved_start(hours: int, reserved: bool) -> None:
    runs, large = gang("runs", 1, 8, on="node-0", runs="15h", ago=13 * 3600), gang("large", 2, 8, ago=hours * 3600)
    cycle = decided(runs, large, gang("long", 1, 4, ago=300), policy=policy_of_profile("phalanx"))
    assert ("reservations" in cycle.answer) is reserved
    assert bool(cycle.binds) is not reserved
    if not reserved:
        assert cycle.decisions.again == NOW + 3600
