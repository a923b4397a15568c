"""`phalanx apply --dry-run`, `diff`, `delete --all` and `wait`: kubectl's flags, words and exit codes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.model.kinds import GROUP_BY_DIALECT, NODE, POD, kind_at
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support.http_api import served

CONFIG_MAP = kind_at("", "configmaps")


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no cluster of the one who runs the tests be found."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("PHALANX_SERVER", raising=False)


def settings(name: str, namespace: str = "default", **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


@contextmanager
def cluster(*documents: Document) -> Iterator[tuple[MemoryStore, str]]:
    store = MemoryStore(lambda: 1_767_225_600.0)
    for document in documents:
        store.load(document)
    with served(store) as connection:
        yield store, connection.server


def run(server: str, *arguments: str, given: Any = None) -> Result:
    text = None if given is None else json.dumps({"apiVersion": "v1", "kind": "List", "items": given})
    words = [*arguments, "--server", server, "-n", "default"]
    return CliRunner().invoke(main, words, input=text, prog_name="phalanx")


def names(store: MemoryStore, kind: Any) -> set[str]:
    return {str(item["metadata"]["name"]) for item in store.items(kind)}


# --- dry runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("way", "suffix"), [("client", "(dry run)"), ("server", "(server dry run)")])
def test_a_dry_run_of_apply_says_what_would_happen_and_changes_nothing(way: str, suffix: str) -> None:
    with cluster(settings("old", a="1")) as (store, server):
        run(server, "apply", "-f", "-", given=[settings("same", a="1")])
        given = [settings("new"), settings("old", a="2"), settings("same", a="1")]
        result = run(server, "apply", "-f", "-", f"--dry-run={way}", given=given)
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.splitlines() == [
            f"configmap/new created {suffix}", f"configmap/old configured {suffix}", f"configmap/same unchanged {suffix}",
        ]  # fmt: skip
        assert names(store, CONFIG_MAP) == {"old", "same"}
        assert store.get(CONFIG_MAP, "default", "old")["data"] == {"a": "1"}


def test_a_dry_run_on_the_server_shows_what_it_would_refuse() -> None:
    there, wanted = build.pod("a", on="n"), build.pod("a", spec={"nodeName": "other"})
    with cluster(build.node("n"), there) as (_, server):
        assert run(server, "apply", "-f", "-", "--dry-run=client", given=[wanted]).exit_code == 0
        result = run(server, "apply", "-f", "-", "--dry-run=server", given=[wanted])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: stdin, document 1, items[0]: ")


def test_a_dry_run_creates_no_namespace_and_says_that_what_is_in_it_was_not_checked() -> None:
    with cluster() as (store, server):
        result = run(server, "apply", "-f", "-", "--dry-run=server", given=[settings("a", "away")])
        assert result.exit_code == 0, result.stderr
        assert result.stdout.splitlines() == [
            "namespace/away created, as it was missing (server dry run)", "configmap/a created (dry run)",
        ]  # fmt: skip
        assert "away" not in names(store, kind_at("", "namespaces"))


@pytest.mark.parametrize(("way", "suffix"), [("client", "(dry run)"), ("server", "(server dry run)")])
def test_a_dry_run_of_delete_deletes_nothing(way: str, suffix: str) -> None:
    with cluster(*build.gang("a", tasks=2)) as (store, server):
        result = run(server, "delete", "gang", "a", f"--dry-run={way}")
        assert result.stdout.splitlines() == [
            f"pod/a-0 deleted {suffix}", f"pod/a-1 deleted {suffix}", f"podgroup.scheduling.volcano.sh/a deleted {suffix}",
        ]  # fmt: skip
        assert names(store, POD) == {"a-0", "a-1"}


# --- delete --all --------------------------------------------------------------------------------------------------------


def test_all_of_a_kind_in_the_namespace_are_deleted() -> None:
    with cluster(settings("a"), settings("b"), settings("c", "away")) as (store, server):
        assert run(server, "delete", "cm", "--all").stdout == "configmap/a deleted\nconfigmap/b deleted\n"
        assert names(store, CONFIG_MAP) == {"c"}
        nothing = run(server, "delete", "cm", "--all")
        assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "no cm to delete in namespace default\n")


def test_objects_with_a_label_are_deleted() -> None:
    one, other = settings("a"), settings("b")
    one["metadata"]["labels"] = {"app": "x"}
    with cluster(one, other) as (store, server):
        assert run(server, "delete", "cm", "-l", "app=x").stdout == "configmap/a deleted\n"
        assert names(store, CONFIG_MAP) == {"b"}


def test_all_gangs_are_deleted_with_their_pods() -> None:
    with cluster(*build.gang("a", tasks=1), *build.gang("b", tasks=1)) as (store, server):
        assert run(server, "delete", "gangs", "--all", "--grace-period", "0").exit_code == 0
        assert (names(store, POD), names(store, GROUP_BY_DIALECT["volcano"])) == (set(), set())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("pods", "a", "--all"), "name objects, or choose them with --all or -l, not both"),
        (("pods", "--all", "-l", "a=b"), "--all and -l exclude each other"),
        (("--all",), "nothing to delete: write KIND NAME, KIND --all, or -f PATH"),
        (("-f", "x", "--all"), "not both"),
        (("gangs", "-l", "a=b"), "gangs have no labels or fields to select by"),
    ],
)
def test_what_does_not_go_together_is_refused(words: tuple[str, ...], sentence: str) -> None:
    with cluster() as (_, server):
        result = run(server, "delete", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


# --- diff ----------------------------------------------------------------------------------------------------------------


def test_diff_shows_what_would_change_and_exits_with_1() -> None:
    with cluster(settings("old", a="1", b="same")) as (store, server):
        result = run(server, "diff", "-f", "-", given=[settings("old", a="2", b="same"), settings("new", c="3")])
        assert (result.exit_code, result.stderr) == (1, "")
        lines = result.stdout.splitlines()
        assert lines[:2] == ["--- live/v1.ConfigMap.default.old", "+++ merged/v1.ConfigMap.default.old"]
        assert [line for line in lines[2:] if line[0] in "+-"][:2] == ["-  a: '1'", "+  a: '2'"]
        assert "+++ merged/v1.ConfigMap.default.new" in lines
        assert "+  c: '3'" in lines
        assert names(store, CONFIG_MAP) == {"old"}
        assert store.get(CONFIG_MAP, "default", "old")["data"]["a"] == "1"


def test_diff_of_what_was_applied_is_empty() -> None:
    given = [settings("x", a="1"), *build.gang("g", tasks=1)]
    with cluster() as (_, server):
        assert run(server, "apply", "-f", "-", given=given).exit_code == 0
        result = run(server, "diff", "-f", "-", given=given)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_diff_of_what_is_in_a_missing_namespace_shows_it_as_new() -> None:
    with cluster() as (_, server):
        result = run(server, "diff", "-f", "-", given=[settings("a", "away", k="v")])
    assert (result.exit_code, "+  k: v" in result.stdout) == (1, True)


@pytest.mark.parametrize(
    ("words", "given", "sentence"),
    [
        (("-f", "no-such-file"), None, "error: no-such-file: no such file or folder"),
        (("-f", "-"), [{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"}}], "no kind 'Ingress'"),
        ((), None, "nothing to read"),
    ],
)
def test_diff_exits_with_2_when_it_fails(words: tuple[str, ...], given: Any, sentence: str) -> None:
    with cluster() as (_, server):
        result = run(server, "diff", *words, given=given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


def test_diff_exits_with_2_where_nobody_answers() -> None:
    assert run("http://127.0.0.1:1", "diff", "-f", "-", given=[settings("a")]).exit_code == 2


# --- wait ----------------------------------------------------------------------------------------------------------------

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "False"}]}


def running(name: str) -> Document:
    return {**build.pod(name, on="n"), "status": READY}


@pytest.mark.parametrize(
    "wanted",
    [
        "condition=Ready", "condition=ready=true", "condition=Initialized=False", "jsonpath={.status.phase}=Running",
        "jsonpath={.spec.nodeName}", "jsonpath=.status.phase=Running", "create",
        'jsonpath={.status.conditions[?(@.type=="Ready")].status}=True',
    ],
)  # fmt: skip
def test_what_is_so_already_is_met_at_once(wanted: str) -> None:
    with cluster(build.node("n"), running("a")) as (_, server):
        result = run(server, "wait", "pod/a", f"--for={wanted}", "--timeout=0")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "pod/a condition met\n", "")


@pytest.mark.parametrize("wanted", ["condition=Initialized", "condition=Other", "jsonpath={.status.phase}=Failed", "delete"])
def test_what_is_not_so_in_time_is_an_error(wanted: str) -> None:
    with cluster(build.node("n"), running("a")) as (_, server):
        result = run(server, "wait", "pod", "a", f"--for={wanted}", "--timeout=0")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: timed out waiting for the condition on pod/a\n"


def test_what_is_not_there_is_deleted_and_otherwise_an_error() -> None:
    with cluster(build.node("n"), running("a")) as (_, server):
        assert run(server, "wait", "pod/x", "--for=delete", "--timeout=0").stdout == "pod/x condition met\n"
        result = run(server, "wait", "pod/x", "pod/a", "--for=condition=Ready", "--timeout=0")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "pod/a condition met\n", 'error: pods "x" not found\n')


def test_all_objects_of_a_kind_or_with_a_label_are_waited_for() -> None:
    labelled = running("b")
    labelled["metadata"]["labels"] = {"app": "x"}
    with cluster(build.node("n"), running("a"), labelled) as (_, server):
        everything = run(server, "wait", "pods", "--all", "--for=condition=Ready")
        assert everything.stdout == "pod/a condition met\npod/b condition met\n"
        assert run(server, "wait", "pods", "-l", "app=x", "--for=condition=Ready").stdout == "pod/b condition met\n"
        nobody = run(server, "wait", "pods", "-l", "app=y", "--for=condition=Ready")
    assert (nobody.exit_code, nobody.stderr) == (1, "error: no matching pods found in namespace default\n")


def test_kinds_without_namespaces_are_waited_for_and_deleted_as_others() -> None:
    with cluster(build.node("n"), build.node("m")) as (store, server):
        waited = run(server, "wait", "nodes,pods", "--all", "--for=jsonpath={.metadata.name}")
        assert (waited.exit_code, waited.stdout) == (0, "node/m condition met\nnode/n condition met\n")
        assert run(server, "delete", "nodes", "--all").stdout == "node/m deleted\nnode/n deleted\n"
        assert names(store, NODE) == set()


@pytest.mark.parametrize(
    ("wanted", "status"),
    [("condition=Scheduled", 0), ("condition=Running", 0), ("condition=Completed", 1), ("condition=Scheduled=false", 1),
     ("jsonpath={.status}=Runs", 0), ("delete", 1)],
)  # fmt: skip
def test_a_gang_has_conditions_by_its_status(wanted: str, status: int) -> None:
    group, pod = build.gang("g", tasks=1)
    pod["spec"]["nodeName"], pod["status"] = "n", {"phase": "Running"}
    with cluster(build.node("n"), build.queue("default"), group, pod) as (_, server):
        assert run(server, "wait", "gang/g", f"--for={wanted}", "--timeout=0").exit_code == status


def test_a_gang_that_waits_is_not_scheduled() -> None:
    with cluster(build.node("n"), build.queue("default"), *build.gang("g", tasks=1)) as (_, server):
        result = run(server, "wait", "g", "--for=condition=Scheduled", "--timeout=0")
    assert (result.exit_code, result.stderr) == (1, "error: timed out waiting for the condition on gang/g\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("pod/a",), "Missing option '--for'"),
        (("pod/a", "--for=ready"), "--for: 'ready' is not understood; write condition=NAME[=VALUE]"),
        (("pod/a", "--for=condition="), "is not understood"),
        (("pods", "--for=delete"), "which one? write pods/NAME, or pods --all"),
        (("pods", "a", "--all", "--for=delete"), "not both"),
        (("gangs", "-l", "a=b", "--for=delete"), "gangs have no labels or fields to select by"),
        (("pod/a", "--for=delete", "--timeout=soon"), "'soon' is not a duration; write for example 30s or 10m"),
    ],
)
def test_what_cannot_be_waited_for_is_wrong_usage(words: tuple[str, ...], sentence: str) -> None:
    with cluster() as (_, server):
        result = run(server, "wait", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
