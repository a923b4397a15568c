"""What is said about a session at each verbosity."""

from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.live import session_log as narration
from phalanx.live.logs import Line
from phalanx.live.session_log import Narrator
from phalanx.model.listing import listed
from phalanx.session.cycle import run_cycle
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot
from phalanx.testing import build

TIERS = [["priority", "gang"], ["predicates", "nodeorder"]]
SIMPLE, PREEMPTING = build.policy(TIERS, "allocate"), build.policy(TIERS, "allocate, preempt")


def decided(cluster: build.Cluster, verbosity: int) -> tuple[Snapshot, Decisions]:
    snapshot = cluster.objects.snapshot(0.0)
    return snapshot, run_cycle(snapshot, cluster.policy, CATALOGUE, trace_level=verbosity)


def told(cluster: build.Cluster, verbosity: int, narrator: Narrator | None = None) -> list[Line]:
    teller = narrator or Narrator()
    return list(teller.lines(*decided(cluster, verbosity), cycle=7, verbosity=verbosity))


def texts(lines: list[Line], verbosity: int) -> list[str]:
    return [line.text for line in lines if line.verbosity == verbosity]


def inqueue(documents: list[Any]) -> list[Any]:
    documents[0]["status"]["phase"] = "Inqueue"
    return documents


@pytest.fixture
def two() -> build.Cluster:
    """A gang that starts and one for which a node lacks."""
    found = build.cluster(nodes=3, cpu=4, policy=SIMPLE)
    return found.submit(inqueue(build.gang("bert", tasks=1, cpu=4)), inqueue(build.gang("gpt", tasks=3, cpu=4)))


