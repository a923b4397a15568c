"""`phalanx try`: where a job would run, whom it would evict, or why it waits, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.model.kinds import Document
from phalanx.testing import build
from tests.support import native_groups as native
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


@pytest.mark.parametrize(("more", "message"), [
    (["--config", "c", "--profile", "kai"], "--config and --profile exclude each other"),
    (["--now", "soon"], "--now"),
    (["--timeout", "soon"], "--timeout: 'soon' is not a duration"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(tmp_path: Path, more: list[str], message: str) -> None:
    result = run(tmp_path, [JOB], [build.node("n0")], *more)
    assert (result.exit_code, message in result.stderr) == (2, True)
