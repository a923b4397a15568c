"""`phalanx schedule`: what it reads, what it writes where, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.testing import build

NOW = "2026-01-01T12:00:00Z"


def cluster(*parts: Any) -> str:
    objects = [document for part in parts for document in ([part] if isinstance(part, dict) else part)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


BOTH = cluster(build.node("node-0", gpus=2), build.gang("a", tasks=2, gpus=1), build.gang("b", tasks=2, gpus=1))
ONE = cluster(build.node("node-0", gpus=2), build.gang("a", tasks=2, gpus=1))


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(main, ["schedule", *arguments], input=given, prog_name="phalanx")


def stdin(given: str, *more: str) -> Result:
    return run("-f", "-", "--now", NOW, *more, given=given)


# --- forms ---------------------------------------------------------------------------------------------------------------


def test_the_table_shows_gangs_placements_and_reasons() -> None:
    assert stdin(BOTH).stdout == (
        "GANG       QUEUE    STATUS  MIN  PLACED  RUNNING  WHY\n"
        "default/a  default  Starts    2       2        0\n"
        "default/b  default  Waits     2       0        0  0 of 2 tasks fit; 2 more places for 1 nvidia.com/gpu needed"
        " (0 of 2 nvidia.com/gpu are free, 2 needed)\n"
        "\n"
        "PLACEMENTS\n"
        "default/a  node-0 ×2\n"
        "\n"
        "2 gangs: 1 starts, 1 waits; 2 pods placed on 1 node\n"
    )


def test_json_and_yaml_hold_the_same_answer() -> None:
    answer = json.loads(stdin(BOTH, "-o", "json").stdout)
    assert yaml.safe_load(stdin(BOTH, "-o", "yaml").stdout) == answer
    assert list(answer) == ["binds", "pipelined", "evictions", "tasks", "groups", "claims", "queues"]
    assert answer["binds"] == {"default/a-0": "node-0", "default/a-1": "node-0"}


def test_the_answer_is_the_same_as_that_of_a_batch_request() -> None:
    request = json.dumps({"id": "1", "now": NOW, "objects": json.loads(BOTH)["items"]})
    answer = json.loads(run("--batch", given=request).stdout)
    assert {"id": "1", "error": None, **json.loads(stdin(BOTH, "-o", "json").stdout)} == answer


def test_a_cluster_without_gangs_says_what_it_has() -> None:
    result = stdin(cluster(build.node("node-0"), build.pod("x", on="node-0")))
    assert (result.exit_code, result.stdout) == (0, "No gangs: the input has 1 node with 1 pod, and no PodGroup.\n")


# --- input ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("-f", "a.json", "-f", "b.json"), ("-f", "a.json", "b.json"), ("-f", ".")])
def test_several_paths_make_one_cluster(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text(cluster(build.node("node-0", gpus=2)))
    Path("b.json").write_text(cluster(build.gang("a", tasks=2, gpus=1)))
    assert len(json.loads(run(*arguments, "-o", "json").stdout)["binds"]) == 2


def test_what_is_skipped_is_noted_on_stderr() -> None:
    ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "d"}}
    result = stdin(cluster(json.loads(ONE)["items"], ingress))
    assert result.stderr == "note: skipped what a session does not read: 1 Ingress.networking.k8s.io\n"
    assert "note" not in result.stdout


def test_a_broken_object_is_refused_alone_and_the_rest_is_decided() -> None:
    objects = cluster(json.loads(ONE)["items"], {"apiVersion": "v1", "kind": "Pod"})
    sentence = "stdin, document 1, items[4]: Pod without a name: metadata.name: missing"
    result = stdin(objects)
    assert (result.exit_code, result.stderr) == (3, "")
    assert "1 starts" in result.stdout
    assert result.stdout.endswith(f"\n\nREFUSED\n{sentence}\n")
    answer = json.loads(stdin(objects, "-o", "json").stdout)
    assert answer["binds"]
    assert answer["refused"] == [{"object": "Pod without a name", "message": sentence}]


def test_a_pod_with_generate_name_alone_is_refused_with_what_to_write() -> None:
    result = stdin(cluster(json.loads(ONE)["items"], {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}}))
    assert "metadata.name: missing; generateName is for the API server, here write the name" in result.stdout


def test_a_broken_group_is_told_so() -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "x"},
        "spec": {"minMember": "a"},
    }
    answer = json.loads(stdin(cluster(json.loads(ONE)["items"], group), "-o", "json").stdout)
    assert answer["groups"]["default/x"]["conditions"][0]["type"] == "Refused"
    assert "minMember" in answer["groups"]["default/x"]["why"]


def test_empty_stdin_says_what_to_pipe_into_it() -> None:
    result = stdin("")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: stdin: no objects in it; 'phalanx schedule --context NAME' reads a live cluster itself")
    assert "a snapshot of one is printed by: kubectl get " in result.stderr


# --- settings ------------------------------------------------------------------------------------------------------------


def test_a_configuration_decides(tmp_path: Path) -> None:
    config = tmp_path / "volcano-scheduler.conf"
    config.write_text('actions: "allocate"\ntiers:\n- plugins:\n  - name: predicates\n')
    answer = json.loads(stdin(BOTH, "-o", "json", "--config", str(config)).stdout)
    assert len(answer["binds"]) == 2
    assert answer["queues"] == {}


def test_a_wrong_argument_in_a_configuration_is_found_before_the_session(tmp_path: Path) -> None:
    config = tmp_path / "a.conf"
    config.write_text("tiers:\n- plugins:\n  - {name: gang, arguments: {min: 3}}\n")
    result = stdin(ONE, "--config", str(config))
    assert result.exit_code == 1
    assert "tiers[0].plugins[0]: plugin 'gang', argument 'min': unknown setting" in result.stderr


def test_a_profile_is_chosen_by_name() -> None:
    assert stdin(ONE, "--profile", "volcano").stdout == stdin(ONE).stdout
    assert stdin(ONE, "--profile", "vulcano").stderr == "error: profile: unknown profile 'vulcano'; did you mean 'volcano'?\n"


def test_now_is_the_time_of_the_session(tmp_path: Path) -> None:
    config = tmp_path / "sla.conf"
    config.write_text("tiers:\n- plugins:\n  - {name: sla, arguments: {sla-waiting-time: 1h}}\n- plugins: [{name: overcommit}]\n")
    group = build.pod_group("a", minResources={"cpu": "100"})
    group["metadata"]["creationTimestamp"] = "2026-01-01T11:30:00Z"
    given = cluster(build.node("node-0"), group, build.pod("a-0", group="a", cpu=100))

    def phase(now: str) -> Any:
        result = run("-f", "-", "--now", now, "-o", "json", "--config", str(config), given=given)
        return json.loads(result.stdout)["groups"]["default/a"]["phase"]

    assert (phase("2026-01-01T12:00:00Z"), phase("2026-01-01T13:00:00")) == ("Pending", "Inqueue")


def test_a_job_of_volcanos_own_controller_is_admitted_though_its_minimum_holds_names_of_quotas() -> None:
    # As Volcano's job controller writes it for two pods that ask for 1 cpu, 1Gi and 1 GPU each, with limits.
    minimum = {"count/pods": "2", "pods": "2", "cpu": "2", "requests.cpu": "2", "limits.cpu": "4", "memory": "2Gi"}
    minimum |= {"requests.memory": "2Gi", "limits.memory": "4Gi", "nvidia.com/gpu": "2", "requests.nvidia.com/gpu": "2"}
    group, *pods = build.gang("train", tasks=2, cpu=1, memory="1Gi", gpus=1)
    group["spec"]["minResources"] = minimum
    result = stdin(cluster(build.node("node-0", gpus=2), group, pods), "--profile", "volcano", "-o", "json")
    answer = json.loads(result.stdout)
    assert answer["groups"]["default/train"]["why"] == ""
    assert answer["binds"] == {"default/train-0": "node-0", "default/train-1": "node-0"}


def hypernode(pattern: str) -> dict[str, Any]:
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "rack"},
            "spec": {"tier": 1, "members": [member]}}  # fmt: skip


@pytest.mark.parametrize("pattern", ["^(a+)+b$", "^(a|a)*b$", "(a*)*(a*)*(a*)*(a*)*b"])
def test_a_hypernode_with_a_pattern_that_other_engines_never_finish_costs_no_time(pattern: str) -> None:
    given = cluster(build.node("a" * 63), hypernode(pattern), build.gang("train", tasks=2, cpu=1))
    command = [sys.executable, "-m", "phalanx", "schedule", "-f", "-", "-o", "json"]
    # In a process of its own: an engine that does not come back would not let this test end either.
    answer = json.loads(subprocess.run(command, input=given, capture_output=True, text=True, timeout=10, check=True).stdout)
    assert answer["binds"] == {"default/train-0": "a" * 63, "default/train-1": "a" * 63}


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        (
            r"(a)\1",
            r"'(a)\\1' cannot be read: invalid escape sequence: \1; write it in RE2's syntax, without look-around and backref",
        ),
        ("^a(?!b)", "'^a(?!b)' cannot be read: invalid perl operator: (?!; write it in RE2's syntax, without look-around"),
        ("(", "'(' cannot be read: missing ): (; write it in RE2's syntax"),
        ("a{1001}", "'a{1001}' cannot be read: invalid repetition size: {1001}; write it in RE2's syntax"),
        ("((a{100}){100}){100}", "cannot be read: invalid repetition size: {100}; write it in RE2's syntax"),
        (r"\pL" * 300, "cannot be read: pattern too large - compile failed; write it in RE2's syntax"),
        ("a" * 2000, "aaa...' cannot be read: it has 2000 characters; write at most 1000"),
    ],
)
def test_a_pattern_that_re2_does_not_read_is_refused_with_what_to_write(pattern: str, sentence: str) -> None:
    result = stdin(cluster(build.node("a"), hypernode(pattern), build.gang("train", tasks=1, cpu=1)))
    assert "HyperNode rack: spec.members: regexMatch.pattern" in result.stdout
    assert sentence in result.stdout
    assert (result.exit_code, result.stderr) == (3, "")
    assert "default/train  a ×1" in result.stdout


def test_broken_hypernodes_and_constraints_without_effect_are_notes_beside_the_result() -> None:
    group, *pods = build.gang("train", tasks=2, cpu=1)
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    given = cluster(build.node("a"), build.hypernode("rack", tier=1, members=["a", "gone"]), group, pods)
    broken = "note: HyperNode rack: spec.members: Node 'gone' does not exist; create it, or remove the member\n"
    assert (stdin(given).exit_code, stdin(given).stderr) == (0, broken)
    result = stdin(given, "--profile", "volcano", "-o", "json")
    assert result.stderr == broken + (
        "note: PodGroup default/train: spec.networkTopology is hard, but has no effect:"
        " no plugin of the configuration heeds HyperNodes; add network-topology-aware\n"
    )
    assert len(json.loads(result.stdout)["binds"]) == 2


# --- the trace ----------------------------------------------------------------------------------------------------------


def test_the_course_is_silent_unless_asked_for() -> None:
    assert stdin(ONE).stderr == ""
    assert "trace" not in json.loads(stdin(ONE, "-o", "json").stdout)


def test_the_course_goes_to_stderr_beside_a_table() -> None:
    result = stdin(ONE, "-v", "3")
    assert "[3] try gang default/a of queue default\n" in result.stderr
    assert result.stdout == stdin(ONE).stdout


def test_the_course_is_a_list_in_an_answer_for_programs() -> None:
    result = stdin(ONE, "-v", "5", "-o", "json")
    trace = json.loads(result.stdout)["trace"]
    assert result.stderr == ""
    assert {"level": 5, "event": "enter", "text": "enter action allocate", "action": "allocate"} in trace
    assert {step["level"] for step in trace} == {3, 4, 5}


def test_the_trace_of_a_gang_leaves_others_out() -> None:
    two = cluster(build.node("node-0", gpus=4), build.gang("a", tasks=2, gpus=1), build.gang("b", tasks=2, gpus=1))
    assert "default/b" in stdin(two, "-v", "5").stderr
    everything = stdin(two, "-v", "5", "--gang", "default/a").stderr
    assert "[3] try gang default/a of queue default\n" in everything
    assert "[5] enter action allocate\n" in everything
    assert "default/b" not in everything


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--gang", "default/a"), "--gang: it narrows the trace; add -v 3, -v 4 or -v 5"),
        (("-v", "3", "--gang", "a"), "--gang: 'a' is no name of a gang; write NAMESPACE/NAME, for example research/bert"),
    ],
)
def test_a_gang_to_trace_needs_a_trace_and_a_whole_name(options: tuple[str, ...], says: str) -> None:
    result = stdin(ONE, *options)
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_gang_to_trace_that_is_not_there_is_noted() -> None:
    assert "note: --gang: the input has no gang default/nobody\n" in stdin(ONE, "-v", "3", "--gang", "default/nobody").stderr


# --- endings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (ONE, 0),
        (BOTH, 3),
        (cluster(build.node("node-0"), build.gang("a", tasks=99, min_member=1, cpu=1)), 0),
        (cluster(build.node("node-0"), build.pod_group("a", min_member=1)), 3),
        ("{", 1),
    ],
    ids=["all start", "one waits", "only surplus tasks wait", "a gang without pods waits", "broken input"],
)
def test_the_exit_status_says_whether_every_gang_has_its_minimum(given: str, status: int) -> None:
    assert [stdin(given, "-o", form).exit_code for form in ("table", "json", "yaml")] == [status] * 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "nothing to read: name a cluster with --context or --server, files or folders with -f, or stdin with -f -"),
        (("-f", "-", "-f", "-"), "stdin can be read only once: one '-' at most"),
        (("-f", "-", "--config", "-"), "stdin can be read only once: one '-' at most"),
        (("--batch", "-f", "a.yaml"), "--batch takes no other option: each request brings its own objects, config and now"),
        (("--batch", "-o", "json"), "--batch takes no other option: each request brings its own objects, config and now"),
        (("-f", "a", "--config", "b", "--profile", "c"),
         "--config and --profile exclude each other; a configuration may say 'profile: NAME' itself"),
        (("-f", "-", "--now", "noon"), "--now: 'noon' is not a time; write for example '2026-01-01T12:00:00Z'"),
        (("-f", "-", "-v", "9"), "Invalid value for '-v': '9' is not one of '3', '4', '5'."),
        (("-f", "-", "-o", "xml"), "Invalid value for '-o' / '--output': 'xml' is not one of 'table', 'json', 'yaml'."),
    ],
)  # fmt: skip
def test_wrong_usage_exits_with_2_and_a_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    result = run(*arguments, given=ONE)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == f"Error: {sentence}"
