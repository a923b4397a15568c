"""What pods that our gate holds back are told on a real cluster."""

from typing import Any

from phalanx.model.conditions import IS_GATED
from phalanx.model.kinds import POD
from phalanx.model.task import TaskKey
from phalanx.scheduling.pod_conditions import BETWEEN_GATED_SECONDS, GatedConditions
from phalanx.store.memory import MemoryStore
from tests.support import gated_gangs as gates

KEY, TEXT = TaskKey("default/train-0"), "1 of 2 tasks fit"


def store(condition: dict[str, Any]) -> MemoryStore:
    """Return a store with a gated pod that says so."""
    found = MemoryStore(lambda: 0.0)
    pod = found.create(gates.pod("train-0", "train", 2))
    found.patch(POD, "default", pod["metadata"]["name"], {"status": {"conditions": [condition]}}, is_status=True)
    return found


def told(found: GatedConditions, text: str, now: float) -> list[dict[str, Any]]:
    return [dict(condition) for write in found.writes({KEY: text}, now) for condition in write.patch["status"]["conditions"]]


def test_a_gated_pod_is_told_why_its_gang_has_no_room_and_still_that_it_is_gated() -> None:
    assert told(GatedConditions(store(dict(IS_GATED))), TEXT, 100.0) == [{**IS_GATED, "message": TEXT}]


def test_a_pod_that_says_it_already_is_left_alone() -> None:
    assert told(GatedConditions(store({**IS_GATED, "message": TEXT})), TEXT, 100.0) == []


def test_a_pod_that_was_told_something_else_is_left_alone() -> None:
    set_aside = {**IS_GATED, "reason": "Undetermined", "message": "queue 'nowhere' does not exist"}
    assert told(GatedConditions(store(set_aside)), TEXT, 100.0) == []


def test_counts_that_change_are_told_now_and_then() -> None:
    found = GatedConditions(store(dict(IS_GATED)))
    assert told(found, TEXT, 100.0) != []
    assert told(found, "0 of 2 tasks fit", 101.0) == []
    assert [item["message"] for item in told(found, "0 of 2 tasks fit", 100.0 + BETWEEN_GATED_SECONDS)] == ["0 of 2 tasks fit"]
