"""The extender: what another process may decide, and what happens when it does not answer."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.dialects.extender import decode, encode
from phalanx.errors import ConfigError
from phalanx.plugins.extender import VERBS, Answer, ExtenderPlugin, Question
from phalanx.session.cycle import Catalogue, run_cycle
from phalanx.session.decision import Decisions
from phalanx.testing import build
from phalanx.testing.build import Cluster

Process = Callable[[Question], Answer]
SILENT = Answer(problem="gone fishing")


class Ears:
    """A process that answers what it is told to, and remembers every question."""

    def __init__(self, **answers: Answer | Process) -> None:
        self.answers, self.heard = answers, list[tuple[str, dict[str, Any]]]()

    def __call__(self, question: Question) -> Answer:
        self.heard.append((question.verb, msgspec.json.decode(encode(question))))
        answer = self.answers[question.verb]
        return answer if isinstance(answer, Answer) else answer(question)

    def catalogue(self) -> Catalogue:
        factory = partial(ExtenderPlugin, connect=lambda endpoint: self)
        return replace(CATALOGUE, plugins={**CATALOGUE.plugins, "extender": factory})


def cluster(*verbs: str, actions: str = "enqueue, allocate", **arguments: Any) -> Cluster:
    settings = {"extender.urlPrefix": "http://host", **{f"extender.{verb}Verb": verb for verb in verbs}}
    more = {f"extender.{key}": value for key, value in arguments.items()}
    plugins: list[str | dict[str, Any]] = [
        "priority",
        "gang",
        "predicates",
        {"name": "extender", "arguments": {**settings, **more}},
    ]
    return build.cluster(nodes=3, policy=build.policy([plugins], actions=actions))


def decide(found: Cluster, ears: Ears) -> Decisions:
    return run_cycle(found.objects.snapshot(0.0), found.policy, ears.catalogue())


def places(found: Cluster, ears: Ears) -> list[str]:
    found.submit(build.pod_group("train", minResources={"cpu": 4}), build.pod("train-0", group="train", cpu=4))
    return list(decide(found, ears).binds.values())


def only(*allowed: str) -> Process:
    def answer(question: Question) -> Answer:
        name = question.session.node_name(question.nodes[0])
        return Answer() if name in allowed else Answer(message="node(s) are haunted", code=3)

    return answer


def test_a_node_that_the_process_refuses_is_not_used() -> None:
    assert places(cluster("predicate"), Ears(predicate=only("node-2"))) == ["node-2"]


def test_the_reason_of_a_refusal_is_told() -> None:
    found, ears = cluster("predicate"), Ears(predicate=only())
    found.submit(build.gang("train", cpu=4))
    (outcome,) = decide(found, ears).outcomes
    assert "3 node(s) are haunted" in getattr(outcome.state.tasks[0].error, "text", "")


def test_the_process_is_asked_only_about_nodes_with_room() -> None:
    found, ears = cluster("predicate"), Ears(predicate=Answer())
    found.submit(build.pod("old", on="node-0", cpu=8))
    places(found, ears)
    assert {body["node"]["Name"] for _, body in ears.heard} == {"node-1", "node-2"}


def test_the_process_scores_nodes() -> None:
    assert places(cluster("prioritize"), Ears(prioritize=Answer(score_by_node={"node-1": 7.5}))) == ["node-1"]


@pytest.mark.parametrize("verb", ["predicate", "prioritize", "jobReady", "jobEnqueueable", "queueOverused"])
@pytest.mark.parametrize("ignorable", [True, False])
def test_no_answer_refuses_unless_it_may_be_ignored(verb: str, ignorable: bool) -> None:
    assert len(places(cluster(verb, ignorable=ignorable), Ears(**{verb: SILENT}))) == int(ignorable)


@pytest.mark.parametrize("verb", ["predicate", "prioritize"])
def test_without_a_line_nobody_answers_and_the_reason_says_so(verb: str) -> None:
    found = cluster(verb).submit(build.gang("train", cpu=4))
    found.run_cycle()
    assert "there is no connection to other processes here" in found.why("train")


@pytest.mark.parametrize(
    ("verb", "answer", "started"),
    [
        ("jobEnqueueable", Answer(vote=1), 1),
        ("jobEnqueueable", Answer(vote=0), 1),
        ("jobEnqueueable", Answer(vote=-1), 0),
        ("jobReady", Answer(is_true=True), 1),
        ("jobReady", Answer(is_true=False), 0),
        ("queueOverused", Answer(is_true=False), 1),
        ("queueOverused", Answer(is_true=True), 0),
    ],
)
def test_the_process_may_hold_gangs_and_queues_back(verb: str, answer: Answer, started: int) -> None:
    assert len(places(cluster(verb), Ears(**{verb: answer}))) == started


def with_victims(verb: str, **arguments: Any) -> Cluster:
    """Every node is full of a task that a more important gang of the same queue may push out."""
    found = cluster(verb, actions="enqueue, allocate, preempt", **arguments)
    found.submit(build.pod_group("old", min_member=0, phase="Running"))
    found.submit({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10})
    for number in range(3):
        found.submit(build.pod(f"old-{number}", group="old", on=f"node-{number}", cpu=8))
    return found.submit(build.pod_group("new", phase="Inqueue", priorityClassName="high"), build.pod("new-0", group="new", cpu=8))


@pytest.mark.parametrize(
    ("answer", "victims"),
    [
        (Answer(vote=1, victim_uids=frozenset({"old-1"})), ["default/old-1"]),
        (Answer(vote=0), ["default/old-0"]),
        (Answer(vote=1), []),
        (SILENT, []),
    ],
)
def test_the_process_chooses_among_victims(answer: Answer, victims: list[str]) -> None:
    assert list(decide(with_victims("preemptable"), Ears(preemptable=answer)).evictions) == victims


def test_victims_are_chosen_without_a_process_that_may_be_ignored() -> None:
    assert len(decide(with_victims("preemptable", ignorable=True), Ears(preemptable=SILENT)).evictions) == 1


def test_the_process_is_told_of_places_taken_and_given_back() -> None:
    ears = Ears(allocateFunc=Answer(), deallocateFunc=Answer())
    found = cluster("allocateFunc", "deallocateFunc").submit(build.gang("wide", tasks=7, cpu=4))
    decide(found, ears)
    told = [(verb, body["task"]["Name"]) for verb, body in ears.heard]
    taken = [("allocateFunc", f"wide-{number}") for number in range(6)]
    assert told == taken + [("deallocateFunc", name) for _, name in reversed(taken)]
    assert all(body["task"]["NodeName"] for _, body in ears.heard)


def test_the_process_is_told_when_a_session_begins_and_ends() -> None:
    ears = Ears(onSessionOpen=Answer(), onSessionClose=SILENT)
    assert len(places(cluster("onSessionOpen", "onSessionClose"), ears)) == 1
    (_, opened), (_, closed) = ears.heard
    assert sorted(opened["Nodes"]) == ["node-0", "node-1", "node-2"]
    assert list(opened["Jobs"]) == ["default/train"]
    assert closed == {}


def test_only_tasks_with_managed_resources_are_asked_about() -> None:
    ears = Ears(predicate=only("node-2"))
    assert places(cluster("predicate", managedResources=["nvidia.com/gpu"]), ears) == ["node-0"]
    assert ears.heard == []


def test_questions_look_as_in_volcano() -> None:
    ears = Ears(predicate=only("node-2"))
    places(cluster("predicate"), ears)
    _, body = ears.heard[0]
    assert body["task"]["Resreq"] == {"MilliCPU": 4000, "Memory": 0, "ScalarResources": {"pods": 1}}
    assert body["task"]["Pod"]["metadata"]["name"] == "train-0"
    assert body["node"]["Idle"]["MilliCPU"] == 8000


@pytest.mark.parametrize(
    ("verb", "text", "answer"),
    [
        ("predicate", b"", Answer()),
        ("predicate", b'{"status": "no", "code": 3}', Answer(message="no", code=3)),
        ("predicate", b'{"status": ""}', Answer()),
        ("prioritize", b'{"nodeScore": {"a": 1}}', Answer(score_by_node={"a": 1.0})),
        ("prioritize", b'{"errorMessage": "tired"}', Answer(problem="tired")),
        ("prioritize", b"{}", Answer(problem="its answer to prioritize has no nodeScore")),
        ("preemptable", b'{"status": 1, "victims": [{"UID": "x"}]}', Answer(vote=1, victim_uids=frozenset({"x"}))),
        ("jobEnqueueable", b'{"status": -1}', Answer(vote=-1)),
        ("jobReady", b'{"status": false}', Answer()),
        ("queueOverused", b'{"overused": true}', Answer(is_true=True)),
    ],
)
def test_answers_are_read_as_volcano_reads_them(verb: str, text: bytes, answer: Answer) -> None:
    assert decode(verb, text) == answer


def test_an_answer_that_cannot_be_read_is_none() -> None:
    assert decode("predicate", b"<html>").problem.startswith("its answer to predicate cannot be read")


@pytest.mark.parametrize("address", ["", "file:///etc", "host:80"])
def test_an_address_must_be_one_of_http(address: str) -> None:
    with pytest.raises(ConfigError, match=r"extender\.urlPrefix"):
        cluster("predicate", urlPrefix=address).run_cycle()


def test_every_verb_has_a_body() -> None:
    found = cluster(*VERBS)
    ears = Ears(**dict.fromkeys(VERBS, Answer(is_true=False, vote=1)))
    places(found, ears)
    assert {"onSessionOpen", "jobEnqueueable", "queueOverused", "predicate", "prioritize"} <= {verb for verb, _ in ears.heard}
