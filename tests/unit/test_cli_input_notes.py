"""Every command that holds a session says the same about a bad input, to people and to programs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.testing import build
from phalanx.testing.build import Document

NOW = "2026-01-01T12:00:00Z"
COMMANDS = ("schedule", "explain", "try", "eta")
DANGLING = "Node 'gone' is not in the input; it is named by Pod default/lost, whose requests are not counted"
SKIPPED = "skipped what a session does not read: 1 Ingress.networking.k8s.io"
TWICE = "Node n0 is given 2 times"
REJECTED = "spec.minMember: expected `int | null`, got `str`"
OF_NOBODY = "names no group, and nobody makes one for pods of 'koord-scheduler'"


def bad_input() -> list[Document]:
    group, *pods = build.gang("bert", tasks=2, gpus=1)
    pods[0]["spec"]["nodeSelectr"] = {"zone": "a"}
    del pods[0]["metadata"]["uid"]  # an object that a server has stored has no unknown fields
    broken, *_ = build.gang("broken", tasks=1, gpus=1)
    broken["spec"]["minMember"] = "many"
    nobody = build.pod("nobody", gpus=1)
    nobody["spec"]["schedulerName"] = "koord-scheduler"
    ingress: Document = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web", "namespace": "default"},
    }
    node = build.node("n0", gpus=4)
    return [node, node, group, *pods, build.pod("lost", on="gone", gpus=1), broken, nobody, ingress]


def run(command: str, tmp_path: Path, *more: str, given: list[Document] | None = None) -> Result:
    cluster, new = tmp_path / "cluster.json", tmp_path / "new.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": given or bad_input()}))
    new.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": build.gang("new", tasks=1, gpus=1)}))
    words = {
        "schedule": ["-f", str(cluster)], "explain": ["bert", "-f", str(cluster)], "eta": ["-f", str(cluster), "--seeds", "1"],
        "try": ["-f", str(new), "--cluster", str(cluster)],
    }  # fmt: skip
    return CliRunner().invoke(main, [command, *words[command], "--now", NOW, *more], prog_name="phalanx")


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_fields_are_warned_of(command: str, tmp_path: Path) -> None:
    assert 'warning: unknown field "spec.nodeSelectr" in Pod default/bert-0' in run(command, tmp_path).stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("text", [DANGLING, SKIPPED, TWICE])
def test_what_is_missing_there_twice_or_skipped_is_noted(command: str, text: str, tmp_path: Path) -> None:
    assert f"note: {text}" in run(command, tmp_path).stderr
    notes = json.loads(run(command, tmp_path, "-o", "json").stdout)["notes"]
    assert len([note for note in notes if text in note]) == 1


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("text", [REJECTED, OF_NOBODY])
def test_what_is_rejected_or_left_out_is_named_once(command: str, text: str, tmp_path: Path) -> None:
    found = run(command, tmp_path)
    assert (found.stdout + found.stderr).count(text) == 1
    assert text in run(command, tmp_path, "-o", "json").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_an_input_without_faults_gets_no_notes(command: str, tmp_path: Path) -> None:
    found = run(command, tmp_path, given=[build.node("n0", gpus=4), *build.gang("bert", tasks=2, gpus=1)])
    assert "warning: " not in found.stderr
    assert " is not in the input" not in found.stderr


def test_what_is_submitted_may_name_what_is_missing_or_be_what_was_missed(tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text(json.dumps(build.gang("bert", tasks=1, gpus=1, queue="gone")[0]))
    _, pod = build.gang("bert", tasks=1, gpus=1)
    (tmp_path / "cluster.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [build.node("n0", gpus=1), pod]})
    )
    files = ["-f", str(tmp_path / "new.json"), "--cluster", str(tmp_path / "cluster.json")]
    found = CliRunner().invoke(main, ["try", *files, "--now", NOW], prog_name="phalanx")
    assert "note: Queue 'gone' is not in the input; it is named by PodGroup default/bert\n" in found.stderr
    assert "PodGroup 'default/bert' is not in the input" not in found.stderr
