"""A session step by step: its steps are those of the trace, forward and back, and what is read at a step is what it knew there."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.model.resources import CPU, scale_of
from phalanx.plugins.gang import GangPlugin
from phalanx.session.cycle import Profile
from phalanx.session.hooks import HOOKS
from phalanx.session.session import Session
from phalanx.session.trace import TraceEvent
from phalanx.session.trace_operations import NodeRoom, TaskAllocated
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import Verdict
from phalanx.stepping.breakpoints import HOOKS_BY_EVENT
from phalanx.stepping.commands import COMMANDS
from phalanx.stepping.cursor import Cursor
from phalanx.stepping.node_room import room_changes
from phalanx.stepping.place import Place
from phalanx.stepping.stepped_session import SteppedSession
from phalanx.stepping.watches import node_figure
from phalanx.testing import build
from phalanx.testing.build import Cluster
from tests.support import traced_clusters as clusters
from tests.support.stepped_sessions import answers_until_over, data, debugger, stepped
from tests.support.traced_clusters import BREAKS_GANGS, FAMILIES, VOLCANO, events, traced

EVERY = [pytest.param(make, id=f"{family}-{number}") for family, found in FAMILIES.items() for number, make in enumerate(found)]


def starts_and_waits() -> Cluster:
    return clusters.starts_and_waits(VOLCANO)


def makes_room() -> Cluster:
    return clusters.makes_room(BREAKS_GANGS)


# --- steps ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", EVERY)
def test_the_steps_are_those_of_the_trace(make: Callable[[], Cluster]) -> None:
    cursor = Cursor(stepped(make()), level=3)
    for cursor.level in (3, 4, 5):
        found = [step.event for step in cursor.session.steps if cursor.is_shown(step)]
        assert found == traced(make(), level=cursor.level)


@pytest.mark.parametrize("level", [3, 4, 5])
def test_stepping_shows_each_of_them(level: int) -> None:
    held = debugger(makes_room(), level=level)
    found = [answer["trace"]["text"] for answer in answers_until_over(held, "s")]
    assert found == [event.text for event in traced(makes_room(), level=level)]


@pytest.mark.parametrize("make", EVERY)
def test_what_is_read_at_a_step_is_what_the_trace_says(make: Callable[[], Cluster]) -> None:
    session = stepped(make())
    rooms = [(step, step.event) for step in session.steps if isinstance(step.event, NodeRoom)]
    for field, node in {(field, event.node) for _, event in rooms for field in ("idle", "used", "releasing")}:
        values = session.read_all(partial(node_figure, name=node, field=field))
        for step, event in rooms:
            assert event.node != node or values[session.mark(step.number)] == in_units(getattr(event, field))


def in_units(amounts: dict[str, int]) -> dict[str, float]:
    return {name: amount if name == CPU else amount / scale_of(name) for name, amount in amounts.items()}


def test_back_gives_what_forward_gave() -> None:
    held = debugger(makes_room(), level=5)
    held.do("watch node/node-0.future")
    forward = list(answers_until_over(held, "s"))
    held.do(f"goto {held.session.count}")
    backward = [forward[-1], *(data(held, "b") for _ in forward[1:])]
    assert backward[::-1] == forward
    assert data(held, "b") == {"session": "session 1", "steps": held.session.count}


def test_only_steps_of_some_gangs_count() -> None:
    held = debugger(starts_and_waits(), gangs=("default/second",))
    found = [answer["trace"]["text"] for answer in answers_until_over(held, "")]
    assert found == [event.text for event in traced(starts_and_waits(), level=3, gangs=("default/second",))]


def test_the_room_of_a_node_changes_with_each_of_several_equal_tasks() -> None:
    session = stepped(clusters.nodes(VOLCANO, 3, clusters.gang("wide", ["", "", ""], minimum=3)))
    placed = [step for step in session.steps if isinstance(step.event, TaskAllocated)]
    assert len(placed) == 3
    for step in placed:
        assert isinstance(step.event, TaskAllocated)
        idle = room_changes(session, step.number, step.event.node)["idle"]
        assert (idle.before, idle.after) == ({"cpu": 4000, "memory": 32 << 30}, {"cpu": 0, "memory": 32 << 30}), step


def test_a_step_says_to_what_it_belongs() -> None:
    session = stepped(makes_room())
    found = {step.event.event: step.place for step in session.steps}
    assert found["eviction tried"] == Place("", "preempt", "blue", "default/new", {"evict": 1})
    assert found["commit"].undecided == {}
    assert found["leave"] == Place("", "preempt")
    (queues,) = (step for step in session.steps if step.event.event == "queues")
    assert queues.place == Place("", "allocate")


@pytest.mark.parametrize("make", EVERY)
def test_nothing_is_undecided_when_an_action_is_over(make: Callable[[], Cluster]) -> None:
    for step in stepped(make()).steps:
        if step.event.event == "leave":
            assert step.place.undecided == {}, step


def test_every_shard_has_its_steps() -> None:
    from tests.support import kai_objects as kai

    pools = [
        {
            "apiVersion": "kai.scheduler/v1",
            "kind": "SchedulingShard",
            "metadata": {"name": name},
            "spec": {"partitionLabelValue": name},
        }
        for name in ("a", "b")
    ]
    label = "kai.scheduler/node-pool"
    found = kai.cluster(nodes=0).submit(kai.queue("q", quota=8), *pools)
    for name in ("a", "b"):
        found.submit(build.node(f"node-{name}", labels={label: name}, cpu=8, gpus=4))
        group, *pods = kai.gang(f"job-{name}", queue="q", gpus=1)
        for document in (group, *pods):
            document["metadata"].setdefault("labels", {})[label] = name
        found.submit(group, *pods)
    held = debugger(found)
    shown = list(answers_until_over(held, "s"))
    assert {answer["shard"] for answer in shown} == {"a", "b"}
    for name in ("a", "b"):
        rooms = [answer["room"] for answer in shown if answer["trace"]["event"] == "room" and answer["shard"] == name]
        assert {room["node"] for room in rooms} == {f"node-{name}"}
    held.do("restart")
    assert data(held, "watch gang/default/job-b.placed")["value"] == "not in this shard"
    assert data(held, "c")["watches"] == {"gang/default/job-b.placed": {"before": 0, "after": 1}}


class Raising(GangPlugin):
    """Cannot count gangs that are called bad."""

    def gang_valid(self, session: Session, gang: GangState) -> Verdict:
        if "bad" in gang.key:
            raise ZeroDivisionError("of a bad gang")
        return super().gang_valid(session, gang)


def test_a_gang_on_which_the_session_fails_is_left_out_of_its_steps() -> None:
    cluster = build.cluster(nodes=1, cpu=8).submit(build.gang("bad", tasks=1, cpu=1), build.gang("good", tasks=1, cpu=1))
    policy = build.policy([["gang"], ["predicates"]], "allocate")
    catalogue = replace(CATALOGUE, plugins={**CATALOGUE.plugins, "gang": Raising})
    session = SteppedSession(cluster.objects.snapshot(0.0), Profile(policy, catalogue))
    assert list(session.decisions.faults) == ["default/bad"]
    assert {gang for step in session.steps for gang in step.event.gangs} == {"default/good"}
    last = session.mark(session.count)
    assert list(session.read([last], lambda live: list(live.gangs))[last]) == ["default/good"]


# --- stops ---------------------------------------------------------------------------------------------------------------


def stopped_at(held: Any, what: str) -> list[str]:
    assert "error" not in data(held, "restart", f"break {what}")
    return [answer["trace"]["event"] for answer in answers_until_over(held, "c")]


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("action preempt", ["enter"]), ("commit", ["commit"]), ("eviction", ["eviction tried", "evicted"]),
        ("event room made", ["room made"]), ("hook preemptable", ["victims"]), ("hook gang_starving", ["starving"]),
        ("verdict insufficient", ["refused", "no node", "not ready"]), ("queue green", []), ("discard", []),
    ],
)  # fmt: skip
def test_a_breakpoint_stops_where_it_says(what: str, expected: list[str]) -> None:
    found = stopped_at(debugger(makes_room()), what)
    assert list(dict.fromkeys(found)) == expected


def test_a_breakpoint_at_a_discard_stops_at_each() -> None:
    assert stopped_at(debugger(clusters.makes_room_in_vain(BREAKS_GANGS)), "discard") == ["discard"]


def test_a_breakpoint_at_a_gang_or_a_queue_stops_at_the_steps_that_count() -> None:
    held = debugger(starts_and_waits())
    wanted = [event.event for event in traced(starts_and_waits(), level=3) if "default/second" in event.gangs]
    assert stopped_at(held, "gang default/second") == wanted
    held = debugger(starts_and_waits(), level=4)
    assert set(stopped_at(held, "queue blue")) == {
        "queue",
        "added",
        "line",
        "ahead",
        "queues",
        "queue next",
        "gang",
        "no preemptors",
    }


def test_a_breakpoint_at_a_plugin_stops_where_it_has_a_say() -> None:
    assert set(stopped_at(debugger(makes_room()), "plugin gang")) == {"added"}
    assert set(stopped_at(debugger(starts_and_waits()), "plugin nodeorder")) == {"scores"}
    assert set(stopped_at(debugger(makes_room()), "plugin conformance")) == {"victims"}


def test_a_breakpoint_at_a_gang_that_is_not_there_waits_for_a_session_that_has_it() -> None:
    held = debugger(makes_room(), starts_and_waits())
    (line,) = held.do("break gang default/first").lines
    assert line == "breakpoint 1: gang default/first; none in this session, there are: default/new, default/old"
    assert "over" in data(held, "c")
    assert data(held, "next session", "c")["gang"] == "default/first"


def test_breakpoints_are_listed_and_removed() -> None:
    held = debugger(makes_room())
    data(held, "break commit", "break eviction")
    assert data(held, "breaks") == {"breakpoints": {"1": "commit", "2": "eviction"}}
    assert data(held, "delete 1") == {"removed": 1, "text": "commit"}
    assert data(held, "break discard")["breakpoint"] == 3
    assert data(held, "breaks") == {"breakpoints": {"2": "eviction", "3": "discard"}}


def test_hooks_are_named_as_they_are_and_events_too() -> None:
    assert {hook for found in HOOKS_BY_EVENT.values() for hook in found} <= set(HOOKS)
    shown: list[TraceEvent] = [event for family in FAMILIES for event in events(family)]
    assert set(HOOKS_BY_EVENT) <= {event.event for event in shown}


# --- values --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("gang/default/new.pipelined", [0, 1]), ("gang/default/new.missing", [1, 0]), ("gang/default/old.evicted", [0, 1]),
        ("gang/default/old.placed", [1, 0]),
    ],
)  # fmt: skip
def test_a_watched_count_stops_where_it_changes(text: str, values: list[int]) -> None:
    held = debugger(makes_room())
    assert data(held, f"watch {text}") == {"watch": text, "value": values[0]}
    found = [answer["watches"][text] for answer in answers_until_over(held, "c")]
    assert [found[0]["before"], *(change["after"] for change in found)] == values


def test_what_a_queue_has_follows_placements_and_evictions() -> None:
    held = debugger(makes_room())
    assert data(held, "watch queue/blue.allocated")["value"]["cpu"] == 4000
    found = [answer["watches"]["queue/blue.allocated"]["after"].get("cpu", 0) for answer in answers_until_over(held, "c")]
    assert found == [0, 4000]


def test_a_node_that_is_watched_is_shown_at_each_step() -> None:
    held = debugger(starts_and_waits(), level=3)
    held.do("watch node/node-0.idle")
    shown = [answer["watches"]["node/node-0.idle"] for answer in answers_until_over(held, "s")]
    assert shown[0]["before"]["cpu"] == 4000
    assert shown[-1]["after"]["cpu"] == 0
    assert data(held, "unwatch") == {"unwatched": ["node/node-0.idle"]}
    assert data(held, "goto 3")["watches"] == {}


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("nothing", "'nothing' is no command; there are: step, back, "),
        ("watch", "watch; write: node/NAME.idle, queue/NAME.allocated, gang/NAMESPACE/NAME.placed"),
        ("watch node/nowhere.idle", "'nowhere' is no node; there are: node-0"),
        ("watch node/node-0.free", "'free' is no figure of node node-0; there are: idle, used, releasing, future"),
        ("watch queue/blue.share", "'share' is no figure of queue blue; there are: allocated"),
        ("watch gang/default/new.size", "'size' is no figure of gang default/new; there are: placed, pipelined, "),
        ("unwatch node/node-0.idle", "'node/node-0.idle' is not watched"),
        ("break", "break; write: break gang NAMESPACE/NAME, "), ("break commit now", "break commit now; write: break gang "),
        ("break event nothing", "no event 'nothing'; there are: added, ahead, "),
        ("break action reclaim", "no action 'reclaim'; there are: allocate, preempt"),
        ("break hook jobReadyFn", "no hook 'jobReadyFn'; there are: "),
        ("delete 7", "delete 7: no such breakpoint"), ("goto", "goto : write a number from 0, the beginning, to "),
        ("goto 1000", "goto 1000: write a number from 0, the beginning, to "),
        ("level 6", "level 6; write: level 3, level 4, level 5"),
        ("show", "show; write: show node NAME, show queue NAME, show gang NAMESPACE/NAME"),
        ("show node n9", "'n9' is no node; there are: node-0"), ("order", "order; write: order queues, order gangs"),
        ("next", "next; write: next session, step, continue"), ("step 3", "step 3: nothing follows the word step"),
        ("next session", "there is no session after this one; write: restart, goto N, quit"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_said_with_what_can_be_written(line: str, text: str) -> None:
    held = debugger(makes_room())
    answer = held.do(line)
    assert answer.lines[0].startswith(text)
    assert answer.data == {"error": answer.lines[0]}


# --- views ---------------------------------------------------------------------------------------------------------------


def test_a_gang_is_shown_as_it_is_at_a_step() -> None:
    held = debugger(makes_room())
    assert data(held, "show gang default/new")["pending"] == 1
    found = data(held, "break commit", "c", "show gang default/new")
    assert (found["pipelined"], found["tasks"][0]["status"], found["tasks"][0]["node"]) == (1, "Pipelined", "node-0")
    assert data(held, "restart", "show gang default/new")["pipelined"] == 0


def test_a_node_is_shown_with_its_tasks() -> None:
    held = debugger(makes_room())
    assert [task["status"] for task in data(held, "show node node-0")["tasks"]] == ["Running"]
    found = data(held, "break commit", "c", "show node node-0")
    assert {task["task"]: task["status"] for task in found["tasks"]} == {"default/old-0": "Releasing", "default/new-0": "Pipelined"}
    assert found["releasing"]["cpu"] == 4000


def test_a_queue_is_shown_with_its_figures_and_who_waits() -> None:
    found = data(debugger(starts_and_waits()), "show queue blue")
    assert found["waiting"] == ["default/first", "default/second"]
    assert found["deserved"]["cpu"] == 12000


def test_orders_are_shown_with_what_plugins_say() -> None:
    held = debugger(clusters.nodes(VOLCANO, 1, clusters.humble("a", [""]), clusters.important("b", [""], minimum=1)))
    found = data(held, "order gangs")["gangs"]
    assert [row["gang"] for row in found] == ["default/b", "default/a"]
    assert [row["order"]["priority"] for row in found] == ["-10", "-1"], "the smaller one comes first"
    assert data(held, "order queues") == {"step": 0, "queues": ["blue"]}
    poor = debugger(clusters.has_a_poor_queue(VOLCANO))
    assert data(poor, "order queues")["queues"] == ["green"]
    assert data(debugger(clusters.is_lopsided()), "order queues")["queues"] == ["poor"]


def test_where_and_list_show_the_same_step() -> None:
    held = debugger(makes_room())
    held.do("goto 4")
    assert data(held, "where")["step"] == 4
    listed = held.do("list")
    assert [line for line in listed.lines if line.startswith(">")] == [f"> {held.session.steps[3]}"]
    assert 5 <= len(listed.lines) <= 9


def test_help_has_every_command_and_every_command_is_carried_out() -> None:
    held = debugger(makes_room())
    assert len(held.do("help").lines) == len(COMMANDS)
    for command in COMMANDS:
        for word in (command.word, *command.short):
            assert "is no command" not in " ".join(debugger(makes_room()).do(word).lines)


# --- several sessions ----------------------------------------------------------------------------------------------------


def test_breakpoints_and_watches_go_along_to_the_next_session() -> None:
    held = debugger(makes_room(), starts_and_waits())
    data(held, "break commit", "watch node/node-0.idle", "watch gang/default/new.placed", "c")
    answer = held.do("next session")
    assert answer.data["session"] == "session 2"
    assert answer.lines[-1] == "not watched any more, it is gone: gang/default/new.placed"
    found = list(answers_until_over(held, "c"))
    assert {tuple(answer["watches"]) for answer in found} == {("node/node-0.idle",)}
    commits = [event for event in traced(starts_and_waits()) if event.event == "commit"]
    assert sum("breakpoint 1: commit" in answer["stops"] for answer in found) == len(commits) > 0


def test_the_end_says_what_was_decided() -> None:
    assert data(debugger(makes_room()), "c") == {
        "over": True,
        "steps": stepped(makes_room()).count,
        "placed": 0,
        "pipelined": 1,
        "evicted": 1,
    }
