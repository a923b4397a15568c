"""Commands read every object of their input once, and as far as they need it."""

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.cli.delete_run import of_files
from phalanx.dialects.cluster import Document, ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.model.kinds import object_key
from phalanx.testing import build

OBJECTS = [*(build.node(f"gpu-{number}", gpus=1) for number in range(2)), *build.gang("bert", tasks=2, gpus=1)]
NAMES = Counter(f"{item['kind']} {object_key(item)}" for item in OBJECTS)
BROKEN = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": 3}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each object is read as its file has it; one that a cluster keeps has a version."""
    found, put = Counter[str](), ObjectCluster.put

    def counted(cluster: ObjectCluster, document: Document) -> bool:
        found[f"{document['kind']} {object_key(document)}"] += "resourceVersion" not in document["metadata"]
        return put(cluster, document)

    monkeypatch.setattr(ObjectCluster, "put", counted)
    return found


def written(folder: Path, *objects: Document) -> str:
    path = folder / "all.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="phalanx")


@pytest.mark.parametrize(
    "command",
    [("simulate", "--until", "1m"), ("simulate", "--compare", "phalanx,kai"), ("schedule",), ("convert", "--to", "kai", "-f")],
)
def test_an_object_is_read_once(command: tuple[str, ...], read: Counter[str], tmp_path: Path) -> None:
    assert run(*command, written(tmp_path, *OBJECTS)).exit_code == 0
    assert +read == NAMES


def test_what_is_deleted_is_not_read(read: Counter[str], tmp_path: Path) -> None:
    assert [name for _, _, name in of_files([written(tmp_path, BROKEN)])] == ["p"]
    assert +read == Counter()


@pytest.mark.parametrize("metadata", [None, 7, {}, {"namespace": "n"}])
def test_what_is_deleted_has_a_name(metadata: object, tmp_path: Path) -> None:
    path = written(tmp_path, {**BROKEN, "metadata": metadata})
    with pytest.raises(SnapshotError) as refusal:
        of_files([path])
    assert str(refusal.value).startswith(f"{path}, document 1, items[0]: Pod ")
    assert str(refusal.value).endswith("without a name: metadata.name: missing")


def test_every_broken_object_is_named_with_its_place_by_who_converts(tmp_path: Path) -> None:
    path = written(tmp_path, BROKEN, *OBJECTS, {**BROKEN, "metadata": 7})
    result = run("convert", "-f", path, "--to", "kai")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: 2 objects or files cannot be read:",
        f"  {path}, document 1, items[0]: Pod p: spec: expected `object`, got `int`",
        f"  {path}, document 1, items[{len(OBJECTS) + 1}]: Pod without a name: metadata.name: missing",
    ]


def test_what_is_no_object_is_named_beside_those_that_are_broken(tmp_path: Path) -> None:
    path = written(tmp_path, BROKEN, {"kind": "Pod"})
    missing = "items[1]: Pod without a name: apiVersion: missing; every object needs apiVersion, kind and metadata"
    assert run("convert", "-f", path, "--to", "kai").stderr.splitlines()[1:] == [
        f"  {path}, document 1, {missing}",
        f"  {path}, document 1, items[0]: Pod p: spec: expected `object`, got `int`",
    ]
