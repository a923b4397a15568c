"""Scenario files: what they may say, and what is said about wrong ones."""

import re
import textwrap
from pathlib import Path

import pytest

from phalanx.controllers.builtin import ControllerSettings
from phalanx.errors import ConfigError
from phalanx.sim.node_pools import AutoscalerSettings, NodePool, NodeTemplate, Stockout
from phalanx.sim.scenario import COUNT_BY_FIELD, FIELDS, NODE_EVENTS, Arrival, Failure, NodeEvent, Refusal, Scenario, find_scenarios
from phalanx.sim.scenario_autoscaler import FIELDS as AUTOSCALER_FIELDS
from phalanx.sim.scenario_autoscaler import POOL_FIELDS
from phalanx.sim.settings import Checkpoints, Delays, Duration, Settings, Span

HEAD = "apiVersion: phalanx.dev/v1alpha1\nkind: Scenario\n"


def read(text: str) -> Scenario:
    (found,) = find_scenarios((HEAD + text).encode(), "scenario.yaml")
    return found


def test_an_empty_scenario_says_nothing() -> None:
    assert read("") == Scenario()


def test_everything_that_may_be_said_is_read() -> None:
    found = read("""
metadata: {name: busy-day}
until: 2h
seed: 7
period: 500ms
delays: {bind: 100ms, pull: 1s..5s, start: 2s, stop: 10}
restart: never
keepsProgress: true
durations:
- {match: "research/*", duration: 10m..20m}
- {match: train, duration: 90s}
checkpoints:
- {match: train, every: 10m}
arrivals:
- {at: 5m, gangs: [train, "research/sweep-*"], every: 10m, times: 3}
failures:
- {at: 1h, pod: research/bert-0}
- {at: 2h, gang: train}
- {bind: gpu-1, times: 2}
- {at: 1m, bind: train-0}
binder: true
nodes:
- {at: 30m, node: gpu-1, event: drain}
expect:
- profiles: [phalanx, kai]
  deadlocks: 0
  evictions: 2
  gangs:
    train: {starts: true, finishes: false, evicted: 1, why: no room, after: research/bert, waits: 0s..5m}
""")
    assert found.settings == Settings(
        delays=Delays(Span(0.1, 0.1), Span(1, 5), Span(2, 2), Span(10, 10)), period=0.5, restart_after=None, keeps_progress=True,
        has_binder=True,
        durations=(Duration("research/*", Span(600, 1200)), Duration("default/train", Span(90, 90))),
        checkpoints=(Checkpoints("default/train", 600),),
    )  # fmt: skip
    assert (found.until, found.seed) == (7200.0, 7)
    assert found.arrivals == (
        Arrival(300.0, ("default/train", "research/sweep-*"), 600.0, 3, "scenario.yaml, line 17: arrivals[0].gangs"),
    )
    assert found.failures == (
        Failure(3600.0, pod="research/bert-0", where="scenario.yaml, line 19: failures[0]"),
        Failure(7200.0, gang="default/train", where="scenario.yaml, line 20: failures[1]"),
        Refusal(0.0, "gpu-1", 2, where="scenario.yaml, line 21: failures[2]"),
        Refusal(60.0, "train-0", float("inf"), where="scenario.yaml, line 22: failures[3]"),
    )
    assert found.nodes == (NodeEvent(1800.0, "gpu-1", "drain", "scenario.yaml, line 25: nodes[0].node"),)
    (expected,) = found.expect
    assert (expected.profiles, expected.deadlocks, expected.evictions) == (("phalanx", "kai"), 0, 2)
    assert expected.gangs == {
        "default/train": {
            "starts": True, "finishes": False, "evicted": 1, "why": "no room", "after": "research/bert", "waits": Span(0, 300),
        }
    }  # fmt: skip


