"""Manifests and their scenario, a little different for each seed."""

from typing import Any

from phalanx.sim.scenario import Arrival, Scenario
from phalanx.sim.settings import Duration, Settings, Span
from phalanx.sim.setup import Cast
from phalanx.sim.varied_objects import varied_objects


def group(name: str, **annotations: str) -> dict[str, Any]:
    return {
        "kind": "PodGroup",
        "metadata": {"name": name, "annotations": {f"phalanx.dev/{key}": text for key, text in annotations.items()}},
    }


PARTS = Cast(gangs={"a/one": [group("one", duration="100s", arrives="50s")], "a/two": [group("two")]})
SCENARIO = Scenario(
    settings=Settings(durations=(Duration("a/*", Span(200.0, 200.0)),)), arrivals=(Arrival(100.0, ("a/two",)), Arrival(100.0))
)


def varied(seed: int) -> tuple[Cast, Scenario]:
    return varied_objects(PARTS, SCENARIO, 0.1, seed)


def test_durations_and_gaps_vary_by_the_part_asked_for() -> None:
    parts, scenario = varied(1)
    annotations = parts.gangs["a/one"][0]["metadata"]["annotations"]
    assert 90 <= float(annotations["phalanx.dev/duration"][:-1]) <= 110
    arrives = float(annotations["phalanx.dev/arrives"][:-1])
    assert 45 <= arrives <= 55
    assert scenario.arrivals[0].at == scenario.arrivals[1].at
    assert 45 <= scenario.arrivals[0].at - arrives <= 55
    assert list(scenario.settings.duration_by_gang) == ["a/two"]
    assert 180 <= scenario.settings.duration_by_gang["a/two"] <= 220  # type: ignore[index]  # a GangKey


def test_the_same_seed_gives_the_same_and_another_one_does_not() -> None:
    assert varied(1) == varied(1)
    assert varied(1) != varied(2)


def test_a_range_is_drawn_in_the_simulation_and_stays() -> None:
    given = Cast(gangs={"a/one": [group("one", duration="1m..2m")]})
    parts, _ = varied_objects(given, Scenario(), 0.1, 1)
    assert parts.gangs == given.gangs
