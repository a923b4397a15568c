"""Tables: aligned, unbroken in pipes, wrapped on a terminal, readable when there is much to show."""

from collections.abc import Iterator
from typing import Any

import click
import pytest

from phalanx.cli.output import Terminal, columns, lines_of
from phalanx.cli.streams import sent
from phalanx.config.builtin import catalogue_of
from phalanx.session.cycle import run_cycle
from phalanx.session.policy import Policy
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.testing import build
from tests.support import kai_objects as kai

PIPE = Terminal()


def lines(*objects: Any, screen: Terminal = PIPE, policy: Policy | None = None, nodes: int = 1, **offers: Any) -> list[str]:
    cluster = build.cluster(nodes=nodes, policy=policy, **offers).submit(*objects)
    snapshot = cluster.objects.snapshot(0.0)
    return list(
        lines_of(
            [ShardDecisions("", snapshot, run_cycle(snapshot, cluster.policy, catalogue_of(cluster.policy.catalogue)))], screen
        )
    )


def many(count: int) -> Iterator[list[dict[str, Any]]]:
    return (build.gang(f"gang-{number:03}", tasks=2, gpus=1) for number in range(count))


def section(found: list[str], title: str) -> list[str]:
    start = found.index(title) + 1
    return found[start : found.index("", start)]


def test_gangs_are_ordered_by_what_becomes_of_them() -> None:
    running = [build.pod_group("old", phase="Running"), build.pod("old-0", group="old", on="node-0", gpus=1)]
    ended = [
        build.pod_group("done", phase="Running"),
        {**build.pod("done-0", group="done", on="node-0", gpus=1), "status": {"phase": "Succeeded"}},
    ]
    found = lines(running, ended, build.gang("b", tasks=1, gpus=1), build.gang("a", tasks=4, gpus=1), gpus=3)
    assert [line.split()[0:3:2] for line in found[1:5]] == [
        ["default/b", "Starts"],
        ["default/a", "Waits"],
        ["default/old", "Runs"],
        ["default/done", "Completed"],
    ]
    assert found[-1] == "4 gangs: 1 starts, 1 waits, 1 runs, 1 completed; 1 pod placed on 1 node"


def test_a_gang_that_had_its_minimum_grows() -> None:
    running = [build.pod_group("a", phase="Running"), build.pod("a-0", group="a", on="node-0", gpus=1)]
    assert "Grows" in lines(running, build.pod("a-1", group="a", gpus=1), gpus=2)[1]


def test_a_gang_whose_pods_have_not_begun_is_bound_and_does_not_run() -> None:
    pod = {**build.pod("a-0", group="a", on="node-0", gpus=1), "status": {"phase": "Pending"}}
    assert lines([build.pod_group("a", phase="Running"), pod], gpus=2)[1].split() == [
        "default/a",
        "default",
        "Bound",
        "1",
        "1",
        "0",
    ]


def test_placements_are_grouped_by_gang_and_node() -> None:
    found = lines(build.gang("b", tasks=2, gpus=1), build.gang("a", tasks=2, gpus=2), nodes=3, gpus=2)
    assert section(found, "PLACEMENTS") == ["default/a  node-0 ×1, node-1 ×1", "default/b  node-2 ×2"]


def test_a_line_names_some_nodes_and_counts_the_rest() -> None:
    found = lines(build.gang("a", tasks=20, gpus=1), nodes=20, gpus=1)
    assert section(found, "PLACEMENTS")[0].endswith(", node-9 ×1, node-10 ×1, node-11 ×1 and 8 more nodes (-o json names all)")


def test_promises_have_a_section_of_their_own() -> None:
    leaving = build.pod("old", on="node-0", gpus=1)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = lines(leaving, build.gang("a", tasks=1, gpus=1), gpus=1)
    assert section(found, "PIPELINED") == ["default/a  node-0 ×1"]
    assert found[-1] == "1 gang: 1 pipelined"


