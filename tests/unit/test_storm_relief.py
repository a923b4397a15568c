"""What lands after its leader was replaced: the leader finds the node that holds too much and rolls the younger gang back."""

from dataclasses import replace

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.testing.storm import storm as storms
from phalanx.testing.storm.orders import Order
from phalanx.testing.storm.plan import Incident, Plan
from phalanx.testing.storm.storm import Outcome, play

STRANDED = Plan(
    seed=1, replicas=2, nodes=2,
    orders=(
        Order("volcano-0", "volcano", 2, gpus=4, priority="low", queue="default", seconds=200.0, at=1.0),
        Order("volcano-1", "volcano", 2, gpus=4, priority="high", queue="default", seconds=200.0, at=5.0),
    ),
    incidents=(Incident(0.5, "strand", target=1, seconds=30.0),), admits_all=True,
)  # fmt: skip
"""The binds of one gang are on the wire while its leader stands still; the next leader gives the nodes to another gang."""


def moments(outcome: Outcome, word: str) -> list[float]:
    return [float(line.split()[0]) for line in outcome.lines if word in line]


def test_a_gang_whose_binds_land_too_late_is_rolled_back_within_seconds() -> None:
    outcome = play(STRANDED)
    (landed, *_), evicted = moments(outcome, "holds"), moments(outcome, "rolled back: node")
    assert len(evicted) == 2
    assert landed <= min(evicted) <= max(evicted) < landed + 5.0
    assert outcome.violations == ()


def test_without_relief_the_storm_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of_profile("phalanx")
    fewer = replace(policy, actions=tuple(action for action in policy.actions if action != "relieve"))
    monkeypatch.setattr(storms, "policy_of_profile", lambda name: fewer)
    assert {violation.invariant for violation in play(STRANDED).violations} == {"over-commitment"}
