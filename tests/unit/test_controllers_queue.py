"""Queues open and close, and are counted."""

from typing import Any

import pytest

from phalanx.cli.run import CONTROLLER_SETS
from phalanx.controllers.builtin import standard_controllers
from phalanx.controllers.first_queues import FirstQueues
from phalanx.controllers.queue import CLOSED_BY_PARENT, QueueController
from phalanx.controllers.queue_status import QueueStatusController
from phalanx.model.kinds import COMMAND, GROUP_BY_DIALECT, POD, QUEUE
from phalanx.sim.sshkeys import pair_for
from phalanx.testing import build
from tests.support.controller_store import Stage

GROUP = GROUP_BY_DIALECT["volcano"]


def stage() -> Stage:
    return Stage(FirstQueues(), QueueController(), QueueStatusController())


def command(action: str, queue: str, name: str = "do", **target: str) -> dict[str, Any]:
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"namespace": "default", "name": name},
        "action": action, "target": {"apiVersion": QUEUE.api_version, "kind": "Queue", "name": queue, **target},
    }  # fmt: skip


def order(found: Stage, action: str, queue: str) -> None:
    found.make(command(action, queue))
    found.run(found.time.now - found.start + 2)


def states(found: Stage) -> dict[str, str]:
    return {queue["metadata"]["name"]: queue["status"]["state"] for queue in found.store.items(QUEUE)}


def test_default_and_root_are_made_where_there_are_objects_of_volcano() -> None:
    found = stage()
    found.make(build.node("a"))
    found.run(5)
    assert found.names(QUEUE) == []
    found.make(build.pod_group("train"))
    found.run(10)
    assert states(found) == {"default": "Open", "root": "Open"}
    assert found.unsettled() == []


@pytest.mark.parametrize("first", [build.pod_group("train"), build.queue("research"), {
    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"namespace": "default", "name": "train"},
    "spec": {"tasks": [{"name": "a", "replicas": 1, "template": {"spec": {"containers": []}}}]},
}], ids=["group", "queue", "job"])  # fmt: skip
def test_default_and_root_are_made_beside_the_controllers_of_volcano(first: dict[str, Any]) -> None:
    others = [item for item in standard_controllers(pair_for, has_admission=True) if item.name not in CONTROLLER_SETS["volcano"]]
    found = Stage(*others)
    found.make(first)
    found.run(5)
    assert {"default", "root"} <= set(found.names(QUEUE))


