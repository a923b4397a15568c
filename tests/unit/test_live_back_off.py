"""A node that always refuses, and pods that are made anew after each roll-back: the gang is tried more and more rarely."""

import pytest

from phalanx.testing.storm.orders import Order
from phalanx.testing.storm.plan import Incident, Plan
from phalanx.testing.storm.storm import Outcome, play

REFUSED = Incident(at=0.5, name="refuse binds", target=1, seconds=65.0)


def storm(dialect: str) -> Outcome:
    """Play a gang that needs both nodes, one of which refuses every pod for a minute."""
    gang = Order("train", dialect, size=2, gpus=4, priority="normal", queue="default", seconds=1000.0, at=1.0)
    return play(Plan(seed=1, replicas=1, nodes=2, orders=(gang,), incidents=(REFUSED,)))


@pytest.mark.parametrize("dialect", ["volcano", "coscheduling", "job"])
def test_the_pause_grows_though_the_pods_that_were_refused_are_gone(dialect: str) -> None:
    outcome = storm(dialect)
    rounds = [float(line.split()[0]) for line in outcome.lines if " binds " in line]
    assert len(rounds) <= 9
    assert all(later - earlier > 10.0 for earlier, later in zip(rounds[-3:], rounds[-2:], strict=False))
    assert outcome.violations == ()
