"""`phalanx explain`: which gang is meant, what is shown where, and how it ends."""

import json
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.cli.explanation_text import explanation_lines
from phalanx.cli.gang_choice import chosen_gang
from phalanx.cli.output import PLAIN_SIGNS, SIGNS, Terminal, _signs
from phalanx.cli.streams import sent
from phalanx.errors import SnapshotError
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support.explained_gangs import NOON, explained

NOW = "2026-01-01T12:00:00Z"
NODE = build.node("node-0", gpus=2)
WAITS, STARTS = build.gang("big", tasks=4, gpus=1), build.gang("small", tasks=2, gpus=1)


def run(name: str, *objects: Any, more: tuple[str, ...] = (), program: str = "phalanx") -> Result:
    documents = [document for part in objects for document in ([part] if isinstance(part, dict) else part)]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    return CliRunner().invoke(main, ["explain", name, "-f", "-", "--now", NOW, *more], input=given, prog_name=program)


# --- which gang ----------------------------------------------------------------------------------------------------------

GANGS: dict[str, set[str]] = {
    "ml/bert": {"train-bert"}, "ml/gpt@yunikorn": set(), "dev/bert": set(), "dev/solo-5f7": {"solo"}, "gang/odd": set(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "namespace", "key"),
    [
        ("ml/bert", None, "ml/bert"), ("gang/ml/bert", None, "ml/bert"), ("gangs/ml/bert", None, "ml/bert"),
        ("bert", "dev", "dev/bert"), ("gpt", None, "ml/gpt@yunikorn"), ("train-bert", None, "ml/bert"),
        ("solo", None, "dev/solo-5f7"), ("gang/odd", None, "gang/odd"), ("gang/solo-5", None, "dev/solo-5f7"),
        ("ml/ber", None, "ml/bert"),
    ],
)  # fmt: skip
def test_a_gang_is_found_by_what_people_type(typed: str, namespace: str | None, key: str) -> None:
    assert chosen_gang(typed, namespace, GANGS) == key


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("bert", "'bert' may be one of dev/bert, ml/bert; write which, with its namespace"),
        ("", "there is no gang ; there are dev/bert, dev/solo-5f7, gang/odd, ml/bert, ml/gpt@yunikorn"),
        ("ml/brt", "there is no gang ml/brt; did you mean ml/bert?"),
        ("ml/brew", "there is no gang ml/brew; there are ml/bert, ml/gpt@yunikorn"),
        ("lm/bert", "there is no gang lm/bert; did you mean ml/bert?"),
        ("brt-x", "there is no gang brt-x; there are dev/bert, dev/solo-5f7, gang/odd, ml/bert, ml/gpt@yunikorn"),
        ("sool-5f7", "there is no gang sool-5f7; did you mean dev/solo-5f7?"),
    ],
)
def test_a_name_that_means_no_gang_or_several_says_so(typed: str, message: str) -> None:
    with pytest.raises(SnapshotError) as problem:
        chosen_gang(typed, None, GANGS)
    assert str(problem.value) == message


def test_without_gangs_there_is_nothing_to_suggest() -> None:
    with pytest.raises(SnapshotError, match="there is no gang bert, nor any other"):
        chosen_gang("bert", None, {})


def test_the_owner_of_a_group_finds_its_gang() -> None:
    group, *pods = build.gang("pg-1234", tasks=4, gpus=1)
    group["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"}]
    assert run("train", NODE, group, pods).stdout.startswith("default/pg-1234 waits: ")


# --- what is shown -------------------------------------------------------------------------------------------------------


def test_a_gang_that_waits_is_explained_and_ends_with_3() -> None:
    result = run("default/big", NODE, WAITS)
    assert result.exit_code == 3
    first, *rest = result.stdout.splitlines()
    assert first.startswith("default/big waits: 2 of 4 tasks fit; 2 more places for 1 nvidia.com/gpu needed")
    assert "  ✓ valid      4 pods are there, 4 are needed" in rest


def test_a_gang_that_starts_gets_a_short_answer_and_ends_with_0() -> None:
    result = run("small", NODE, STARTS)
    assert (result.exit_code, result.stdout) == (0, "default/small starts\n  ✓ bind       2 pods are placed on node-0 (2)\n")


def test_a_gang_that_runs_gets_a_short_answer_too() -> None:
    group = build.pod_group("old", phase="Running")
    result = run("old", NODE, group, build.pod("old-0", group="old", on="node-0", gpus=1))
    assert (result.exit_code, result.stdout) == (0, "default/old runs\n  ✓ bind       1 pod is on node-0 (1)\n")


