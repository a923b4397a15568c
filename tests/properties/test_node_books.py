"""The books of nodes: whatever tasks have done before, they say what is taken now."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phalanx.model.node import Node
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.state.cluster import ClusterState

SHAPES = tuple(Shape(namespace="default", labels={}, request={"cpu": cpu, "memory": 10 * cpu}) for cpu in (1, 2))


@st.composite
def a_task(draw: st.DrawFn) -> Task:
    """Return one of a few tasks, anywhere and in any state."""
    number = draw(st.integers(0, 5))
    return Task(
        TaskKey(f"default/pod-{number}"), f"uid-{number}", draw(st.sampled_from(SHAPES)),
        gang=draw(st.sampled_from([None, GangKey("default/a")])), node=draw(st.sampled_from(("", "x", "y"))),
        status=draw(st.sampled_from(list(Status))),
    )  # fmt: skip


def state_of(tasks: list[Task], *, looks: bool) -> ClusterState:
    """Enter tasks one after the other; a look in between lays the books out, and they are kept up to date from then on."""
    state = ClusterState()
    for name in ("x", "y"):
        state.put_node(Node(name, allocatable={"cpu": 100, "memory": 1000}))
    if looks:
        state.put_task(Task(TaskKey("default/first"), "first", SHAPES[0]))
        state.snapshot(0.0)
        state.drop_task(TaskKey("default/first"))
    for task in tasks:
        state.put_task(task)
    return state


@given(st.lists(a_task(), max_size=30))
def test_books_kept_up_to_date_are_those_counted_at_the_end(tasks: list[Task]) -> None:
    last = list({task.key: task for task in tasks}.values())
    kept, counted = state_of(tasks, looks=True).snapshot(0.0), state_of([*last, SENTINEL], looks=False).snapshot(0.0)
    for name in ("used", "releasing", "scored", "pods"):
        assert np.array_equal(getattr(kept, name), getattr(counted, name)), name


SENTINEL = Task(TaskKey("default/first"), "first", SHAPES[0])
"""Waits, so it takes nothing; without any task there would be no rows."""
