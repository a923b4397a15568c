"""The table of who runs where: whatever came and went before, it says what is there."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.state.holders import Holders, HolderTable

SHAPES = tuple(Shape(namespace="default", labels={}, request={"cpu": cpu}) for cpu in (1, 2))
STATUSES = (Status.RUNNING, Status.BOUND, Status.PENDING, Status.RELEASING)


@st.composite
def a_task(draw: st.DrawFn) -> Task:
    """Return one of a few tasks, in any state; many tasks in a row make the table grow."""
    number = draw(st.integers(0, 150))
    return Task(
        TaskKey(f"default/pod-{number}"), f"uid-{number}", draw(st.sampled_from(SHAPES)),
        gang=draw(st.sampled_from([None, GangKey("default/a"), GangKey("default/b")])), node=draw(st.sampled_from("xyz")),
        status=draw(st.sampled_from(STATUSES)), started=float(draw(st.integers(0, 3))), is_preemptable=draw(st.booleans()),
    )  # fmt: skip


def rows_of(table: HolderTable) -> Counter[tuple[str, str, Shape, float, bool]]:
    nodes, gangs = ({code: name for name, code in codes.items()} for codes in (table.code_by_node, table.code_by_gang))
    shapes = {code: shape for shape, code in table.code_by_shape.items()}
    columns = zip(table.nodes, table.gangs, table.shapes, table.started, table.preemptable, strict=True)
    rows = [row for row in columns if row[0] >= 0]
    return Counter((nodes[node], gangs[gang], shapes[shape], started, bool(goes)) for node, gang, shape, started, goes in rows)


def counts(task: Task) -> bool:
    return task.gang is not None and task.status in (Status.RUNNING, Status.BOUND)


@given(st.lists(a_task(), max_size=300))
def test_the_table_says_who_is_there(tasks: list[Task]) -> None:
    holders, there = Holders(), dict[TaskKey, Task]()
    for number, task in enumerate(tasks):
        if number == len(tasks) // 2:
            early, before = holders.table(), rows_of(holders.table())
        old = there.pop(task.key, None)
        if old is not None:
            holders.drop(old)
        if task.status is not Status.PENDING:
            holders.put(task)
            there[task.key] = task
    if tasks:
        assert rows_of(early) == before
    assert rows_of(holders.table()) == Counter(
        (task.node, str(task.gang), task.shape, task.started, task.is_preemptable) for task in there.values() if counts(task)
    )