UNNAMED = "failures[0]: name one of pod, gang and bind, such as pod: research/train-0 or bind: gpu-1"
WRONG = [
    ("nodes:\n- {at: 5m, node: a, event: dies}", 4,
     "nodes[0].event: 'dies' is unknown; write one of die, return, drain, cordon, uncordon, leave, join"),
    ("seed: 1\ndurationz: []", 4, "durationz: unknown; did you mean 'durations'?"),
    ("weather: rain", 3, "weather: unknown; write one of apiVersion, kind, metadata, until, seed, period, heartbeat,"
     " settling, longestRest, delays, restart, keepsProgress, binder, durations, checkpoints, arrivals, failures, nodes,"
     " controllers, autoscaler, expect"),
    ("controllers: {hyperNodeLevels: [a, a]}", 3,
     "controllers.hyperNodeLevels: a label is given twice; write each once, from narrow to wide"),
    ("controllers: {levels: [a]}", 3, "controllers.levels: unknown; write one of schedulers, hyperNodeLevels"),
    ("until: soon", 3, "until: 'soon' is not a duration; write for example 90s, 2h30m or a number of seconds"),
    ("until: 0s", 3, "until: '0s' is no time at all; write for example 1s"),
    ("seed: -1", 3, "seed: '-1' is not a whole number; write 0, 1, 2 and so on"),
    ("delays: {pull: 5s..1s}", 3, "delays.pull: '5s..1s' ends before it begins; write the shorter duration first"),
    ("delays: {sleep: 1s}", 3, "delays.sleep: unknown; write one of bind, pull, start, stop"),
    ("delays: 5s", 3, "delays: expected a mapping with some of bind, pull, start, stop"),
    ("keepsProgress: maybe", 3, "keepsProgress: 'maybe' is unknown; write one of true, false"),
    ("nodes: {}", 3, "nodes: expected a list; begin each entry with '- '"),
    ("nodes:\n- {at: 5m, node: a}", 4, "nodes[0]: event: missing; an entry here needs at and node and event"),
    ("checkpoints:\n- {match: a, every: 0s}", 4, "checkpoints[0].every: '0s' is no time at all; write for example 1s"),
    ("durations:\n- {match: a}", 4, "durations[0]: duration: missing; an entry here needs match and duration"),
    ("arrivals:\n- {at: 1m}", 4, "arrivals[0]: name either gangs or pods, such as gangs: [research/sweep]"),
    ("arrivals:\n- {at: 1m, gangs: [a], pods: [b]}", 4, "arrivals[0]: name either gangs or pods, such as gangs: [research/sweep]"),
    ("arrivals:\n- {at: 1m, pods: [b], every: 5m, times: 2}", 4,
     "arrivals[0].times: stands only beside gangs; write an entry for each pod"),
    ("arrivals:\n- {at: 1m, gangs: [a], every: 5m}", 4,
     "arrivals[0]: every and times go together; write both or none, such as every: 10m and times: 5"),
    ("arrivals:\n- {at: 1m, gangs: [a], every: 5m, times: 0}", 4,
     "arrivals[0].times: 0 is not possible; write a number from 1 to 10000"),
    ("arrivals:\n- at: 1m\n  gangs: [a, {b: c}]", 5, "arrivals[0].gangs[1]: expected text"),
    ("failures:\n- {at: 1m}", 4, UNNAMED),
    ("failures:\n- {at: 1m, pod: a, gang: b}", 4, UNNAMED),
    ("failures:\n- {pod: a}", 4, "failures[0]: at: missing; write when it fails, such as at: 12m"),
    ("failures:\n- {at: 1m, pod: a, times: 2}", 4, "failures[0].times: stands only beside bind; write an entry for each failure"),
    ("expect:\n- gangs: {a: {begins: true}}", 4,
     "expect[0].gangs.a.begins: unknown; write one of starts, finishes, evicted, why, after, waits"),
    ("expect:\n- profiles: [phalanx, volcanoo]", 4,
     "expect[0].profiles[1]: there is no profile 'volcanoo'; did you mean 'volcano'?"),
    ("expect:\n- profiles: [foo]", 4,
     "expect[0].profiles[0]: there is no profile 'foo'; write one of coscheduling, default-scheduler, kai, phalanx, volcano"),
    ("expect:\n- gangs: [a]", 4, "expect[0].gangs: expected a mapping from gangs to what becomes of them"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "problem"), WRONG, ids=[text.replace("\n", " ") for text, _, _ in WRONG])
def test_a_wrong_scenario_says_where_what_and_what_to_write(text: str, line: int, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert str(caught.value) == f"scenario.yaml, line {line}: {problem}"


def test_controllers_are_set_by_name_and_the_rest_is_as_usual() -> None:
    found = read("controllers: {hyperNodeLevels: [leaf, spine]}").controllers
    assert found == ControllerSettings(hypernode_levels=("leaf", "spine"))
    assert read("controllers: {schedulers: [mine]}").controllers.schedulers == {"mine"}


def test_another_version_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"line 1: apiVersion: 'phalanx\.dev/v9' is unknown; write one of phalanx.dev/v1alpha1"):
        find_scenarios(b"apiVersion: phalanx.dev/v9\nkind: Scenario\n", "x.yaml")


def test_other_documents_are_left_to_others() -> None:
    other = b"apiVersion: other.dev/v1\nkind: Scenario\n---\nkind: Pod\n---\n- Scenario\n---\nScenario\n"
    assert find_scenarios(other, "x.yaml") == []
    assert find_scenarios(b"Scenario: [unclosed", "x.yaml") == []
    assert len(find_scenarios(other + b"---\n" + HEAD.encode(), "x.yaml")) == 1
    assert len(find_scenarios(b'{"apiVersion": "phalanx.dev/v1alpha1", "kind": "Scenario", "seed": 3}', "x.json")) == 1


