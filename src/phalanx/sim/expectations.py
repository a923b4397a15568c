"""What a scenario says must come out, and whether it did."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must come out under some profiles, or under all if none is named; what is not said may be anything."""

    profiles: tuple[str, ...] = ()
    gangs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    deadlocks: int | None = None
    evictions: int | None = None
    scale_ups: int | None = None
    nodes_delivered: int | None = None
    nodes_given_back: int | None = None
    where: str = ""

    def complaints(self, result: Mapping[str, Any]) -> Iterator[str]:
        """Say in a sentence each what came out differently."""
        if self.profiles and result["profile"] not in self.profiles:
            return
        for name, expected, count in self._counts(result):
            if expected is not None and expected != count:
                yield f"{self.where}: {name}: expected {expected}, got {count}"
        by_name = {gang["name"]: gang for gang in result["gangs"]}
        for pattern, wanted in self.gangs.items():
            names = [name for name in by_name if fnmatchcase(name, pattern)]
            if not names:
                yield f"{self.where}.gangs.{pattern}: there is no such gang; known are {', '.join(sorted(by_name)) or 'none'}"
            for problem in (problem for name in names for problem in _about(by_name, by_name[name], wanted)):
                yield f"{self.where}.gangs.{pattern}: {problem}"

    def _counts(self, result: Mapping[str, Any]) -> Iterator[tuple[str, int | None, int]]:
        """Yield what is counted, with what is expected and what came out."""
        scaled = result["metrics"].get("autoscaler", {})
        yield "deadlocks", self.deadlocks, len(result["deadlocks"])
        yield "evictions", self.evictions, len(result["evictions"])
        yield "scaleUps", self.scale_ups, scaled.get("scaleUps", 0)
        yield "nodesDelivered", self.nodes_delivered, scaled.get("nodesDelivered", 0)
        yield "nodesGivenBack", self.nodes_given_back, scaled.get("nodesGivenBack", 0)


def _about(by_name: Mapping[str, Mapping[str, Any]], gang: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    for field_name, fact in (("starts", "started"), ("finishes", "finished")):
        if field_name in wanted and wanted[field_name] != (gang[fact] is not None):
            yield f"{field_name}: expected {str(wanted[field_name]).lower()}; {fact} at {gang[fact]}"
    if wanted.get("evicted", gang["evicted"]) != gang["evicted"]:
        yield f"evicted: expected {wanted['evicted']} of its pods, got {gang['evicted']}"
    if wanted.get("why", "") not in gang["why"]:
        yield f"why: expected {wanted['why']!r} in {gang['why']!r}"
    if "waits" in wanted and not wanted["waits"].low <= gang["wait"] <= wanted["waits"].high:
        yield f"waits: expected {wanted['waits'].low:g} to {wanted['waits'].high:g} s, got {gang['wait']:g} s"
    if "after" in wanted:
        yield from _order(by_name.get(wanted["after"]), gang)


def _order(first: Mapping[str, Any] | None, gang: Mapping[str, Any]) -> Iterator[str]:
    if first is None:
        yield "after: there is no such gang; write the name of another one"
    elif first["started"] is None or gang["started"] is None or first["started"] > gang["started"]:
        yield f"after: expected to start after {first['name']}; they started at {gang['started']} and {first['started']}"
