"""Recordings of schedulers that ask another process: its answers are recorded, and replays need it no more."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_text
from phalanx.plugins.extender import Answer, ExtenderPlugin, Question
from phalanx.recording.entries import Decided
from phalanx.scheduling.shards import decide
from phalanx.session.cycle import Profile
from phalanx.session.shard_decisions import together
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import sim_worlds as worlds
from tests.support.recordings import all_entries, assert_same, recorded, replayed

VERBS = ("predicate", "prioritize", "jobReady")
CONFIG = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]
- plugins:
  - name: extender
    arguments:
      extender.urlPrefix: http://extender
      extender.predicateVerb: predicate
      extender.prioritizeVerb: prioritize
      extender.jobReadyVerb: jobReady
"""


class Moody:
    """A process that says something else each time."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, question: Question) -> Answer:
        self.asked += 1
        if question.verb == "prioritize":
            names = question.session.snapshot.nodes.names
            return Answer(score_by_node={name: float((place * 7 + self.asked) % 5) for place, name in enumerate(names)})
        if question.verb == "jobReady":
            return Answer(is_true=self.asked % 3 > 0)
        return Answer(message="not today", code=2) if self.asked % 11 == 0 else Answer()


def world_of(policy_text: str, line: Callable[[Question], Answer]) -> World:
    policy = policy_of_text(policy_text.encode(), "test")
    factory = partial(ExtenderPlugin, connect=lambda endpoint: line)
    catalogue = replace(CATALOGUE, plugins={**CATALOGUE.plugins, "extender": factory})
    world = World(Profile(policy, catalogue))
    world.load([*(build.node(f"node-{number}", cpu=8) for number in range(4)), build.queue("default")])
    return world


def recording(folder: Path) -> int:
    """Record a cluster whose extender has moods; return how often it was asked."""
    moody = Moody()
    world = world_of(CONFIG, moody)
    with recorded(world, folder, profile="", text=CONFIG):
        for number in range(8):
            worlds.submit(world, worlds.gang(f"gang-{number}", tasks=2, duration="5m", cpu=2), at=60.0 * number)
        worlds.run(world, 3_600)
    return moody.asked


def test_answers_of_an_extender_are_given_again(tmp_path: Path) -> None:
    asked = recording(tmp_path)
    answers = [run for entry in all_entries(tmp_path) if isinstance(entry, Decided) for run in entry.answers]
    assert sum(map(len, answers)) == asked > 0
    assert {verb for run in answers for verb, _ in run} == set(VERBS)
    sessions = replayed(tmp_path)
    assert sum(len(session.decided.get("", {}).get("binds", {})) for session in sessions) >= 16
    assert_same(sessions)


def test_a_session_with_an_extender_can_be_decided_once_more_and_again(tmp_path: Path) -> None:
    recording(tmp_path)
    session = next(session for session in replayed(tmp_path) if session.decided.get("", {}).get("binds"))
    for _ in range(2):
        again = together(decide(session.session.snapshot, session.profile))
        assert dict(again.binds) == session.recorded[""]["binds"]
