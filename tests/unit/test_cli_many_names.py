"""Commands on several objects of which one is not there: the others are found, shown or deleted, and the exit status is 1."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.model.kinds import POD
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support.http_api import served

NOT_FOUND = 'error: pods "nosuch" not found\n'
NO_GANG = 'error: gang "nosuch" not found\n'


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no cluster of the one who runs the tests be found."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("PHALANX_SERVER", raising=False)


@contextmanager
def cluster() -> Iterator[tuple[MemoryStore, str]]:
    store = MemoryStore(lambda: 1_767_225_600.0)
    for document in [build.node("n", gpus=4), build.queue("default"), *build.gang("a", tasks=2, gpus=1), *build.gang("b", tasks=1)]:
        store.load(document)
    with served(store) as connection:
        yield store, connection.server


def run(server: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--server", server, "-n", "default"], prog_name="phalanx")


def pods(store: MemoryStore) -> set[str]:
    return {str(item["metadata"]["name"]) for item in store.items(POD)}


def test_deletes_the_pods_that_are_there() -> None:
    with cluster() as (store, server):
        result = run(server, "delete", "pod", "nosuch", "a-0", "--grace-period", "0")
        assert (result.exit_code, result.stdout, result.stderr) == (1, "pod/a-0 deleted\n", NOT_FOUND)
        assert pods(store) == {"a-1", "b-0"}


def test_deletes_the_gangs_that_are_there() -> None:
    with cluster() as (store, server):
        result = run(server, "delete", "gang", "nosuch", "a", "--grace-period", "0")
        assert (result.exit_code, result.stderr) == (1, NO_GANG)
        assert pods(store) == {"b-0"}


@pytest.mark.parametrize("names", [("nosuch", "a-0", "b-0"), ("a-0", "nosuch", "b-0"), ("a-0", "b-0", "nosuch")])
@pytest.mark.parametrize("form", ["table", "json", "name"])
def test_shows_the_pods_that_are_there(names: tuple[str, ...], form: str) -> None:
    with cluster() as (_, server):
        result = run(server, "get", "pod", *names, "-o", form)
    assert (result.exit_code, result.stderr) == (1, NOT_FOUND)
    shown = [item["metadata"]["name"] for item in json.loads(result.stdout)["items"]] if form == "json" else result.stdout
    assert "a-0" in shown
    assert "b-0" in shown


def test_shows_the_gangs_that_are_there() -> None:
    with cluster() as (_, server):
        result = run(server, "get", "gangs", "nosuch", "b")
    assert (result.exit_code, result.stderr) == (1, NO_GANG)
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["NAME", "b"]


def test_a_gang_is_shown_by_the_name_of_its_owner_or_the_beginning_of_its_own() -> None:
    with cluster() as (store, server):
        for document in build.gang("train-7f3a", tasks=1):
            owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "llama", "uid": "u", "controller": True}
            store.load({**document, "metadata": {**document["metadata"], "ownerReferences": [owner]}})
        for name in ("train-7f3a", "llama", "train"):
            result = run(server, "get", "gang", name, "nosuch", "-o", "name")
            assert (result.exit_code, result.stdout, result.stderr) == (1, "gang/train-7f3a\n", NO_GANG)


def test_describes_the_pods_that_are_there() -> None:
    with cluster() as (_, server):
        result = run(server, "describe", "pod", "nosuch", "a-0", "b-0")
    assert (result.exit_code, result.stderr) == (1, NOT_FOUND)
    assert [line.split()[1] for line in result.stdout.splitlines() if line.startswith("Name:")] == ["a-0", "b-0"]
    assert not result.stdout.startswith("\n")


@pytest.mark.parametrize("form", ["table", "json", "yaml", "name", "jsonpath={.metadata.name}"])
def test_nothing_is_shown_where_the_only_one_is_not_there(form: str) -> None:
    with cluster() as (_, server):
        result = run(server, "get", "pod", "nosuch", "-o", form)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", NOT_FOUND)


def first_words(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line]


def test_shows_objects_of_several_kinds_by_name() -> None:
    with cluster() as (_, server):
        result = run(server, "get", "pod/a-0", "node/n", "gang/b", "pod/nosuch")
    assert (result.exit_code, result.stderr) == (1, NOT_FOUND)
    assert first_words(result.stdout) == ["NAME", "a-0", "NAME", "n", "NAME", "b"]


def test_lists_gangs_among_other_kinds() -> None:
    with cluster() as (_, server):
        result = run(server, "get", "gangs,nodes,pods", "-o", "name")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.split() == ["gang/a", "gang/b", "node/n", "pod/a-0", "pod/a-1", "pod/b-0"]


def test_shows_a_name_of_each_of_several_kinds() -> None:
    with cluster() as (_, server):
        result = run(server, "get", "gangs,podgroups.scheduling.volcano.sh", "a", "-o", "name")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.split() == ["gang/a", "podgroup.scheduling.volcano.sh/a"]


def test_describes_objects_of_several_kinds() -> None:
    with cluster() as (_, server):
        result = run(server, "describe", "pod/a-0", "gang/b", "node/n")
    assert (result.exit_code, result.stderr) == (0, "")
    shown = [line.split() for line in result.stdout.splitlines()]
    assert [words[1] for words in shown if words and words[0] in ("Name:", "Gang:")] == ["a-0", "b", "n"]


def test_names_without_a_kind_are_gangs_to_describe() -> None:
    with cluster() as (_, server):
        result = run(server, "describe", "a", "b")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split()[1] for line in result.stdout.splitlines() if line.startswith("Gang:")] == ["a", "b"]


def test_deletes_objects_of_several_kinds_by_name() -> None:
    with cluster() as (store, server):
        result = run(server, "delete", "gang/a", "pod/b-0", "pod/nosuch", "--grace-period", "0")
        assert (result.exit_code, result.stderr) == (1, NOT_FOUND)
        assert pods(store) == set()


def test_a_pod_is_deleted_once_though_it_is_chosen_twice() -> None:
    with cluster() as (store, server):
        result = run(server, "delete", "pods,gangs", "--all", "--grace-period", "0")
        assert (result.exit_code, result.stderr) == (0, "")
        assert pods(store) == set()
    assert len(result.stdout.splitlines()) == len(set(result.stdout.splitlines())) == 5


def test_waits_for_all_of_several_kinds() -> None:
    with cluster() as (_, server):
        result = run(server, "wait", "gangs,pods", "--all", "--for=create", "--timeout=0")
    assert (result.exit_code, result.stderr) == (0, "")
    assert first_words(result.stdout) == ["gang/a", "gang/b", "pod/a-0", "pod/a-1", "pod/b-0"]


@pytest.mark.parametrize("command", [("get",), ("describe",), ("delete",), ("wait", "--for=delete")])
@pytest.mark.parametrize("words", [("pod/",), ("/a-0",), ("pod/a-0/x",)])
def test_half_a_name_is_no_name(command: tuple[str, ...], words: tuple[str, ...]) -> None:
    with cluster() as (_, server):
        result = run(server, *command, *words)
    assert result.exit_code == 2
    assert f"{words[0]!r} is no KIND/NAME" in result.stderr


@pytest.mark.parametrize("command", ["get", "delete"])
def test_a_name_without_a_kind_beside_one_with_a_kind_means_nothing(command: str) -> None:
    with cluster() as (store, server):
        result = run(server, command, "pod/a-0", "b")
        assert len(pods(store)) == 3
    assert result.exit_code == 2
    assert "'b' is no KIND/NAME" in result.stderr
