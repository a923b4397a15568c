"""Manifests and their scenario as they might have been: gaps between arrivals and durations vary, differently for each seed.

What a gang draws depends on the seed and on its name alone, so that it is the same whoever decides.
"""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from phalanx.model.duration import seconds_in
from phalanx.model.task import GangKey
from phalanx.model.work_annotations import ARRIVES, DURATION
from phalanx.sim.scenario import Scenario
from phalanx.sim.settings import FOREVER, Span, span_in
from phalanx.sim.setup import Cast

Document = Mapping[str, Any]


def varied_objects(parts: Cast, scenario: Scenario, part: float, seed: int) -> tuple[Cast, Scenario]:
    """Return the same with every gap between arrivals, and every duration, up to this part longer or shorter.

    What the scenario expects is left out: it is about the work as it is.
    """
    moments = _moved({arrival.at for arrival in scenario.arrivals} | set(_arrivals(parts)), part, seed)
    gangs = {
        name: [_varied(item, moments, _factor(name, part, seed)) for item in documents] for name, documents in parts.gangs.items()
    }
    late = [_varied(item, moments, _factor(item["metadata"]["name"], part, seed)) for item in parts.late]
    durations = {GangKey(name): span.low * _factor(name, part, seed) for name, span in _by_scenario(parts, scenario).items()}
    settings = replace(scenario.settings, duration_by_gang={**scenario.settings.duration_by_gang, **durations})
    arrivals = tuple(replace(arrival, at=moments[arrival.at]) for arrival in scenario.arrivals)
    return replace(parts, gangs=gangs, late=late), replace(scenario, settings=settings, arrivals=arrivals, expect=())


def _factor(name: str, part: float, seed: int) -> float:
    return Random(f"{seed} {name}").uniform(1 - part, 1 + part)


def _annotation(document: Document, name: str) -> str | None:
    found = (document["metadata"].get("annotations") or {}).get(name)
    return None if found is None else str(found)


def _arrivals(parts: Cast) -> list[float]:
    documents = [*parts.late, *(item for group in parts.gangs.values() for item in group)]
    texts = [text for item in documents if (text := _annotation(item, ARRIVES)) is not None]
    return [seconds for text in texts if (seconds := seconds_in(text)) is not None]


def _moved(moments: set[float], part: float, seed: int) -> dict[float, float]:
    """Return where each moment has gone: every gap is longer or shorter."""
    chance, before, now, found = Random(seed), 0.0, 0.0, {}
    for moment in sorted(moments):
        now, before = now + (moment - before) * chance.uniform(1 - part, 1 + part), moment
        found[moment] = round(now, 3)
    return found


def _by_scenario(parts: Cast, scenario: Scenario) -> dict[str, Span]:
    """Return the durations of gangs that the scenario alone says, and that are no ranges."""
    found = {}
    for name, documents in parts.gangs.items():
        span = scenario.settings.span_of(name)
        if span.low == span.high != FOREVER and not any(_annotation(item, DURATION) for item in documents):
            found[name] = span
    return found


def _varied(document: Document, moments: Mapping[float, float], factor: float) -> Document:
    arrives, duration = _annotation(document, ARRIVES), _annotation(document, DURATION)
    changed = {}
    if arrives is not None and (moment := seconds_in(arrives)) is not None:
        changed[ARRIVES] = f"{moments[moment]:.3f}s"
    if duration is not None and (span := span_in(duration)) is not None:
        changed[DURATION] = f"{span.low * factor:.3f}s" if span.low == span.high else duration
    if not changed:
        return document
    meta = document["metadata"]
    return {**document, "metadata": {**meta, "annotations": {**meta["annotations"], **changed}}}
