"""Nothing that is read can grow without a bound, and what is refused says which bound it met and how to change it."""

import asyncio
from io import BytesIO
from pathlib import Path

import msgspec
import pytest
from aiohttp import ClientSession

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.documents import parse_text
from phalanx.errors import ConfigError, SnapshotError, TraceError
from phalanx.explain.why import why
from phalanx.model.bounds import (
    ALIASED_VALUES,
    BOUNDS,
    DOCUMENTS,
    INPUT_BYTES,
    NESTING,
    QUEUE_LEVELS,
    STATE_BYTES,
    TRACE_BYTES,
)
from phalanx.session.cycle import run_cycle
from phalanx.sim.scenario import find_scenarios
from phalanx.sim.statefile import read_state
from phalanx.sim.traces import read_trace
from phalanx.store.input_files import read_bytes, read_objects
from phalanx.testing import build
from tests.support.embedded_server import Server

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "reference" / "bounds.md"
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 9)
)


def refusal(text: str) -> str:
    with pytest.raises(SnapshotError) as caught:
        parse_text(text.encode(), "a.yaml")
    return str(caught.value)


# --- texts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 100_000 + "]" * 100_000,
        "{" * 100_000,
        "- " * 100_000,
        '{"a":' * 900 + "1" + "}" * 900,
        "[" * 100_000 + "]" * 100_000,
        "\n".join(" " * level + "a:" for level in range(300)),
    ],
)  # fmt: skip
def test_a_text_that_is_nested_too_deeply_is_refused_before_the_stack_is_used_up(text: str) -> None:
    assert f"nested too deeply: {NESTING.text}" in refusal(text)


def test_nesting_is_counted_the_same_in_yaml_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NESTING.variable, "3")
    assert parse_text(b"[[[1]]]", "x") == parse_text(b"- - - 1", "x") == [[[[1]]]]
    assert refusal("[[[[1]]]]").startswith("a.yaml: nested")
    assert refusal("- - - - 1").startswith("a.yaml, line 1, column 7: nested")


def test_aliases_that_stand_for_billions_of_values_are_refused() -> None:
    assert refusal(BOMB) == f"a.yaml, line 5, column 45: aliases stand for too much: {ALIASED_VALUES.text}"


def test_an_alias_inside_of_what_it_stands_for_is_refused() -> None:
    assert refusal("a: &a\n  b: *a\n") == "a.yaml, line 2, column 6: alias 'a' stands inside of what it stands for"


def test_documents_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DOCUMENTS.variable, "2")
    assert len(parse_text(b"a: 1\n---\nb: 2\n", "x")) == len(parse_text(b'{"a": 1} {"b": 2}', "x")) == 2
    assert DOCUMENTS.text in refusal("a: 1\n---\nb: 2\n---\nc: 3\n")
    assert DOCUMENTS.text in refusal('{"a": 1} {"b": 2} {"c": 3}')


def test_ten_thousand_documents_of_json_one_after_the_other_take_no_time() -> None:
    assert len(parse_text(b'{"a": "' + b"x" * 500 + b'"}\n' + b'{"b": 1}\n' * 10_000, "x")) == 10_001


@pytest.mark.parametrize(
    "text", ["a: !!python/object:os.system x", "!!set {a, b}", "a: !!binary eA==", "a: !!timestamp 2026-01-01"]
)
def test_tags_that_json_has_no_value_for_are_refused(text: str) -> None:
    assert "is not read; write " in refusal(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{1: a, true: b, ~: c, 1.5: d}", {"1": "a", "true": "b", "null": "c", "1.5": "d"}),
        ("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b], z: 3}",
         {"a": {"x": 1}, "b": {"x": 2, "y": 2}, "c": {"x": 1, "y": 2, "z": 3}}),
        ("'<<': 1", {"<<": 1}),
        ("a: !!str 1\nb: !!int '2'", {"a": "1", "b": 2}),
        ("a: &a 1\nb: *a\nc: &a 2\nd: *a", {"a": 1, "b": 1, "c": 2, "d": 2}),
    ],
)  # fmt: skip
def test_yaml_has_the_values_that_its_json_would_have(text: str, value: object) -> None:
    assert parse_text(text.encode(), "x") == [value]


@pytest.mark.parametrize("text", ["? [a]\n: b", "? {a: b}\n: c", "a: *b", "<<: 3", "a: !!bool perhaps", "a: !!float x"])
def test_what_json_cannot_say_is_refused_with_its_place(text: str) -> None:
    assert refusal(text).startswith("a.yaml, line ")


# --- files ---------------------------------------------------------------------------------------------------------------


def test_a_file_without_an_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INPUT_BYTES.variable, "1000000")
    monkeypatch.setenv(STATE_BYTES.variable, "1000000")
    with pytest.raises(
        SnapshotError, match=r"^/dev/zero: too large: at most 1,000,000 bytes of a file are taken; set PHALANX_MAX_"
    ):
        read_bytes("/dev/zero")
    with pytest.raises(ConfigError, match=r"^/dev/full: too large: at most 1,000,000 bytes of a state file are taken; set "):
        read_state(Path("/dev/full"))