def test_a_gang_of_which_a_part_waits_says_so_once() -> None:
    group, running = build.pod_group("old", phase="Running"), build.pod("old-0", group="old", on="node-0", gpus=1)
    result = run("old", NODE, group, running, build.pod("old-1", group="old", gpus=9))
    assert result.exit_code == 0
    assert result.stdout.startswith("default/old runs with its minimum of 1; 1 more task waits: no place for 9 nvidia.com/gpu")
    assert "  ✓ bind       1 pod is on node-0 (1)\n" in result.stdout


def test_a_gang_without_pods_waits() -> None:
    result = run("old", NODE, build.pod_group("old", min_member=2, phase="Inqueue"))
    assert (result.exit_code, result.stdout.splitlines()[0]) == (3, "default/old waits: no pods yet; 2 are needed")


def test_the_headline_is_the_sentence_of_schedule() -> None:
    answer = json.loads(run("big", NODE, WAITS, more=("-o", "json")).stdout)
    documents = json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *WAITS]})
    scheduled = CliRunner().invoke(main, ["schedule", "-f", "-", "--now", NOW, "-o", "json"], input=documents)
    assert answer["why"] == json.loads(scheduled.stdout)["groups"]["default/big"]["why"]


def test_json_and_yaml_hold_the_same_tree() -> None:
    answer = json.loads(run("big", NODE, WAITS, more=("-o", "json")).stdout)
    assert yaml.safe_load(run("big", NODE, WAITS, more=("-o", "yaml")).stdout) == answer
    assert list(answer) == ["gang", "queue", "status", "reason", "why", "moreNodesHelp", "stages", "wouldStart"]
    assert {result["stage"]: result["ok"] for result in answer["stages"]}["valid"] is True


def test_a_terminal_gets_wrapped_lines_and_colours_and_a_pipe_neither() -> None:
    found = explained(NODE, WAITS, gang="default/big")
    narrow = list(explanation_lines(found, Terminal(width=60)))
    assert all(len(line) <= 60 for line in narrow)
    assert " ".join(" ".join(narrow).split()) == " ".join(" ".join(explanation_lines(found, Terminal())).split())
    coloured = sent("\n".join(explanation_lines(found, Terminal(has_colour=True))))
    assert "\x1b[32m  ✓ valid" in coloured
    assert "\x1b" not in "\n".join(explanation_lines(found, Terminal()))


@pytest.mark.parametrize(
    ("encoding", "signs"), [("utf-8", SIGNS), ("latin-1", PLAIN_SIGNS), ("ascii", PLAIN_SIGNS), (None, PLAIN_SIGNS)]
)
def test_the_signs_are_those_that_the_output_can_show(encoding: str | None, signs: tuple[str, ...]) -> None:
    assert _signs(encoding) == signs


def test_control_characters_of_objects_do_not_reach_the_terminal() -> None:
    group, *pods = build.gang("train", tasks=2, cpu=90)
    condition = {"type": "Unschedulable", "status": "True", "message": "red \x1b[31m\nline\x9b", "lastTransitionTime": NOW}
    group["status"]["conditions"] = [condition]
    shown = "\n".join(explanation_lines(explained(NODE, group, pods, now=NOON + 60), Terminal()))
    assert "red ^[[31m line\\u009b" in shown
    assert not {"\x1b", "\x9b"} & set(shown)


def test_control_characters_reach_the_terminal_neither_in_remedies_nor_in_tables() -> None:
    group, *pods = build.gang("big", tasks=1, gpus=1, queue="a\x1b[31m")
    pods[0]["spec"]["nodeSelector"] = {"zone": "x\x07\nGANG"}
    documents = [NODE, build.queue("a\x1b[31m"), group, *pods]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    scheduled = CliRunner().invoke(main, ["schedule", "-f", "-", "--now", NOW], input=given)
    found = run("big", *documents)
    assert "without the node selector zone=x^G GANG" in found.stdout
    assert not {"\x1b", "\x07"} & set(found.output + scheduled.output)


def test_a_gang_behind_our_gate_has_the_sentence_of_schedule_too() -> None:
    marks = {"labels": {"phalanx.dev/gang": "big"}, "annotations": {"phalanx.dev/min-member": "3"}}
    pods = [build.pod(f"big-{number}", gpus=1, spec={"schedulingGates": [{"name": "phalanx.dev/gang"}]}) for number in range(3)]
    for pod in pods:
        pod["metadata"] = {**pod["metadata"], **marks}
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *pods]})
    scheduled = CliRunner().invoke(main, ["schedule", "-f", "-", "--now", NOW, "-o", "json"], input=given)
    why = json.loads(scheduled.stdout)["groups"]["default/big"]["why"]
    assert why.startswith("2 of 3 tasks fit; ")
    assert why == json.loads(run("big", NODE, pods, more=("-o", "json")).stdout)["why"]


