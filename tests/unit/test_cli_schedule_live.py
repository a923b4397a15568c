"""`phalanx schedule` on a live cluster: the decisions are those on a snapshot of it, and nothing is changed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import cluster_input, main
from phalanx.cli.streams import sent
from phalanx.model.kinds import KINDS, POD, Document
from phalanx.store.input_files import documents_of
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support.http_api import Gatekeeper, served

EXAMPLES = Path(__file__).parents[2] / "examples"
NOW = 1_767_225_600.0
AT = ("--now", "2026-01-01T00:00:00Z")


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no cluster of the one who runs the tests be found."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("PHALANX_SERVER", raising=False)


def store_of(*documents: Document) -> MemoryStore:
    store = MemoryStore(lambda: NOW)
    for document in documents:
        store.load(document)
    return store


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(main, ["schedule", *arguments], input=given, prog_name="phalanx")


def snapshot_of(store: MemoryStore) -> str:
    """Return everything in a store as kubectl prints it."""
    items = [item for kind in KINDS if kind.kind not in ("Secret", "ConfigMap", "Event") for item in store.within(kind)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


@contextmanager
def live(store: MemoryStore, *arguments: str, keeper: Gatekeeper | None = None) -> Iterator[Result]:
    with served(store, gatekeeper=keeper) as connection:
        yield run("--server", connection.server, *arguments)


def objects_of(example: str) -> list[Any]:
    return [document for _, document in documents_of([str(EXAMPLES / example)])]


@pytest.mark.parametrize(
    ("example", "profile"),
    [
        ("deadlock", "phalanx"),
        ("preempt", "volcano"),
        ("topology-hard", "volcano"),
        ("kai-fair-share", "kai"),
        ("kai-node-pools", "kai"),
        ("unbound-volume", "phalanx"),
        ("bare-pods", "phalanx"),
        ("native-topology", "phalanx"),
        ("yunikorn", "phalanx"),
        ("scheduling-gates", "phalanx"),
    ],
)
def test_the_decisions_are_those_on_a_snapshot(example: str, profile: str) -> None:
    store = store_of(*objects_of(example))
    with live(store, "-o", "json", "--profile", profile) as found:
        on_snapshot = run("-f", "-", "-o", "json", "--profile", profile, *AT, given=snapshot_of(store))
    assert found.exit_code == on_snapshot.exit_code
    assert json.loads(found.stdout) == json.loads(on_snapshot.stdout)
    assert found.stdout


def test_nothing_is_changed() -> None:
    store, keeper = store_of(*objects_of("deadlock")), Gatekeeper()
    before = store.history.version
    with live(store, keeper=keeper) as found:
        assert found.exit_code == 3
    assert store.history.version == before
    assert {method for method, _ in keeper.asked} == {"GET"}


def test_files_are_added_to_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text(yaml.dump_all([build.node("node-1", cpu=8), build.node("node-0", cpu=4)]))
    store = store_of(build.node("node-0", cpu=1), *build.gang("train", tasks=3, cpu=4))
    with live(store, "-o", "json", "-f", str(tmp_path / "more.yaml")) as found:
        assert sorted(json.loads(found.stdout)["binds"].values()) == ["node-0", "node-1", "node-1"]
        assert "Node node-0 is given 2 times: http://127.0.0.1:" in found.stderr


def test_stored_objects_are_not_searched_for_unknown_fields() -> None:
    node = build.node("node-0", cpu=8)
    with live(store_of({**node, "spec": {**node.get("spec", {}), "fromTomorrow": True}})) as found:
        assert "fromTomorrow" not in found.stderr
        assert "skipped" not in found.stderr


def test_what_may_not_be_read_is_noted() -> None:
    store = store_of(build.node("node-0", cpu=8), *build.gang("train", tasks=1, cpu=1))
    with live(store, "-o", "json", keeper=Gatekeeper(hidden=("hypernodes",))) as found:
        assert found.exit_code == 0
        text = "may not list hypernodes.topology.volcano.sh (forbidden): constraints on network topology cannot be judged"
        assert found.stderr == f"note: {text}\n"
        assert json.loads(found.stdout)["notes"] == [text]


def test_who_may_not_read_pods_is_told_which_role_to_ask_for() -> None:
    with live(store_of(), keeper=Gatekeeper(hidden=("pods",))) as found:
        assert (found.exit_code, found.stdout) == (1, "")
        assert "you may not list the pods of all namespaces" in found.stderr
        assert "phalanx manifests reader" in found.stderr


def test_a_context_names_the_cluster(tmp_path: Path) -> None:
    with served(store_of(build.node("node-0", cpu=8), *build.gang("train", tasks=1, cpu=1))) as connection:
        config = {
            "contexts": [{"name": "staging", "context": {"cluster": "one", "user": "me"}}],
            "clusters": [{"name": "one", "cluster": {"server": connection.server}}],
            "users": [{"name": "me", "user": {}}],
        }
        (tmp_path / "config").write_text(yaml.dump(config))
        found = run("--kubeconfig", str(tmp_path / "config"), "--context", "staging")
    assert found.exit_code == 0
    assert "default/train" in found.stdout


def test_batches_name_no_cluster() -> None:
    assert "--batch takes no other option" in run("--batch", "--server", "http://127.0.0.1:1").stderr


def test_slow_reading_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(cluster_input, "PATIENCE_SECONDS", 0.0)
    line = cluster_input.ReadingLine()
    line.show(POD, 30_000, 50_000)
    line.show(POD, 50_000, 50_000)
    line.clear()
    assert sent(capsys.readouterr().err) == "\rread 30,000 of 50,000 pods\x1b[K\r\x1b[K"


def test_quick_reading_and_pipes_show_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    line = cluster_input.ReadingLine()
    line.show(POD, 1, 2)
    line.clear()
    assert capsys.readouterr().err == ""


def test_a_mute_server_is_not_waited_for_longer_than_asked() -> None:
    with live(store_of(), "--request-timeout", "50ms", keeper=Gatekeeper(mute=("apis",))) as found:
        assert found.exit_code == 1
        assert "does not answer; waited for 0.05 s" in found.output


@pytest.mark.parametrize("text", ["soon", "0", "-1s"])
def test_a_request_timeout_has_to_be_a_duration(text: str) -> None:
    found = run("--server", "http://127.0.0.1:1", "--request-timeout", text)
    assert found.exit_code == 2
    assert "is not a duration; write for example 10s or 2m" in found.output