def test_a_file_of_exactly_the_size_that_is_allowed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: b\n")
    monkeypatch.setenv(INPUT_BYTES.variable, "5")
    assert [found.value for found in read_objects(str(path))] == [{"a": "b"}]
    monkeypatch.setenv(INPUT_BYTES.variable, "4")
    with pytest.raises(SnapshotError):
        read_bytes(str(path))


def test_a_state_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    for depth in (300, 100_000):
        path.write_text('{"format":1,"now":0,"version":1,"numbers":1,"objects":[' + '{"a":' * depth + "1" + "}" * depth + "]}")
        with pytest.raises(ConfigError, match="nested too deeply"):
            read_state(path)


def test_a_table_of_a_trace_is_read_up_to_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, columns = (
        tmp_path / "jobs.csv",
        "job_id,user,gpu_num,cpu_num,node_num,submit_time,start_time,end_time,duration,state,queue,vc",
    )
    path.write_text(columns + "\n" + ",".join(["1"] * 12) + "\n" + "x" * 2_000_000)
    with pytest.raises(TraceError, match="longer than"):
        read_trace("helios", [path])
    path.write_text(columns + "\n" + (",".join(["1"] * 12) + "\n") * 100)
    monkeypatch.setenv(TRACE_BYTES.variable, "1000")
    with pytest.raises(TraceError, match="too large"):
        read_trace("helios", [path])


def test_a_word_in_a_large_file_makes_nobody_look_for_a_scenario_in_it() -> None:
    text = b"kind: ConfigMap\nx: Scenario\n---\n" * 20_000  # composing this took half a minute
    assert find_scenarios(text, "x") == []


@pytest.mark.parametrize("text", ["none", "-1", "0", "1.5", "9" * 5000, "\u0663"])
def test_a_bound_that_is_no_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NESTING.variable, text)
    with pytest.raises(ConfigError, match=r"^PHALANX_MAX_NESTING: .* is not a whole number from 1 on$"):
        parse_text(b"a: b", "x")


def test_the_documentation_lists_every_bound() -> None:
    rows = [line for line in DOCUMENTATION.read_text().splitlines() if line.startswith("| `")]
    assert rows == [f"| `{bound.variable}` | {bound.usual:,} | {bound.what} | {bound.reason} |" for bound in BOUNDS]


# --- HTTP ----------------------------------------------------------------------------------------------------------------


async def posted(body: bytes, **headers: str) -> tuple[int, dict[str, str]]:
    async with Server().opened() as client, ClientSession() as session:
        path, kind = f"{client.server}/api/v1/namespaces/default/configmaps", {"Content-Type": "application/json"}
        async with session.post(path, data=BytesIO(body), headers=kind | headers) as answer:
            return answer.status, msgspec.json.decode(await answer.read())


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b"[" * 100_000, 400, "nested too deeply"),
        (b'{"a":' * 900 + b"1" + b"}" * 900, 400, "nested too deeply"),
        (b" " * (3 << 20) + b"{}", 413, "PHALANX_MAX_BODY_BYTES"),
    ],
)
def test_a_body_that_is_too_deep_or_too_large_gets_a_status(body: bytes, code: int, says: str) -> None:
    status, found = asyncio.run(posted(body))
    assert (status, found["kind"]) == (code, "Status")
    assert says in found["message"]


def test_watches_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHALANX_MAX_WATCHES", "1")

    async def question() -> list[int]:
        async with Server().opened() as client, ClientSession() as session:
            path = f"{client.server}/api/v1/pods?watch=true"
            async with session.get(path) as first, session.get(path) as second:
                return [first.status, second.status]

    assert asyncio.run(question()) == [200, 429]


# --- queues --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["phalanx", "volcano", "coscheduling"])
def test_a_chain_of_three_thousand_queues_stops_only_the_gangs_at_its_end(profile: str) -> None:
    cluster = ObjectCluster()
    cluster.put(build.node("n0", cpu=8))
    for number in range(3000):
        parent = f"q{number - 1}" if number else "root"
        cluster.put(build.queue(f"q{number}") | {"spec": {"weight": 1, "parent": parent}})
    cluster.put(build.queue("flat"))
    for name, queue in (("far", "q2999"), ("near", "flat")):
        for document in build.gang(name, queue=queue, tasks=1, cpu=1):
            cluster.put(document)
    snapshot = cluster.snapshot(0.0)
    decisions = run_cycle(snapshot, policy_of_profile(profile), CATALOGUE)
    assert "default/near-0" in decisions.binds
    if profile == "phalanx":
        (far,) = (outcome for outcome in decisions.outcomes if outcome.state.key == "default/far")
        assert QUEUE_LEVELS.text in why(far, snapshot)