def test_evictions_have_a_section_of_their_own() -> None:
    policy = build.policy(tiers=(("priority", "conformance"), ("predicates", "nodeorder")), actions="allocate, preempt")
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    old = [build.pod_group("old", min_member=1, phase="Running"), build.pod("old-0", group="old", on="node-0", cpu=8)]
    urgent = build.gang("urgent", tasks=1, cpu=8)
    urgent[0]["spec"]["priorityClassName"] = "high"
    urgent[1]["spec"]["priority"] = 100
    found = lines(classes, old, urgent, policy=policy)
    assert section(found, "EVICTIONS")[0].startswith("default/old-0  by preempt for default/urgent")
    assert found[-1] == "2 gangs: 1 pipelined, 1 evicted; 1 pod evicted"


def test_an_eviction_that_serves_no_gang_names_none() -> None:
    broken = kai.gang("broken", tasks=2, on=["node-0"], queue="a")[:2]
    policy = kai.policy("stalegangeviction", options={"stalenessGracePeriodSeconds": 0})
    found = lines(kai.queue("a", parent=""), broken, policy=policy)
    assert section(found, "EVICTIONS")[0].startswith("default/broken-0  by stalegangeviction  Workload doesn't meet")


def test_a_hundred_gangs_take_a_line_each() -> None:
    found = lines(*many(100), nodes=10, gpus=8)
    assert len(found[1 : found.index("")]) == 100
    assert len(section(found, "PLACEMENTS")) == 40
    assert found[-1] == "100 gangs: 40 start, 60 wait; 80 pods placed on 10 nodes"


def test_columns_stay_aligned() -> None:
    found = lines(build.gang("a-very-long-name", tasks=1, gpus=1), build.gang("b", tasks=2, gpus=1), gpus=1)
    offset = found[0].index("WHY")
    assert found[1].rstrip() == found[1]
    assert found[2][offset - 2 : offset + 4] == "  0 of"


# --- terminals -----------------------------------------------------------------------------------------------------------


def test_a_reason_is_wrapped_in_its_column_on_a_terminal() -> None:
    found = lines(build.gang("a", tasks=2, gpus=1), screen=Terminal(width=100), gpus=1)
    offset = found[0].index("WHY")
    wrapped = found[1 : found.index("")]
    assert len(wrapped) > 1
    assert all(len(line) <= 100 for line in wrapped)
    assert all(line.startswith(" " * offset) for line in wrapped[1:])


def test_a_reason_goes_below_the_columns_where_they_leave_no_room() -> None:
    found = lines(build.gang("a", tasks=2, gpus=1), screen=Terminal(width=60), gpus=1)
    assert found[1].endswith("0")
    assert found[2].startswith("    1 of 2 tasks fit")


def test_a_pipe_gets_one_line_for_each_gang() -> None:
    found = lines(build.gang("a", tasks=2, gpus=1), gpus=1)
    assert found.index("") == 2


def test_colours_only_add_to_the_words() -> None:
    objects = (build.gang("a", tasks=1, gpus=1), build.gang("b", tasks=2, gpus=1))
    plain, coloured = lines(*objects, gpus=1), lines(*objects, screen=Terminal(has_colour=True), gpus=1)
    assert coloured != plain
    assert [click.unstyle(sent(line)) for line in coloured] == plain


def test_a_pipe_has_neither_width_nor_colours() -> None:
    screen = Terminal.of_stdout()
    assert (screen.width, screen.has_colour) == (None, False)


@pytest.mark.parametrize(("encoding", "times"), [("utf-8", "×"), ("ascii", "x"), (None, "x"), ("no-such", "x")])
def test_the_sign_for_times_is_one_that_the_output_can_show(encoding: str | None, times: str) -> None:
    from phalanx.cli.output import _times

    assert _times(encoding) == times


def test_the_last_column_is_not_padded() -> None:
    assert list(columns([("a", "bb", "c"), ("dd", "e", "")])) == ["a   bb  c", "dd  e"]
