"""Which cluster a command talks to: a test for each line of the rule."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from phalanx.cli.connection import Reach, choose, other_cluster
from phalanx.errors import Unreachable

GONE = 2**22 + 1
"""A process id that no machine gives out."""


class Desk:
    """A home with a kubeconfig, the address of a cluster, and whatever else a test leaves there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"HOME": str(folder)}

    def kubeconfig(self, path: str = ".kube/config", port: int = 5) -> str:
        """Write a kubeconfig with the contexts here, at this port, and there, at the next one."""
        file = self.folder / path
        file.parent.mkdir(exist_ok=True)
        clusters = [{"name": name, "cluster": {"server": f"http://127.0.0.1:{port + number}"}} for number, name in enumerate("cd")]
        contexts = [
            {"name": "here", "context": {"cluster": "c", "namespace": "research"}},
            {"name": "there", "context": {"cluster": "d"}},
        ]
        file.write_text(yaml.safe_dump({"current-context": "here", "clusters": clusters, "contexts": contexts}))
        return str(file)

    def leave(self, pid: int) -> None:
        """Leave the address of a cluster of 'phalanx up', at port 4."""
        (self.folder / "phalanx").mkdir()
        (self.folder / "phalanx" / "server.json").write_text(json.dumps({"server": "http://127.0.0.1:4", "pid": pid}))

    def chosen(self, *, is_plugin: bool = False, **typed: Any) -> str:
        """Return the port of the cluster that is chosen."""
        return choose(Reach(**typed), is_plugin=is_plugin, environment=self.environment).server.removeprefix("http://127.0.0.1:")

    def note(self, *, is_plugin: bool = False, **typed: Any) -> str:
        """Return what is said about the cluster that is chosen."""
        reach = Reach(**typed)
        return other_cluster(reach, choose(reach, is_plugin=is_plugin, environment=self.environment), is_plugin=is_plugin)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return Desk(tmp_path)


def with_everything(desk: Desk) -> None:
    desk.environment |= {"PHALANX_SERVER": "http://127.0.0.1:2", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    desk.leave(os.getpid())
    desk.kubeconfig()


@pytest.mark.parametrize("is_plugin", [False, True])
def test_a_server_that_was_typed_comes_first(desk: Desk, is_plugin: bool) -> None:
    with_everything(desk)
    typed = {"server": "http://127.0.0.1:1", "kubeconfig": desk.kubeconfig("other", 8), "context": "there"}
    assert desk.chosen(is_plugin=is_plugin, **typed) == "1"


def test_a_kubeconfig_or_a_context_that_was_typed_comes_next(desk: Desk) -> None:
    with_everything(desk)
    assert desk.chosen(kubeconfig=desk.kubeconfig("other", 8)) == "8"
    assert desk.chosen(kubeconfig=desk.kubeconfig("other", 8), context="there") == "9"
    assert desk.chosen(context="there") == "6"


def test_then_the_server_of_the_environment(desk: Desk) -> None:
    with_everything(desk)
    assert desk.chosen() == "2"


def test_then_the_kubeconfig_of_the_environment_if_it_is_there(desk: Desk) -> None:
    with_everything(desk)
    del desk.environment["PHALANX_SERVER"]
    desk.environment["KUBECONFIG"] = str(desk.folder / "none")
    assert desk.chosen() == "4"
    desk.environment["KUBECONFIG"] = desk.kubeconfig("other", 8)
    assert desk.chosen() == "8"


def test_a_note_says_which_cluster_is_asked_where_another_one_is_up(desk: Desk) -> None:
    desk.leave(os.getpid())
    desk.environment["KUBECONFIG"] = desk.kubeconfig("other", 8)
    note = "asking http://127.0.0.1:8 ({file}: context 'here'); for the cluster of 'phalanx up' add --server http://127.0.0.1:4"
    assert desk.note() == note.format(file=desk.folder / "other")
    assert desk.note(context="here") == desk.note(is_plugin=True) == ""
    del desk.environment["KUBECONFIG"]
    assert desk.note() == ""


def test_then_a_cluster_that_is_up(desk: Desk) -> None:
    with_everything(desk)
    del desk.environment["PHALANX_SERVER"]
    assert desk.chosen() == "4"


def test_a_cluster_that_died_without_a_word_does_not_count(desk: Desk) -> None:
    desk.leave(GONE)
    with pytest.raises(Unreachable, match="start one with 'phalanx up', or name one with --server or --kubeconfig"):
        desk.chosen()
    desk.kubeconfig()
    assert desk.chosen() == "5"


def test_then_the_kubeconfig_of_the_home(desk: Desk) -> None:
    desk.environment["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    desk.kubeconfig()
    assert desk.chosen() == "5"
    desk.environment["KUBECONFIG"] = f"{desk.folder / 'none'}:{desk.kubeconfig('other', 8)}"
    assert desk.chosen() == "8"


def test_then_the_cluster_around_us(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.environment["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    monkeypatch.setattr("phalanx.store.kube.connect.ACCOUNT", desk.folder)
    (desk.folder / "ca.crt").touch()
    assert desk.chosen() == "https://10.0.0.1:443"


def test_under_kubectl_the_kubeconfig_comes_before_what_phalanx_left(desk: Desk) -> None:
    with_everything(desk)
    assert desk.chosen(is_plugin=True) == "5"
    assert desk.chosen(is_plugin=True, context="there") == "6"
    (desk.folder / ".kube" / "config").unlink()
    assert desk.chosen(is_plugin=True) == "2"
    del desk.environment["PHALANX_SERVER"]
    assert desk.chosen(is_plugin=True) == "4"


def test_the_namespace_is_that_of_the_context(desk: Desk) -> None:
    desk.kubeconfig()
    found = choose(Reach(), is_plugin=False, environment=desk.environment)
    other = choose(Reach(context="there"), is_plugin=False, environment=desk.environment)
    assert (found.namespace, other.namespace) == ("research", "default")
