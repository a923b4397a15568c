"""A sentence is stable while its cause is: what counts as a new reason to wait, and what only counts anew."""

from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.controllers.controller import RecordEvent
from phalanx.explain.cause_key import cause_of, cause_of_text
from phalanx.model.kinds import NODE
from phalanx.scheduling.events import SessionEvents
from phalanx.session.cycle import run_cycle
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import sim_worlds as worlds

POLICY = build.policy(tiers=(("priority", "gang"), ("predicates", "nodeorder")))


def cause(*objects: Any, nodes: int = 2, **offers: Any) -> Any:
    cluster = build.cluster(nodes=nodes, policy=POLICY, **offers).submit(*objects)
    outcomes = cluster.run_cycle().decisions.outcomes
    outcome = next(outcome for outcome in outcomes if outcome.state.key == "default/train")
    return cause_of(outcome, cluster.objects.snapshot(0.0))


TRAIN = build.gang("train", tasks=3, gpus=1)


def test_a_cause_that_is_known_is_not_put_into_words() -> None:
    cluster = build.cluster(nodes=2, policy=POLICY, gpus=1).submit(TRAIN)
    snapshot = cluster.objects.snapshot(0.0)
    (outcome,) = run_cycle(snapshot, POLICY, CATALOGUE).outcomes
    cause_of(outcome, snapshot)
    assert outcome.aftermath is not None
    assert ("why", "default/train") not in outcome.aftermath.memo


CORDONED = {"unschedulable": True}


@pytest.mark.parametrize(
    "churn",
    [
        [build.pod("other", on="node-0", gpus=1)],
        [build.node("n9", cpu=1)],
        [build.node("n9", gpus=4, spec=CORDONED)],
        [build.node("n9", gpus=4, spec={"taints": [{"key": "team", "effect": "NoSchedule"}]})],
        [build.pod("other", on="node-0", cpu=8)],
    ],
)
def test_other_pods_and_nodes_that_do_not_suit_leave_the_cause_as_it_is(churn: list[Any]) -> None:
    assert cause(TRAIN, gpus=1) == cause(TRAIN, churn, gpus=1)


@pytest.mark.parametrize(
    "change",
    [
        [build.node(f"node-{number}", gpus=1, spec={"taints": [{"key": "team", "effect": "NoSchedule"}]}) for number in range(2)],
        [build.node(f"node-{number}", gpus=1, spec=CORDONED) for number in range(2)],
        build.gang("train", tasks=3, gpus=2),
        [build.pod("train-2", group="train", gpus=1, spec={"schedulingGates": [{"name": "quota"}]})],
        [build.pod_group("train", min_member=3, queue="nowhere")],
    ],
)
def test_what_has_to_be_changed_makes_another_cause(change: list[Any]) -> None:
    assert cause(TRAIN, gpus=1) != cause(TRAIN, change, gpus=1)


def test_another_value_of_a_taint_is_another_cause() -> None:
    def node(value: str) -> Any:
        return build.node("a", gpus=8, spec={"taints": [{"key": "team", "value": value, "effect": "NoSchedule"}]})

    assert cause(TRAIN, node("ml"), nodes=0) != cause(TRAIN, node("web"), nodes=0)


def test_numbers_of_a_sentence_do_not_count_but_those_in_names_do() -> None:
    assert cause_of_text("1 of 3 tasks fit; 20 s left of 4Gi") == cause_of_text("2 of 3 tasks fit; 1 s left of 512Mi")
    for left, right in (("node-1", "node-2"), ("zone=1", "zone=2"), ("10.0.0.1", "10.0.0.2")):
        assert cause_of_text(f"on {left}") != cause_of_text(f"on {right}")


def watched() -> tuple[World, list[RecordEvent]]:
    there = worlds.world(nodes=2, cpu=2, policy=policy_of_profile("volcano"), is_served=True)
    SessionEvents(there.port, there.loop, behind_gates=dict)
    found: list[RecordEvent] = []
    there.on_event(found.append)
    return there, found


def test_a_hundred_sessions_with_unrelated_churn_give_one_event_and_a_changed_cause_another() -> None:
    there, events = watched()
    sessions: list[int] = []
    there.loop.decided.append(lambda snapshot, decisions: sessions.append(len(decisions.outcomes)))
    worlds.submit(there, build.gang("train", tasks=3, cpu=2))
    for number in range(100):
        worlds.submit(there, worlds.gang(f"short-{number}", tasks=1, cpu=1, duration="2s"), at=5 + 5 * number)
        worlds.submit(there, [build.node(f"small-{number}", cpu=0)], at=7 + 5 * number)
    worlds.run(there, 520)
    told = [event for event in events if event.reason == "FailedScheduling" and event.about["metadata"]["name"] == "train"]
    assert len(sessions) >= 100
    assert len(told) == 1
    for name in ("node-0", "node-1"):
        there.store.patch(NODE, "", name, {"spec": {"unschedulable": True}})
    worlds.run(there, 540)
    assert (
        len([event for event in events if event.reason == "FailedScheduling" and event.about["metadata"]["name"] == "train"]) == 2
    )