def test_what_is_wrong_with_all_pods_of_an_owner_is_said_once() -> None:
    pods = [build.pod(f"p-{number}", gpus=1, spec={"schedulerName": "phalanx"}) for number in range(4)]
    for pod in pods:
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "p", "uid": "p", "controller": True}
        ]
    found = run("p-0", NODE, pods)
    assert found.stderr.count("is not there, so only its name counts") == 1
    assert "Pod default/p-0 and 3 others: Job default/p: is not there" in found.stderr


# --- what goes wrong -----------------------------------------------------------------------------------------------------


def test_warnings_and_notes_on_the_input_go_to_stderr_as_those_of_schedule() -> None:
    group, *pods = build.gang("big", tasks=4, gpus=1)
    del group["metadata"]["uid"]
    group["spec"]["minMembr"] = 4
    result = run("big", NODE, group, pods, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    assert 'unknown field "spec.minMembr" in PodGroup default/big' in result.stderr
    assert "skipped what a session does not read: 1 ConfigMap" in result.stderr
    assert "minMembr" not in result.stdout


def test_a_group_that_was_rejected_is_explained() -> None:
    broken: Document = {**build.pod_group("bad"), "spec": {"minMember": "many"}}
    result = run("default/bad", NODE, broken, STARTS, build.pod("bad-0", group="bad"))
    assert "is not in the input" not in result.stderr
    assert (result.exit_code, result.stdout.splitlines()[0].partition(": ")[0]) == (3, "default/bad waits")
    assert "✗ valid      its group was rejected: " in result.stdout
    other = run("small", NODE, broken, STARTS)
    assert (other.exit_code, "note: rejected: " in other.stderr) == (0, True)


def test_a_group_that_does_not_exist_is_explained() -> None:
    pods = [build.pod(f"p-{number}", group="bert", gpus=1) for number in range(2)]
    for pod in pods:
        pod["spec"]["schedulerName"] = "volcano"
    result = run("bert", NODE, pods)
    assert result.exit_code == 3
    assert result.stdout.startswith("default/bert waits: 2 pods wait for PodGroup default/bert of scheduling.volcano.sh")


def test_an_unknown_gang_is_an_error_with_the_nearest_name() -> None:
    result = run("default/bigg", NODE, WAITS)
    assert (result.exit_code, result.stderr) == (1, "error: there is no gang default/bigg; did you mean default/big?\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "a", "-f", "-", "-f", "-"], "stdin can be read only once"),
        (["explain", "a", "-f", "-", "--config", "c", "--profile", "kai"], "--config and --profile exclude each other"),
        (["explain", "a", "-f", "-", "--now", "soon"], "--now"),
    ],
)
def test_options_that_make_no_sense_are_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, arguments, input="", prog_name="phalanx")
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_kubectl_phalanx_explain_is_the_same_command() -> None:
    assert run("big", NODE, WAITS, program="kubectl phalanx").stdout == run("big", NODE, WAITS).stdout
    shown = CliRunner().invoke(main, ["explain", "--help"], prog_name="kubectl phalanx").stdout
    assert "kubectl phalanx explain research/bert -f cluster.yaml" in shown


# --- what if -------------------------------------------------------------------------------------------------------------


def test_what_would_start_it_is_below_the_stages() -> None:
    result = run("big", NODE, WAITS)
    assert result.exit_code == 3
    assert "  would start with minMember 2 (--if 'gang/default/big.minMember=2')" in result.stdout
    assert "would start" not in run("big", NODE, WAITS, more=("--timeout", "0")).stdout


def test_a_change_is_asked_about_and_what_else_it_changes() -> None:
    result = run("big", NODE, WAITS, STARTS, more=("--if", "node/node-0.allocatable.nvidia.com/gpu=4", "--if", "gang/small=gone"))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("default/big starts")
    assert "  also: default/small would not be there" in result.stdout
    answer = json.loads(run("big", NODE, WAITS, more=("--if", "node/+1=node-0", "-o", "json")).stdout)
    assert (answer["status"], answer["if"], answer["others"]) == ("Starts", ["node/+1=node-0"], [])


def test_a_change_that_cannot_be_made_says_what_to_write() -> None:
    result = run("big", NODE, WAITS, more=("--if", "node/node-1=gone"))
    assert result.exit_code == 1
    assert "error: change 'node/node-1=gone': there is no node 'node-1'; did you mean 'node-0'?" in result.stderr