def test_the_reference_has_every_field_and_event_and_its_example_is_one() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenarios.md").read_text()
    of_autoscaler = {*AUTOSCALER_FIELDS, *POOL_FIELDS, "allocatable", "labels", "annotations", "taints", *COUNT_BY_FIELD}
    fields = {*FIELDS, *NODE_EVENTS, *of_autoscaler, "bind", "pull", "start", "stop"} - {"apiVersion", "kind", "metadata"}
    assert [name for name in sorted(fields) if f"`{name}`" not in text] == []
    examples = re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)
    assert len(find_scenarios(textwrap.dedent(examples[0]).encode(), "example")) == 1
    assert read(textwrap.dedent(examples[1])).settings.autoscaler is not None
    assert read(textwrap.dedent(examples[2])).expect[1].profiles == ("phalanx",)


# --- autoscaler ------------------------------------------------------------------------------------------------------------

POOL = "- {name: gpu, max: 4, template: {allocatable: {cpu: 8}}}"


def test_an_autoscaler_is_read() -> None:
    found = read("""
autoscaler:
  scanInterval: 5s
  unneededTime: 20m
  delayAfterAdd: 0
  backoff: 1m
  maxBackoff: 10m
  atomic: true
  keepForPending: true
  pools:
  - name: gpu
    min: 1
    max: 16
    delay: 1m..5m
    failureRate: 0.1
    stockouts:
    - {nodes: 4, at: 1h, until: 2h}
    template:
      allocatable: {cpu: 64, nvidia.com/gpu: 8}
      labels: {zone: east}
      annotations: {note: mine}
      taints:
      - {key: gpu, value: "true", effect: NoSchedule}
""")
    template = NodeTemplate(
        {"cpu": "64", "nvidia.com/gpu": "8"}, {"zone": "east"}, {"note": "mine"},
        ({"key": "gpu", "value": "true", "effect": "NoSchedule"},),
    )  # fmt: skip
    pool = NodePool("gpu", template, 16, 1, Span(60, 300), 0.1, (Stockout(4, 3600.0, 7200.0),))
    assert found.settings.autoscaler == AutoscalerSettings((pool,), 5.0, 1200.0, 0.0, 60.0, 600.0, True, True)


def test_the_defaults_of_an_autoscaler_are_those_of_cluster_autoscaler() -> None:
    found = read(f"autoscaler:\n  pools:\n  {POOL}\n").settings.autoscaler
    assert found == AutoscalerSettings((NodePool("gpu", NodeTemplate({"cpu": "8"}), 4),))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("autoscaler: {}", "line 3: autoscaler: pools: missing; an entry here needs pools"),
        ("autoscaler:\n  pools: []", "line 4: autoscaler.pools: an autoscaler needs a pool"),
        (f"autoscaler:\n  pool:\n  {POOL}", "line 4: autoscaler.pool: unknown; did you mean 'pools'?"),
        (f"autoscaler:\n  pools:\n  {POOL}\n  {POOL}", "autoscaler.pools: 'gpu' is there twice; give each pool a name of its own"),
        (f"autoscaler:\n  maxBackoff: 1m\n  pools:\n  {POOL}", "maxBackoff is shorter than backoff, 300 s; write at least as much"),
        (
            "autoscaler:\n  pools:\n  - {name: gpu, min: 5, max: 4, template: {allocatable: {cpu: 8}}}",
            "line 5: autoscaler.pools[0].min: 5 is more than max, 4; write at most as many",
        ),
        (
            "autoscaler:\n  pools:\n  - {name: gpu, max: 0, template: {allocatable: {cpu: 8}}}",
            "autoscaler.pools[0].max: 0 is not possible; write a number from 1 to 10000",
        ),
        (
            "autoscaler:\n  pools:\n  - {name: GPU pool, max: 1, template: {allocatable: {cpu: 8}}}",
            "autoscaler.pools[0].name: 'GPU pool' is not the name of a node; write lower case letters, digits and '-'",
        ),
        ("autoscaler:\n  pools:\n  - {name: gpu, max: 4}", "autoscaler.pools[0]: template: missing; an entry here needs name and"),
        (
            "autoscaler:\n  pools:\n  - {name: gpu, max: 4, template: {allocatable: {cpu: many}}}",
            "autoscaler.pools[0].template.allocatable.cpu: quantity 'many': not a number with a suffix",
        ),
        (
            "autoscaler:\n  pools:\n  - {name: gpu, max: 4, template: {allocatable: {cpu: 8}, taints: [{key: a, effect: Never}]}}",
            "autoscaler.pools[0].template.taints[0].effect: 'Never' is unknown; write one of NoSchedule",
        ),
        (
            "autoscaler:\n  pools:\n  - {name: gpu, max: 4, failureRate: 30, template: {allocatable: {cpu: 8}}}",
            "autoscaler.pools[0].failureRate: '30' is not a fraction; write a number from 0 to 1, such as 0.1",
        ),
        (
            "autoscaler:\n  pools:\n  - name: gpu\n    max: 4\n    stockouts: [{nodes: 0, at: 2h, until: 1h}]",
            "stockouts[0].until: 3600 s is not after its beginning, 7200 s; write a later time",
        ),
    ],
)  # fmt: skip
def test_a_wrong_autoscaler_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(text)
    assert problem in str(refused.value)
