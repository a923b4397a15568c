"""`phalanx get` as kubectl's users type it: --sort-by, --show-labels and custom columns."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support.http_api import served


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no cluster of the one who runs the tests be found."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("PHALANX_SERVER", raising=False)


def pod(name: str, on: str, *, memory: str) -> Document:
    found = build.pod(name, on=on, memory=memory)
    found["metadata"]["labels"] = {"app": name[0], "tier": "train"} if on != "n9" else {}
    return found


PODS = [pod("a", "n10", memory="1Gi"), pod("b", "n9", memory="900Mi"), pod("c", "", memory="2G")]


@contextmanager
def cluster() -> Iterator[str]:
    store = MemoryStore(lambda: 1_767_225_600.0)
    for document in [build.node("n9"), build.node("n10"), *PODS]:
        store.load(document)
    with served(store) as connection:
        yield connection.server


def get(*arguments: str) -> Result:
    with cluster() as server:
        return CliRunner().invoke(main, ["get", *arguments, "--server", server, "-n", "default"], prog_name="phalanx")


def names(*arguments: str) -> list[str]:
    result = get(*arguments, "-o", "name")
    assert result.exit_code == 0, result.stderr
    return [line.partition("/")[2] for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("path", "order"),
    [
        (".metadata.name", ["a", "b", "c"]),
        ("metadata.name", ["a", "b", "c"]),
        ("{.spec.nodeName}", ["c", "b", "a"]),
        (".spec.containers[0].resources.requests.memory", ["b", "a", "c"]),
    ],
)
def test_objects_are_sorted_by_a_field_numbers_in_texts_and_quantities_by_value(path: str, order: list[str]) -> None:
    assert names("pods", f"--sort-by={path}") == order


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("pods", "--sort-by=.spec.nothing"), "error: --sort-by: no object has a field '.spec.nothing'; write a path such as"),
        (("pods", "--sort-by=.a[b"), "error: jsonpath: '.a[b': '[b' is not understood"),
        (("secrets", "--sort-by=.a[b"), "error: jsonpath: '.a[b': '[b' is not understood"),
        (("pods", "-o", "custom-columns="), "error: custom-columns: no columns given; write for example"),
        (("pods", "-o", "custom-columns=NAME"), "error: custom-columns: 'NAME' is no column; write TITLE:PATH"),
        (("secrets", "-o", "custom-columns=A:.a[b"), "error: jsonpath: '.a[b': '[b' is not understood"),
    ],
)
def test_what_cannot_be_read_is_told(arguments: tuple[str, ...], sentence: str) -> None:
    result = get(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert sentence in result.stderr


def test_labels_are_the_last_column() -> None:
    lines = [line.split() for line in get("pods", "--show-labels").stdout.splitlines()]
    assert [line[-1] for line in lines] == ["LABELS", "app=a,tier=train", "<none>", "app=c,tier=train"]


def test_custom_columns_show_what_paths_find() -> None:
    columns = "NAME:.metadata.name,NODE:.spec.nodeName,ASKS:.spec.containers[*].resources.requests.memory"
    result = get("pods", "-o", f"custom-columns={columns}", "--sort-by=.metadata.name")
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["NAME", "NODE", "ASKS"], ["a", "n10", "1Gi"], ["b", "n9", "900Mi"], ["c", "<none>", "2G"],
    ]  # fmt: skip


def test_custom_columns_of_several_kinds_are_one_table_and_can_go_without_headers() -> None:
    result = get("nodes,pods", "-o", "custom-columns=K:.kind,N:{.metadata.name}", "--no-headers")
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["Node", "n10"], ["Node", "n9"], ["Pod", "a"], ["Pod", "b"], ["Pod", "c"],
    ]  # fmt: skip


def test_gangs_can_be_sorted_and_have_custom_columns() -> None:
    store = MemoryStore(lambda: 1_767_225_600.0)
    for document in [build.queue("default"), *build.gang("small", tasks=1), *build.gang("large", tasks=3)]:
        store.load(document)
    with served(store) as connection:
        options = ["get", "gangs", "-A", "--sort-by=.minimum", "-o", "custom-columns=G:.metadata.name,MIN:.minimum"]
        result = CliRunner().invoke(main, [*options, "--server", connection.server])
    assert [line.split() for line in result.stdout.splitlines()] == [["G", "MIN"], ["small", "1"], ["large", "3"]]
