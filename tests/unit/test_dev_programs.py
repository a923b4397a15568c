"""The programs of a control plane: what is pinned, and where binaries are looked for."""

import re
from pathlib import Path

import pytest

from phalanx.dev.go_build import MODULES
from phalanx.dev.programs import (
    ALL_OPERATORS,
    AUTOSCALERS,
    KUBERNETES,
    KUBERNETES_RELEASES,
    MORE_OPERATORS,
    OLD,
    OLD_KUBERNETES,
    PROGRAMS,
    RIVALS,
    USUAL,
    Program,
    files_of,
    folder,
    is_built,
    of_release,
    path_of,
    require,
)
from phalanx.errors import ConfigError


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder().mkdir(parents=True)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))
def test_the_module_of_a_program_pins_its_version_and_every_sum(program: Program) -> None:
    module = MODULES / program.module
    pinned = dict(re.findall(r"^(?:require)?\s+(\S+) (v\S+)", (module / "go.mod").read_text(), re.MULTILINE))
    (name,) = [name for name in pinned if program.package.startswith(f"{name}/") or program.package == name]
    assert pinned[name] == program.version
    assert f"{name} {program.version} h1:" in (module / "go.sum").read_text()


@pytest.mark.parametrize("release", KUBERNETES_RELEASES)
def test_the_parts_of_kubernetes_are_those_of_its_release(release: str) -> None:
    text = (MODULES / PROGRAMS[of_release("kube-apiserver", release)].module / "go.mod").read_text()
    replaced = re.findall(r"^\t(\S+) => (\S+) (\S+)$", text, re.MULTILINE)
    assert len(replaced) > 25
    assert {(old == new, version) for old, new, version in replaced} == {(True, release.replace("v1.", "v0."))}


def test_further_operators_autoscalers_other_schedulers_and_an_old_kubernetes_are_built_only_by_name() -> None:
    assert sorted({*PROGRAMS} - {*USUAL}) == sorted((*MORE_OPERATORS, *AUTOSCALERS, *RIVALS, *OLD))
    assert {*MORE_OPERATORS} < {*ALL_OPERATORS} < {*PROGRAMS}


def test_a_binary_is_kept_by_its_version_outside_of_the_clone(tmp_path: Path) -> None:
    assert path_of("kubectl") == tmp_path / "phalanx" / "bin" / f"kubectl-{KUBERNETES}"


def test_a_part_of_kubernetes_has_a_name_for_each_release() -> None:
    assert [of_release("kube-apiserver", release) for release in KUBERNETES_RELEASES] == ["kube-apiserver-1.31", "kube-apiserver"]
    assert path_of("kube-apiserver-1.31").name.endswith(OLD_KUBERNETES)


def test_a_program_is_built_when_what_belongs_to_it_is_there_too() -> None:
    path_of("kwok").touch()
    assert not is_built("kwok")
    files_of("kwok").mkdir()
    for file in PROGRAMS["kwok"].files:
        (files_of("kwok") / Path(file).name).touch()
    assert is_built("kwok")


def test_what_is_missing_is_named_with_the_command_that_builds_it() -> None:
    path_of("etcd").touch()
    require("etcd")
    with pytest.raises(ConfigError, match="no kubectl, helm yet; run 'make controlplane'"):
        require("etcd", "kubectl", "helm")
