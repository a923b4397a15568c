"""`phalanx try`: where a job would run, whom it would evict, or why it waits, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.model.kinds import Document
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support import native_groups as native
from tests.support.http_api import Gatekeeper, served
from tests.support.trial_clusters import running_gang

NOW = "2026-01-01T12:00:00Z"
JOB: dict[str, Any] = {
    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train", "namespace": "default"},
    "spec": {
        "minAvailable": 2, "schedulerName": "phalanx",
        "tasks": [{
            "name": "worker", "replicas": 2,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "example", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
            }},
        }],
    },
}  # fmt: skip


def run(tmp_path: Path, new: list[Any], cluster: list[Any], *more: str) -> Result:
    for name, items in (("new.json", new), ("cluster.json", cluster)):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        (tmp_path / name).write_text(text)
    files = ["-f", str(tmp_path / "new.json"), "--cluster", str(tmp_path / "cluster.json")]
    return CliRunner().invoke(main, ["try", *files, "--now", NOW, *more], prog_name="phalanx")


def with_priority(job: dict[str, Any], name: str) -> dict[str, Any]:
    return {**job, "spec": {**job["spec"], "priorityClassName": name}}


def test_a_job_that_starts_shows_where_its_pods_would_run(tmp_path: Path) -> None:
    result = run(tmp_path, [JOB], [build.node("n0", gpus=2), build.node("n1", gpus=2)])
    assert result.exit_code == 0, result.output
    assert "would start: 2 pods on 2 nodes" in result.stdout
    assert "on n0: train-worker-" in result.stdout


def test_a_job_that_waits_is_explained_with_what_would_start_it(tmp_path: Path) -> None:
    result = run(tmp_path, [JOB], [build.node("n0", gpus=2)])
    assert result.exit_code == 3, result.output
    assert " waits: 1 of 2 tasks fit" in result.stdout
    assert "would start with 1 more node like n0 (--if 'node/+1=n0')" in result.stdout


def test_several_files_may_follow_as_a_shell_expands_them(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**JOB, "metadata": {"name": "second", "namespace": "default"}}))
    files = ["-f", str(tmp_path / "new.json"), str(other)]
    run(tmp_path, [JOB], [build.node("n0", gpus=8)])
    result = CliRunner().invoke(main, ["try", *files, "--cluster", str(tmp_path / "cluster.json"), "--now", NOW])
    assert result.exit_code == 0, result.output
    assert result.stdout.count("would start: 2 pods on 1 node") == 2


def test_victims_are_named_with_the_action_that_evicts_them(tmp_path: Path) -> None:
    cluster = [build.node("n0", gpus=4), native.priority_class("high", 100), *running_gang("runs", "n0", "n0", gpus=2)]
    result = run(tmp_path, [with_priority(JOB, "high")], cluster)
    assert result.exit_code == 0, result.output
    assert "would start once others have left" in result.stdout
    assert "evicts default/runs: 2 pods, by the action " in result.stdout
    assert "also: default/runs would be evicted (2 pods)" in result.stdout


def test_programs_get_the_same_as_data(tmp_path: Path) -> None:
    answer = json.loads(run(tmp_path, [JOB], [build.node("n0", gpus=2)], "-o", "json").stdout)
    (gang,) = answer["gangs"]
    assert (answer["starts"], gang["starts"], gang["status"]) == (False, False, "Waits")
    assert ["node/+1=n0"] in [remedy["changes"] for remedy in gang["wouldStart"]["remedies"]]
    started = json.loads(run(tmp_path, [JOB], [build.node("n0", gpus=4)], "-o", "json").stdout)
    assert set(started["gangs"][0]["nodes"].values()) == {"n0"}


def test_what_the_api_server_would_reject_is_said(tmp_path: Path) -> None:
    pod: Document = {**build.pod("bad", group="bad"), "spec": {"containers": [], "priorityClassName": "nobody"}}
    result = run(tmp_path, [pod], [build.node("n0")])
    assert result.exit_code == 3, result.output
    assert "Pod default/bad would be rejected: " in result.stdout


def test_a_submission_without_pods_is_an_error(tmp_path: Path) -> None:
    result = run(tmp_path, [native.priority_class("high", 100)], [build.node("n0")])
    assert (result.exit_code, "makes no pods now" in result.stderr) == (1, True)


def test_a_submission_without_pods_is_an_error_for_programs_too(tmp_path: Path) -> None:
    job = {**JOB, "apiVersion": "batch/v1", "spec": {"suspend": True, "template": JOB["spec"]["tasks"][0]["template"]}}
    result = run(tmp_path, [job], [build.node("n0")], "-o", "json")
    assert result.exit_code == 1, result.output
    assert "is suspended" in json.loads(result.stdout)["notes"][0]


def test_a_gang_is_called_what_was_submitted(tmp_path: Path) -> None:
    cluster = [build.node("n0", gpus=4)]
    result = run(tmp_path, [JOB], cluster)
    assert result.stdout.startswith("Job default/train would start: 2 pods on 1 node\n")
    assert json.loads(run(tmp_path, [JOB], cluster, "-o", "json").stdout)["gangs"][0]["object"] == "Job default/train"
    group = run(tmp_path, [build.pod_group("g"), build.pod("p", group="g")], cluster)
    assert group.stdout.startswith("default/g would start: 1 pod on 1 node\n")


def test_several_gangs_of_one_object_are_told_apart(tmp_path: Path) -> None:
    spec = {"restartPolicy": "Never", "schedulerName": "phalanx", "containers": [{"name": "main", "image": "example"}]}
    job = {**JOB, "apiVersion": "batch/v1", "spec": {"parallelism": 2, "template": {"spec": spec}}}
    result = run(tmp_path, [job], [build.node("n0", gpus=4)])
    assert [line.partition("-0000")[0] for line in result.stdout.splitlines() if "would start" in line] == [
        "Job default/train (gang pg-train",
        "Job default/train (gang pg-train",
    ]


def test_what_runs_already_is_not_started(tmp_path: Path) -> None:
    running = running_gang("runs", "n0", "n0", gpus=2)
    result = run(
        tmp_path, [document for document in running if document["kind"] == "PodGroup"], [build.node("n0", gpus=4), *running]
    )
    assert (result.exit_code, "default/runs runs already: 2 pods on 1 node" in result.stdout) == (0, True)


def test_changes_are_made_besides(tmp_path: Path) -> None:
    cluster = [build.node("n0", gpus=2)]
    assert run(tmp_path, [JOB], cluster, "--timeout", "0").exit_code == 3
    result = run(tmp_path, [JOB], cluster, "--if", "node/+1=n0", "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)["if"]) == (0, ["node/+1=n0"])


def test_every_remedy_can_be_typed(tmp_path: Path) -> None:
    cluster = [build.node("n0", gpus=2)]
    (gang,) = json.loads(run(tmp_path, [JOB], cluster, "-o", "json").stdout)["gangs"]
    for remedy in gang["wouldStart"]["remedies"]:
        changes = [part for change in remedy["changes"] for part in ("--if", change)]
        assert run(tmp_path, [JOB], cluster, "--timeout", "0", *changes).exit_code == 0, remedy


def test_objects_without_a_namespace_go_where_one_says(tmp_path: Path) -> None:
    job = {**JOB, "metadata": {"name": "train"}}
    cluster = [build.node("n0", gpus=4)]
    assert "Job default/train would start" in run(tmp_path, [job], cluster).stdout
    assert "Job ml/train would start" in run(tmp_path, [job], cluster, "-n", "ml").stdout


def test_misspelt_fields_are_warned_about(tmp_path: Path) -> None:
    result = run(tmp_path, [{**JOB, "spec": {**JOB["spec"], "minAvailabel": 1}}], [build.node("n0", gpus=4)])
    assert 'unknown field "spec.minAvailabel" in Job default/train' in result.stderr


def test_what_may_not_be_read_of_a_cluster_is_said(tmp_path: Path) -> None:
    store = MemoryStore(lambda: 1_767_225_600.0)
    store.load(build.node("n0", gpus=4))
    (tmp_path / "new.json").write_text(json.dumps(JOB))
    with served(store, gatekeeper=Gatekeeper(hidden=("resourcequotas",))) as connection:
        arguments = ["try", "-f", str(tmp_path / "new.json"), "--server", connection.server, "-o", "json"]
        result = CliRunner().invoke(main, arguments, prog_name="phalanx")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["notes"] == ["may not list resourcequotas (forbidden): quotas of namespaces are not respected"]


@pytest.mark.parametrize(("more", "message"), [
    (["--config", "c", "--profile", "kai"], "--config and --profile exclude each other"),
    (["--now", "soon"], "--now"),
    (["--timeout", "soon"], "--timeout: 'soon' is not a duration"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(tmp_path: Path, more: list[str], message: str) -> None:
    result = run(tmp_path, [JOB], [build.node("n0")], *more)
    assert (result.exit_code, message in result.stderr) == (2, True)