def test_a_silent_log_says_nothing_and_asks_nobody(two: build.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(narration, "gang_status")
    assert told(two, 0) == []


def test_the_sentences_of_gangs_are_not_made_below_their_level(two: build.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(narration, "why")
    assert [line.verbosity for line in told(two, 1)] == [1]


def test_a_session_has_one_line(two: build.Cluster) -> None:
    assert [(line.text, line.fields) for line in told(two, 1)] == [
        ("session: 1 gang started, 1 waiting, 1 pod to bind, 0 pipelined, 0 to evict", {"cycle": 7})
    ]


def test_a_gang_that_runs_and_could_grow_says_so() -> None:
    cluster = build.cluster(nodes=1, cpu=4, policy=SIMPLE)
    cluster.submit(inqueue(build.gang("bert", tasks=2, min_member=1, cpu=4)))
    starts, grows = texts(told(cluster, 2), 2)
    assert starts == "gang default/bert starts: 1 pod of 2 with a place"
    assert grows.startswith("gang default/bert: starts with its minimum of 1; 1 more task waits: ")


def test_a_session_that_decides_nothing_has_none() -> None:
    assert told(build.cluster(policy=SIMPLE), 5)[-1:] != []  # actions are entered and left
    assert told(build.cluster(policy=SIMPLE), 2) == []


def test_gangs_have_a_line_each(two: build.Cluster) -> None:
    lines = told(two, 2)
    assert texts(lines, 2) == [
        "gang default/bert starts: 1 pod of 1 with a place",
        "gang default/gpt waits: 2 of 3 tasks fit; 1 more place for 4 cpu needed"
        " (3 nodes: 3 lack cpu (8 of 12 are free, 12 needed))",
    ]
    assert lines[0].fields == {"gang": "default/bert", "queue": "default", "cycle": 7}


def test_why_a_gang_waits_is_said_again_only_when_it_is_new_or_asked_for(two: build.Cluster) -> None:
    narrator = Narrator()
    assert len([text for text in texts(told(two, 2, narrator), 2) if "waits" in text]) == 1
    assert [text for text in texts(told(two, 2, narrator), 2) if "waits" in text] == []
    assert len([text for text in texts(told(two, 3, narrator), 3) if "gpt waits" in text]) == 1
    two.remove("Node", "node-2")
    assert [text for text in texts(told(two, 2, narrator), 2) if "waits" in text] == []
    two.submit(build.node(name, cpu=4, spec={"unschedulable": True}) for name in ("node-0", "node-1"))
    assert len([text for text in texts(told(two, 2, narrator), 2) if "gpt waits" in text]) == 1


def test_a_gang_that_comes_back_under_its_old_name_is_told_anew(two: build.Cluster) -> None:
    narrator = Narrator()
    told(two, 2, narrator)
    group = two.document("PodGroup", "default/gpt")
    told(two.remove("PodGroup", "gpt"), 2, narrator)
    assert any("gpt waits" in text for text in texts(told(two.submit(group), 2, narrator), 2))


def test_evictions_are_told_by_gang_and_for_whom() -> None:
    cluster = build.cluster(nodes=2, cpu=4, policy=PREEMPTING)
    cluster.submit({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100})
    cluster.submit(
        build.pod_group("low", phase="Running"), [build.pod(f"low-{n}", group="low", on=f"node-{n}", cpu=4) for n in range(2)]
    )
    group, pod = inqueue(build.gang("high", cpu=4))
    group["spec"]["priorityClassName"] = pod["spec"]["priorityClassName"] = "high"
    pod["spec"]["priority"] = 100
    lines = told(cluster.submit(group, pod), 2)
    evicted = [line for line in lines if "evicted by" in line.text]
    assert [line.text for line in evicted] == ["1 pod of gang default/low evicted by preempt for default/high: default/low-0"]
    assert evicted[0].fields == {"gang": "default/low", "pods": ["default/low-0"], "cycle": 7}
    assert "gang default/high waits: 1 of 1 task is pipelined onto room that leaving pods still hold" in texts(lines, 2)


def test_from_level_three_on_the_course_is_told(two: build.Cluster) -> None:
    lines = told(two, 3)
    assert "try gang default/gpt of queue default" in texts(lines, 3)
    placed = next(line for line in lines if line.text == "allocated task default/bert-0 on node node-0")
    about = {"gang": "default/bert", "pod": "default/bert-0", "node": "node-0", "cycle": 7}
    assert placed.fields == {**about, "is_trial": False}
    assert "commit of tasks: 1 to allocate (default/bert-0)" in texts(lines, 3)
    assert {line.verbosity for line in lines} == {1, 2, 3}


def test_level_three_says_how_many_nodes_refused_a_task(two: build.Cluster) -> None:
    assert "task default/gpt-2: 0/3 nodes are unavailable: 3 Insufficient cpu." in texts(told(two, 3), 3)


def test_level_five_names_the_nodes_and_the_scores(two: build.Cluster) -> None:
    lines = told(two, 5)
    assert "enter action allocate" in texts(lines, 5)
    assert "1 node(s) refuse default/gpt-0, Insufficient cpu: node-0" in texts(lines, 5)
    refused = next(line for line in lines if "refuse default/gpt-0" in line.text)
    about = {"gang": "default/gpt", "pod": "default/gpt-0", "cycle": 7}
    assert refused.fields == {**about, "reason": "Insufficient cpu", "nodes": ["node-0"]}
    assert any(text.startswith("best scores for default/gpt-0: node-1 ") for text in texts(lines, 5))


def test_a_log_of_one_gang_says_nothing_of_others(two: build.Cluster) -> None:
    snapshot = two.objects.snapshot(0.0)
    decisions = run_cycle(snapshot, two.policy, CATALOGUE, trace_level=5, traced_gangs=["default/gpt"])
    lines = list(Narrator(["default/gpt"]).lines(snapshot, decisions, cycle=7, verbosity=5))
    own = [line for line in lines if "come before gang default/gpt" not in line.text]
    assert not [line.text for line in own if "bert" in line.text or line.fields.get("gang") == "default/bert"]
    assert "try gang default/gpt of queue default" in texts(lines, 3)
    assert "enter action allocate" in texts(lines, 5)
    assert any(text.startswith("gang default/gpt waits: ") for text in texts(lines, 2))


def test_long_lists_are_cut() -> None:
    assert listed([f"n{number}" for number in range(5)]) == "n0, n1, n2, n3, n4"
    assert listed([f"n{number}" for number in range(8)]) == "n0, n1, n2, n3, n4 and 3 more"
