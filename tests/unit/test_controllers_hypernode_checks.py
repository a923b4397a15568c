"""HyperNodes say what is wrong with them: an event once for each cause, and a condition as long as it holds."""

from typing import Any

from phalanx.controllers.hypernode_checks import HyperNodeChecks
from phalanx.model.kinds import HYPERNODE, NODE
from phalanx.testing import build
from tests.support.controller_store import Stage

MISSING = "HyperNode rack: spec.members: Node 'n1' does not exist; create it, or remove the member"


def stage(*documents: dict[str, Any]) -> Stage:
    found = Stage(HyperNodeChecks())
    found.make(*documents)
    found.run(3)
    return found


def go_on(found: Stage, seconds: float = 3) -> None:
    found.run(found.time.now - found.start + seconds)


def conditions(found: Stage, name: str = "rack") -> list[dict[str, Any]]:
    return list((found.find(HYPERNODE, name).get("status") or {}).get("conditions") or ())


def broken() -> dict[str, Any]:
    return build.hypernode("rack", tier=1, members=["node-a", "n1"])


def test_a_problem_is_an_event_and_a_condition_once() -> None:
    found = stage(build.node("node-a"), broken())
    (condition,) = conditions(found)
    assert (condition["type"], condition["status"], condition["reason"]) == ("Misconfigured", "True", "InvalidMembers")
    assert condition["message"] == MISSING
    assert [(event.reason, event.message, event.is_warning) for event in found.told] == [("Misconfigured", MISSING, True)]
    found.store.patch(HYPERNODE, "", "rack", {"metadata": {"labels": {"seen": "yes"}}})
    go_on(found)
    assert len(found.told) == 1
    assert found.unsettled() == []


def test_the_condition_goes_when_the_member_comes_and_others_stay() -> None:
    found = stage(build.node("node-a"), broken())
    there = conditions(found)
    found.set_status(HYPERNODE, "rack", {"conditions": [{"type": "Probed", "status": "True"}, *there]})
    go_on(found)
    new = build.node("n1")
    new["metadata"]["creationTimestamp"] = "2026-01-01T00:00:05Z"
    found.make(new)
    go_on(found)
    assert [item["type"] for item in conditions(found)] == ["Probed"]
    assert len(found.told) == 1


def test_the_condition_comes_when_a_member_goes() -> None:
    found = stage(build.node("node-a"), build.node("n1"), broken())
    assert (conditions(found), found.told) == ([], [])
    found.store.delete(NODE, "", "n1")
    go_on(found)
    assert [item["message"] for item in conditions(found)] == [MISSING]


def test_reports_of_nodes_that_are_there_cost_nothing() -> None:
    found = stage(build.node("node-a"), broken())
    old = {**build.node("node-a"), "metadata": {"name": "node-a", "creationTimestamp": "2020-01-01T00:00:00Z"}}
    assert list(HyperNodeChecks().concerns(found.store, NODE, old)) == []
    empty = Stage(HyperNodeChecks())
    assert list(HyperNodeChecks().concerns(empty.store, NODE, old)) == []


def test_one_that_cannot_be_read_does_not_hide_the_others() -> None:
    unreadable = build.hypernode("bad", tier=1, members=["x"])
    unreadable["spec"]["members"][0]["selector"] = {"regexMatch": {"pattern": "("}}
    found = stage(build.node("node-a"), broken(), unreadable)
    assert [item["message"] for item in conditions(found)] == [MISSING]
    (condition,) = conditions(found, "bad")
    assert condition["message"].startswith("HyperNode bad: spec.members: regexMatch.pattern '(' cannot be read")
