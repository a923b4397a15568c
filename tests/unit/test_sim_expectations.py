"""What a scenario expects, and how it complains."""

from typing import Any

import pytest

from phalanx.sim.expectations import Expectation
from phalanx.sim.settings import Span

RESULT = {
    "profile": "phalanx", "metrics": {}, "deadlocks": [], "evictions": [{}],
    "gangs": [
        {"name": "default/a", "started": 1.0, "finished": 9.0, "evicted": 0, "why": "", "wait": 1.0},
        {"name": "default/b", "started": None, "finished": None, "evicted": 2, "why": "0 of 3 tasks fit; more", "wait": 50.0},
    ],
}  # fmt: skip
MET: list[dict[str, Any]] = [
    {"deadlocks": 0, "evictions": 1},
    {"gangs": {"default/a": {"starts": True, "finishes": True, "evicted": 0, "waits": Span(0, 1)}}},
    {"gangs": {"default/b": {"starts": False, "why": "0 of 3 tasks fit"}}},
    {"gangs": {"*/a": {"evicted": 0}}},
    {"profiles": ("kai",), "deadlocks": 5},
]
UNMET: list[tuple[dict[str, Any], str]] = [
    ({"deadlocks": 1}, "here: deadlocks: expected 1, got 0"),
    ({"profiles": ("phalanx",), "evictions": 0}, "here: evictions: expected 0, got 1"),
    ({"gangs": {"default/b": {"starts": True}}}, "here.gangs.default/b: starts: expected true; started at None"),
    ({"gangs": {"default/a": {"finishes": False}}}, "here.gangs.default/a: finishes: expected false; finished at 9.0"),
    ({"gangs": {"default/b": {"evicted": 1}}}, "here.gangs.default/b: evicted: expected 1 of its pods, got 2"),
    ({"gangs": {"default/b": {"why": "quota"}}}, "here.gangs.default/b: why: expected 'quota' in '0 of 3 tasks fit; more'"),
    ({"gangs": {"default/b": {"waits": Span(0, 9)}}}, "here.gangs.default/b: waits: expected 0 to 9 s, got 50 s"),
    ({"gangs": {"default/b": {"after": "default/a"}}},
     "here.gangs.default/b: after: expected to start after default/a; they started at None and 1.0"),
    ({"gangs": {"default/b": {"after": "default/x"}}},
     "here.gangs.default/b: after: there is no such gang; write the name of another one"),
    ({"gangs": {"def*/[ab]": {"evicted": 0}}}, "here.gangs.def*/[ab]: evicted: expected 0 of its pods, got 2"),
    ({"gangs": {"default/x*": {}}}, "here.gangs.default/x*: there is no such gang; known are default/a, default/b"),
    ({"gangs": {"default/x": {}}}, "here.gangs.default/x: there is no such gang; known are default/a, default/b"),
]  # fmt: skip


@pytest.mark.parametrize("wanted", MET)
def test_what_came_out_as_expected_is_no_complaint(wanted: dict[str, Any]) -> None:
    assert list(Expectation(**wanted).complaints(RESULT)) == []


@pytest.mark.parametrize(("wanted", "complaint"), UNMET)
def test_what_came_out_differently_is_one_sentence(wanted: dict[str, Any], complaint: str) -> None:
    assert list(Expectation(**wanted, where="here").complaints(RESULT)) == [complaint]
