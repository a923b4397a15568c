"""Where two sessions part: the first step that differs, and what differs after it, gang by gang."""

from phalanx.recording.decision_steps import DecisionStep, StepPair, parting, steps_of
from phalanx.testing import build


def bind(task: str, node: str, gang: str = "g") -> DecisionStep:
    return DecisionStep("bind", task, gang, node)


def test_sessions_that_decide_the_same_in_the_same_order_do_not_part() -> None:
    assert parting([bind("a", "n1"), bind("b", "n1")], [bind("a", "n1"), bind("b", "n1")]) is None


def test_sessions_part_at_the_first_step_that_differs() -> None:
    found = parting([bind("a", "n1"), bind("b", "n1"), bind("c", "n3")], [bind("a", "n1"), bind("b", "n2"), bind("c", "n3")])
    assert found is not None
    assert (found.number, found.alike) == (1, 1)
    assert found.pairs == [StepPair(bind("b", "n1"), bind("b", "n2"))]


def test_a_session_that_decides_more_parts_where_the_other_ends() -> None:
    found = parting([bind("a", "n1")], [bind("a", "n1"), bind("b", "n1")])
    assert found is not None
    assert (found.number, found.pairs) == (1, [StepPair(None, bind("b", "n1"))])


def test_where_only_the_order_differs_no_step_does() -> None:
    found = parting([bind("a", "n1"), bind("b", "n1")], [bind("b", "n1"), bind("a", "n1")])
    assert found is not None
    assert (found.number, found.pairs, found.alike) == (0, [], 2)


def test_what_differs_is_shown_gang_by_gang_as_either_side_comes_to_them() -> None:
    then = [bind("a-0", "n1", "a"), bind("b-0", "n1", "b"), bind("a-1", "n1", "a")]
    now = [bind("b-0", "n2", "b"), bind("c-0", "n2", "c"), bind("a-0", "n2", "a"), bind("a-1", "n2", "a")]
    found = parting(then, now)
    assert found is not None
    assert [pair.gang for pair in found.pairs] == ["a", "a", "b", "c"]


def test_steps_keep_the_order_of_the_record() -> None:
    whole = build.cluster(nodes=1, cpu=8).submit(build.gang("train", tasks=2, cpu=1)).objects.snapshot(0.0)
    record = {
        "": {
            "binds": {"default/train-1": "n1", "default/train-0": "n1"},
            "evictions": {"default/old-0": ["preempt", "default/train", "why"]},
        }
    }
    steps = steps_of(record, whole)
    assert [step.text for step in steps] == [
        "bind default/train-1 to n1", "bind default/train-0 to n1", "evict default/old-0 (preempt for default/train)"
    ]  # fmt: skip
    assert [step.gang for step in steps] == ["default/train", "default/train", ""]
