"""Times of a session, measured from outside: nothing is decided in another way, and every part is measured."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from phalanx.config.builtin import CATALOGUE, catalogue_of
from phalanx.config.policies import policy_of_profile, profile_names
from phalanx.explain.answer import answer
from phalanx.plugins.gang import GangPlugin
from phalanx.scheduling.timing import Stopwatch
from phalanx.session.cycle import Catalogue, run_cycle
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import Verdict
from phalanx.testing import build
from tests.support import kai_objects as kai


def ticking() -> Iterator[float]:
    """Return a clock that goes on by one whenever somebody looks at it."""
    return map(float, count())


def crowd(policy_name: str) -> build.Cluster:
    policy = policy_of_profile(policy_name)
    if policy.catalogue == "kai":
        found = build.Cluster(policy).submit(kai.queue("default", parent=""), build.node("n0", gpus=2))
        return found.submit(kai.gang("bert", tasks=2, gpus=1), kai.gang("gpt", tasks=4, gpus=1))
    found = build.cluster(nodes=3, gpus=1, policy=policy)
    return found.submit(build.gang("bert", tasks=3, gpus=1), build.gang("gpt", tasks=4, gpus=1))


@pytest.mark.parametrize("profile", profile_names())
def test_a_session_that_is_timed_decides_the_same(profile: str) -> None:
    cluster = crowd(profile)
    catalogue, snapshot = catalogue_of(cluster.policy.catalogue), cluster.objects.snapshot(0.0)
    timed, times = Stopwatch(ticking().__next__).begin(catalogue)
    plain = run_cycle(snapshot, cluster.policy, catalogue, trace_level=5)
    watched = run_cycle(snapshot, cluster.policy, timed, trace_level=5)
    assert answer(snapshot, watched) == answer(snapshot, plain)
    assert watched.trace == plain.trace
    assert set(times.by_action) == set(cluster.policy.actions)
    assert {plugin for plugin, _ in times.by_hook} <= {plugin.name for plugin in cluster.policy.plugins()}
    assert times.by_hook


def test_plugins_are_timed_in_one_session_of_so_many() -> None:
    cluster = build.cluster().submit(build.gang("bert", cpu=1))
    stopwatch, snapshot = Stopwatch(ticking().__next__, sample_every=3), cluster.objects.snapshot(0.0)
    measured = []
    for _ in range(7):
        timed, times = stopwatch.begin(CATALOGUE)
        run_cycle(snapshot, cluster.policy, timed)
        measured.append(bool(times.by_hook))
        assert times.by_action
    assert measured == [True, False, False, True, False, False, True]


class _Slow:
    name = "slow"

    def __init__(self, clock: Iterator[float]) -> None:
        self._clock = clock

    def open(self, session: Session) -> None:
        for _ in range(9):
            next(self._clock)

    def run(self, session: Session) -> None:
        for _ in range(4):
            next(self._clock)


def test_times_are_those_of_the_clock() -> None:
    clock = ticking()
    catalogue = Catalogue({"slow": lambda _: _Slow(clock)}, {"slow": lambda policy: _Slow(clock)})
    slow = Policy(("slow",), ((PluginPolicy("slow"),),))
    timed, times = Stopwatch(clock.__next__).begin(catalogue)
    run_cycle(build.cluster(nodes=1).objects.snapshot(0.0), slow, timed)
    assert times.by_action == {"slow": 5}
    assert times.by_hook == {("slow", "open"): 10}


def test_a_session_that_takes_long_says_what_took_longest() -> None:
    clock = [0.0]

    class Slow(GangPlugin):
        def gang_valid(self, session: Session, gang: GangState) -> Verdict:
            clock[0] += 7.0 if "bad" in gang.key else 0.1
            return super().gang_valid(session, gang)

    cluster = build.cluster(policy=build.policy([["gang"]], "allocate")).submit(build.gang("good", cpu=1), build.gang("bad", cpu=1))
    timed, times = Stopwatch(lambda: clock[0]).begin(replace(CATALOGUE, plugins={**CATALOGUE.plugins, "gang": Slow}))
    run_cycle(cluster.objects.snapshot(0.0), cluster.policy, timed)
    assert times.longest() == "7.1 s of it in allocate, 7.0 s of it about gang default/bad, 7.1 s of it in gang (gang_valid)"


def test_plugins_are_measured_after_a_session_that_took_long() -> None:
    cluster = build.cluster().submit(build.gang("bert", cpu=1))
    stopwatch, snapshot = Stopwatch(ticking().__next__, sample_every=1000), cluster.objects.snapshot(0.0)
    measured = []
    for number in range(4):
        timed, times = stopwatch.begin(CATALOGUE)
        run_cycle(snapshot, cluster.policy, timed)
        measured.append(bool(times.by_gang))
        if number == 1:
            stopwatch.look_closely()
    assert measured == [True, False, True, False]