def test_default_comes_back_when_somebody_deleted_it_before_that_was_refused() -> None:
    found, leaving = stage(), build.queue("default")
    leaving["metadata"] |= {"uid": "old", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/last"]}
    found.make(leaving)
    found.run(5)
    found.store.patch(QUEUE, "", "default", {"metadata": {"finalizers": None}})
    found.run(10)
    assert sorted(found.names(QUEUE)) == ["default", "root"]
    assert found.find(QUEUE, "default")["metadata"]["uid"] != "old"


def test_an_empty_queue_closes_at_once_and_opens_again() -> None:
    found = stage()
    found.make(build.queue("research"))
    order(found, "CloseQueue", "research")
    assert (states(found)["research"], found.names(COMMAND)) == ("Closed", [])
    order(found, "OpenQueue", "research")
    assert states(found)["research"] == "Open"
    assert [(event.reason, event.message) for event in found.told] == [
        ("CloseQueue", "is Closed: no more gangs are admitted"), ("OpenQueue", "is open: gangs are admitted again"),
    ]  # fmt: skip
    assert found.unsettled() == []


def test_a_queue_with_groups_is_closing_until_the_last_has_gone() -> None:
    found = stage()
    found.make(build.queue("research"), build.pod_group("a", queue="research"), build.pod_group("b", queue="research"))
    order(found, "CloseQueue", "research")
    assert states(found)["research"] == "Closing"
    found.store.delete(GROUP, "default", "a")
    found.run(10)
    assert states(found)["research"] == "Closing"
    found.store.delete(GROUP, "default", "b")
    found.run(20)
    assert states(found)["research"] == "Closed"
    found.make(build.pod_group("late", queue="research"))
    found.run(30)
    assert states(found)["research"] == "Closing"
    assert found.unsettled() == []


def family() -> Stage:
    found = stage()
    found.make(
        build.queue("company"), build.queue("research", parent="company"), build.queue("vision", parent="research"),
        build.queue("sales", parent="company"),
    )  # fmt: skip
    return found


def test_a_parent_closes_and_opens_its_children_but_not_those_that_were_closed_before() -> None:
    found = family()
    order(found, "CloseQueue", "sales")
    order(found, "CloseQueue", "company")
    assert {name for name, state in states(found).items() if state == "Closed"} == {"company", "research", "vision", "sales"}
    assert found.find(QUEUE, "vision")["metadata"]["annotations"] == {CLOSED_BY_PARENT: "true"}
    assert found.unsettled() == []
    order(found, "OpenQueue", "company")
    assert {name for name, state in states(found).items() if state == "Closed"} == {"sales"}
    assert CLOSED_BY_PARENT not in found.find(QUEUE, "vision")["metadata"]["annotations"]
    assert found.unsettled() == []


def test_a_child_that_is_closed_by_hand_too_stays_closed() -> None:
    found = family()
    for queue in ("company", "research"):
        order(found, "CloseQueue", queue)
    order(found, "OpenQueue", "company")
    assert (states(found)["research"], states(found)["vision"], states(found)["sales"]) == ("Closed", "Closed", "Open")


def test_a_child_cannot_be_opened_under_a_closed_parent() -> None:
    found = family()
    order(found, "CloseQueue", "company")
    order(found, "OpenQueue", "research")
    assert states(found)["research"] == "Closed"
    last = found.told[-1]
    assert (last.reason, last.is_warning) == ("OpenQueue", True)
    assert last.message == "stays Closed: its parent company is Closed; open company first"


def test_a_new_child_of_a_closed_parent_is_closed() -> None:
    found = family()
    order(found, "CloseQueue", "company")
    found.make(build.queue("new", parent="company"))
    found.run(20)
    assert states(found)["new"] == "Closed"


def test_a_circle_of_parents_closes_nobody_for_ever() -> None:
    found = stage()
    found.make(build.queue("a", parent="b"), build.queue("b", parent="a"), build.queue("own", parent="own"))
    order(found, "CloseQueue", "a")
    assert (states(found)["a"], states(found)["b"]) == ("Closed", "Open")
    order(found, "OpenQueue", "a")
    assert (states(found)["a"], states(found)["own"]) == ("Open", "Open")
    assert found.unsettled() == []


def test_commands_that_cannot_be_followed_are_taken_and_answered() -> None:
    found = stage()
    found.make(build.queue("research"), build.queue("root"))
    for text, queue, more in (("Explode", "research", {}), ("CloseQueue", "root", {}), ("CloseQueue", "research", {"uid": "old"})):
        found.make(command(text, queue, **more))
        found.run(found.time.now - found.start + 2)
    order(found, "CloseQueue", "nowhere")
    assert found.names(COMMAND) == []
    assert [event.message for event in found.told] == [
        "action: 'Explode' is unknown for a queue; write OpenQueue or CloseQueue",
        "stays open: it is above all other queues; close those below it",
        "the command is for an earlier queue of this name, with uid old; write a new one without target.uid",
        "there is no queue 'nowhere'; create it first, or name another one in target.name",
    ]
    assert states(found)["research"] == "Open"


def test_a_broken_command_is_told_and_taken() -> None:
    found = stage()
    found.make(build.queue("research"))
    found.make({**command("CloseQueue", "research"), "action": 7})
    found.run(2)
    assert (found.names(COMMAND), found.problems) == ([], [])
    assert found.told[-1].message == "Command default/do: action: expected `str | null`, got `int`"


def test_commands_for_jobs_are_left_to_others() -> None:
    found = stage()
    found.make(command("AbortJob", "train", apiVersion="batch.volcano.sh/v1alpha1", kind="Job"))
    found.run(2)
    assert found.names(COMMAND) == ["do"]


def test_a_state_that_nobody_knows_is_unknown_and_can_be_left() -> None:
    found = stage()
    found.make({**build.queue("research"), "status": {"state": "Ajar"}})
    found.run(2)
    assert states(found)["research"] == "Unknown"
    order(found, "OpenQueue", "research")
    assert states(found)["research"] == "Open"


# --- counts --------------------------------------------------------------------------------------------------------------


def counted(found: Stage, queue: str) -> dict[str, Any]:
    return {name: value for name, value in found.find(QUEUE, queue)["status"].items() if name != "state" and value}


def test_groups_are_counted_by_phase_and_pods_with_a_place_by_what_they_ask_for() -> None:
    found = stage()
    found.make(
        build.queue("research"), build.pod_group("a", queue="research", phase="Running"), build.pod_group("b", queue="research"),
        build.pod_group("c", phase="Inqueue"), build.pod("a-0", group="a", on="node-0", cpu="1500m", memory="1Gi", gpus=1),
        build.pod("a-1", group="a", on="node-0", cpu=2), build.pod("a-2", group="a", cpu=64), build.pod("x", on="node-0", cpu=64),
    )  # fmt: skip
    found.run(2)
    assert counted(found, "research") == {
        "running": 1, "pending": 1, "allocated": {"cpu": "3500m", "memory": "1073741824", "nvidia.com/gpu": "1", "pods": "2"},
    }  # fmt: skip
    assert counted(found, "default") == {"inqueue": 1}
    assert found.unsettled() == []
    found.set_status(POD, "a-0", {"phase": "Succeeded"})
    found.set_status(GROUP, "b", {"phase": "Completed"})
    found.run(10)
    assert counted(found, "research") == {"running": 1, "completed": 1, "allocated": {"cpu": "2", "pods": "1"}}


def test_a_parent_holds_what_its_children_hold() -> None:
    found = family()
    found.make(build.pod_group("a", queue="vision"), build.pod("a-0", group="a", on="n", cpu=1))
    found.run(2)
    for queue in ("vision", "research", "company", "root"):
        assert counted(found, queue)["allocated"] == {"cpu": "1", "pods": "1"}
    assert counted(found, "company").get("pending") is None
    assert counted(found, "sales") == {}


def test_a_pod_that_cannot_be_read_is_left_out_alone() -> None:
    found = stage()
    found.make(build.pod_group("a"), build.pod("a-0", group="a", on="n", cpu="lots"), build.pod("a-1", group="a", on="n", cpu=1))
    found.run(2)
    assert counted(found, "default")["allocated"] == {"cpu": "1", "pods": "1"}


def test_many_changes_are_counted_once() -> None:
    found = stage()
    found.make(build.queue("default"), build.queue("root"))
    found.run(5)
    before = found.store.history.version
    for number in range(50):
        found.make(build.pod_group(f"g-{number}"))
    found.run(10)
    assert found.store.history.version - before == 50 + 1
    assert counted(found, "default") == {"pending": 50}
