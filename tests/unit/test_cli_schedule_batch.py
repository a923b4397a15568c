"""`phalanx schedule --batch`: every line gets an answer, and a bad one harms no other."""

import json
from typing import Any

import pytest

from phalanx.cli.schedule_batch import answer_line, answers
from phalanx.testing import build

OBJECTS = [build.node("node-0", gpus=2), *build.gang("a", tasks=2, gpus=1)]


def ask(**request: Any) -> dict[str, Any]:
    return answer_line(json.dumps({"id": "1", "objects": OBJECTS, **request}).encode())


def test_a_request_without_configuration_is_decided_by_the_default_profile() -> None:
    assert ask()["binds"] == {"default/a-0": "node-0", "default/a-1": "node-0"}
    assert ask()["queues"]["default"]["deserved"]["nvidia.com/gpu"] == 2.0
    assert ask(config={}) == ask() == ask(config=None)


def test_a_request_may_name_a_profile_and_override_it() -> None:
    assert ask(config={"profile": "volcano"}) == ask()
    assert ask(config={"profile": "volcano", "actions": "enqueue"})["binds"] == {}


@pytest.mark.parametrize(
    ("request_part", "sentence"),
    [
        ({"config": {"profile": "vulcano"}}, "profile: unknown profile 'vulcano'; did you mean 'volcano'?"),
        ({"config": {"tires": []}}, "configuration.tires: unknown key; did you mean 'tiers'?"),
        ({"config": {"tiers": [{"plugins": [{"name": "gang", "arguments": {"a": 1}}]}]}},
         "tiers[0].plugins[0]: plugin 'gang', argument 'a': unknown setting"),
        ({"config": []}, "configuration: expected a mapping, got list"),
        ({"objects": {}}, None),
        ({"objects": 3}, "objects: expected a list, got int"),
        ({"objects": [3]}, "objects[0]: expected an object, got int"),
        ({"now": 3}, "now: expected a time such as '2026-01-01T12:00:00Z', got int"),
        ({"now": "noon"}, "now: 'noon' is not a time"),
    ],
)  # fmt: skip
def test_a_bad_request_gets_a_sentence(request_part: dict[str, Any], sentence: str | None) -> None:
    answer = ask(**request_part)
    assert answer["id"] == "1"
    assert answer["error"] is None if sentence is None else answer["error"].startswith(sentence)


def test_a_bad_line_is_answered_and_the_next_one_is_read() -> None:
    lines = [b"{\n", b"\n", b"[]\n", json.dumps({"id": "2", "objects": OBJECTS}).encode()]
    found = [json.loads(line) for line in answers(lines)]
    assert [(answer["id"], answer["error"] is None) for answer in found] == [(None, False), (None, False), ("2", True)]
