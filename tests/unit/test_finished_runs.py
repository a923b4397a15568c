"""Guesses at run times, learnt from gangs that have finished."""

from dataclasses import replace
from math import inf

from phalanx.model.gang import Gang
from phalanx.model.queue import Queue
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.state.cluster import ClusterState
from phalanx.state.finished_runs import MOST_RUNS, likeness
from phalanx.state.run_times import RunTimesBook

SHAPE = Shape(namespace="ml", request={"cpu": 1000})


def run(state: ClusterState, name: str, seconds: float, *, tasks: int = 1, ends: Status = Status.SUCCEEDED) -> None:
    """Let a gang run and end."""
    key = GangKey(f"ml/{name}")
    state.put_gang(Gang(key, min_member=tasks))
    running = [
        Task(TaskKey(f"{key}-{number}"), f"{key}-{number}", SHAPE, gang=key, node="n", status=Status.RUNNING, started=1000.0)
        for number in range(tasks)
    ]
    for task in running:
        state.put_task(task)
    for number, task in enumerate(running):
        state.put_task(replace(task, status=ends, finished=1000.0 + seconds + number))


def waiting(state: ClusterState, name: str, tasks: int = 1) -> GangKey:
    key = GangKey(f"ml/{name}")
    state.put_queue(Queue("default"))
    state.put_gang(Gang(key, min_member=tasks))
    for number in range(tasks):
        state.put_task(Task(TaskKey(f"{key}-{number}"), f"{key}-{number}", SHAPE, gang=key))
    return key


def test_a_gang_that_says_nothing_takes_as_long_as_three_like_it() -> None:
    state = ClusterState()
    key = waiting(state, "bert-99")
    for number, seconds in enumerate((100.0, 300.0, 200.0)):
        assert not RunTimesBook(state.snapshot(0.0), is_predicted=True).of(key).is_known
        run(state, f"bert-{number}", seconds)
    found = RunTimesBook(state.snapshot(0.0), is_predicted=True).of(key)
    assert (found.shortest, found.longest, found.expected) == (100.0, 300.0, 200.0)
    assert found.source == "3 finished gangs like ml/bert-* of 1"
    assert not RunTimesBook(state.snapshot(0.0)).of(key).is_known  # off by default


def test_a_guess_bounds_nothing() -> None:
    state = ClusterState()
    for number in range(3):
        run(state, f"bert-{number}", 100.0)
    key = waiting(state, "bert-9")
    found = RunTimesBook(state.snapshot(0.0), is_predicted=True).of(key)
    assert found.is_guess
    assert found.bound == inf
    assert found.end(begun=1000.0, now=1010.0) == 1100.0


def test_other_names_and_other_sizes_are_not_like_it_and_failures_say_nothing() -> None:
    state = ClusterState()
    for number in range(3):
        run(state, f"bert-{number}", 100.0)
        run(state, f"llama-{number}", 100.0, ends=Status.FAILED)
    others = [waiting(state, name, tasks) for name, tasks in (("bert-9", 2), ("llama-9", 1), ("gpt-9", 1))]
    alike = waiting(state, "bert-8")
    book = RunTimesBook(state.snapshot(0.0), is_predicted=True)
    assert book.of(alike).is_known
    assert not any(book.of(key).is_known for key in others)


def test_a_gang_counts_once_with_its_last_pod_and_old_runs_are_forgotten() -> None:
    state = ClusterState()
    run(state, "bert-1", 100.0, tasks=4)
    label = likeness(GangKey("ml/bert-1"), 4)
    assert state.snapshot(0.0).finished_runs[label] == (103.0,)
    for number in range(MOST_RUNS + 5):
        run(state, f"bert-{number + 2}", 200.0, tasks=4)
    assert state.snapshot(0.0).finished_runs[label] == (203.0,) * MOST_RUNS


def test_a_snapshot_that_was_taken_does_not_learn() -> None:
    state = ClusterState()
    run(state, "bert-1", 100.0)
    before = state.snapshot(0.0)
    run(state, "bert-2", 100.0)
    assert len(before.finished_runs[likeness(GangKey("ml/bert-1"), 1)]) == 1
