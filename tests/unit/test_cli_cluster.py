"""Commands that talk to a cluster, when there is none, or when they are typed wrongly."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no cluster of the one who runs the tests be found."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    for name in ("PHALANX_SERVER", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="phalanx")


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["up", "no-such-folder"], 1, "error: no-such-folder: no such file or folder\n"),
        (["up", "--profile", "volcan"], 1, "error: profile: unknown profile 'volcan'; did you mean 'volcano'?\n"),
        (["up", "--speed", "fast"], 2, "--speed: 'fast' is not a factor; write for example 1x or 60x"),
        (["up", "--speed", "nanx"], 2, "--speed: 'nanx' is not between"),
        (["up", "--speed", "1e400x"], 2, "--speed: '1e400x' is not between"),
        (["up", "--nodes", "99999999999"], 2, "is not in the range 0<=x<=100000"),
        (["up", "--speed", "0x"], 2, "--speed: time does not stand still"),
        (["up", "--config", "a", "--profile", "b"], 2, "--config and --profile exclude each other"),
        (["apply"], 2, "nothing to read: name files or folders with -f"),
        (["describe", "pod"], 2, "which one? write for example: phalanx describe pod NAME"),
        (["delete"], 2, "nothing to delete: write KIND NAME, KIND --all, or -f PATH"),
        (["delete", "pod", "a", "-f", "x"], 2, "not both"),
        (["get", "pods", "--server", "localhost:1"], 1, "write a URL such as http://127.0.0.1:8001"),
        (
            ["get", "pods", "--server", "http://127.0.0.1:1"],
            1,
            "error: no cluster at http://127.0.0.1:1: start one with 'phalanx up'",
        ),
    ],
)
def test_wrong_usage_is_told_in_a_sentence(arguments: list[str], status: int, sentence: str) -> None:
    refused = run(*arguments)
    assert (refused.exit_code, refused.stdout) == (status, "")
    assert sentence in refused.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", "not the state of a cluster"),
        ('{"format": 9, "now": 1, "version": 1, "numbers": 1, "objects": []}', "state of format 9"),
    ],
)
def test_a_state_that_cannot_be_read_is_refused_and_left_alone(tmp_path: Path, text: str, sentence: str) -> None:
    state = tmp_path / "state.json"
    state.write_text(text)
    refused = run("up", "--state", str(state))
    assert refused.exit_code == 1
    assert sentence in refused.stderr
    assert state.read_text() == text


def test_the_environment_names_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHALANX_SERVER", "http://127.0.0.1:2")
    assert run("get", "pods").stderr.startswith("error: no cluster at http://127.0.0.1:2: start one")


@pytest.mark.parametrize("text", ["", "{", '{"server": 1', "[]"])
def test_an_address_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "phalanx"
    folder.mkdir()
    (folder / "server.json").write_text(text)
    assert run("get", "pods").stderr.startswith(f"error: no cluster at {folder / 'server.json'}: start one")
