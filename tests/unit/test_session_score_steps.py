"""Scores of nodes that take one task of a class after the other: asked for once, known until something else happens."""

import numpy as np

from phalanx.placement import Counts
from phalanx.session.node_answers import Site
from phalanx.session.node_view import Valuation
from phalanx.session.score_steps import MOST_STEPS, ScoreSteps

ROOM = np.array([3, 0, 100], dtype=np.int64)


class Scores:
    """Scores a node by its number and by the tasks that it has taken; notes how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.taken = np.zeros(3, dtype=np.int64)

    def __call__(self, site: Site) -> Valuation:
        self.asked += 1
        total = self.taken[site.nodes] + site.extra
        return Valuation(total / 2.0, np.asarray(site.nodes, dtype=np.int64) * 1000 + total)


def site(nodes: list[int], turns: list[int], booked: list[int] | None = None) -> Site:
    extra: Counts = np.array(turns, dtype=np.int64)
    return Site(np.array(nodes, dtype=np.int64), extra, extra if booked is None else np.array(booked, dtype=np.int64))


def steps_of(scores: Scores) -> ScoreSteps:
    return ScoreSteps(scores, 3, is_live=True)


def whole(steps: ScoreSteps, asked: Site) -> list[int] | None:
    found = steps.at(asked, ROOM)
    return None if found is None else found[1].tolist()


def test_a_node_is_scored_once_for_all_tasks_that_it_has_room_for() -> None:
    scores = Scores()
    steps = steps_of(scores)
    assert whole(steps, site([0, 2, 0], [1, 0, 0])) == [1, 2000, 0]
    steps.take(0, 2)
    steps.take(np.array([2], dtype=np.int64), np.array([5], dtype=np.int64))
    assert whole(steps, site([0, 2], [1, 1])) == [3, 2006]
    steps.take(0, -1)
    assert whole(steps, site([0], [0])) == [1]
    assert scores.asked == 1


def test_what_something_else_has_changed_is_asked_for_again() -> None:
    scores = Scores()
    steps = steps_of(scores)
    whole(steps, site([0, 2], [0, 0]))
    scores.taken[0] = 7
    steps.forget(np.array([0], dtype=np.int64))
    assert whole(steps, site([0, 2], [0, 1])) == [7, 2001]
    assert scores.asked == 2


def test_scores_that_were_not_asked_for_are_found_elsewhere() -> None:
    steps = steps_of(Scores())
    assert whole(steps, Site(slice(None))) is None
    assert whole(steps, site([2], [MOST_STEPS])) is None, "so far nobody looks ahead"
    assert whole(steps, site([0], [0], booked=[1])) is None, "a task that comes later is in one of two books"
    whole(steps, site([0], [0]))
    steps.take(0, -1)
    assert whole(steps, site([0], [0])) is None, "a task has left that was there when the node was scored"
