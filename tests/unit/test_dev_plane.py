"""What a control plane is started with, before it is."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.layout import CONTROLLERS, ETCD, SERVER, Layout
from phalanx.dev.plane import NEEDED, ControlPlane
from phalanx.dev.processes import Process
from phalanx.dev.programs import OLD_KUBERNETES, PROGRAMS, path_of
from phalanx.errors import ConfigError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="phalanx")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_nodes_share_racks_and_racks_share_zones() -> None:
    nodes = Machines(per_rack=2, per_zone=4).documents(6)
    places = [
        (node["metadata"]["labels"]["example.com/rack"], node["metadata"]["labels"]["topology.kubernetes.io/zone"])
        for node in nodes
    ]
    assert places == [("rack-1", "zone-1")] * 2 + [("rack-2", "zone-1")] * 2 + [("rack-3", "zone-2")] * 2


def test_a_node_offers_what_was_asked_for() -> None:
    (node,) = Machines(cpu="4", gpus=2, pods=10).documents(1, first=7)
    assert node["metadata"]["name"] == "node-7"
    assert node["status"]["capacity"] == {"cpu": "4", "memory": "1024Gi", "pods": "10", "nvidia.com/gpu": "2"}
    (plain,) = Machines(gpus=0).documents(1)
    assert "nvidia.com/gpu" not in plain["status"]["allocatable"]


def test_two_control_planes_share_neither_ports_nor_tokens(tmp_path: Path) -> None:
    one, two = Layout(tmp_path), Layout(tmp_path)
    assert one.server.startswith("https://127.0.0.1:")
    assert len({one.etcd, one.server, two.etcd, two.server}) == 4
    assert one.token != two.token


def test_a_kubeconfig_is_for_its_owner_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.certificate.parent.mkdir()
    layout.certificate.write_text("certificate")
    layout.write_kubeconfig(layout.kubeconfig, "secret")
    assert layout.kubeconfig.stat().st_mode & 0o077 == 0
    written = yaml.safe_load(layout.kubeconfig.read_text())
    assert written["clusters"][0]["cluster"] == {"server": layout.server, "certificate-authority-data": "Y2VydGlmaWNhdGU="}
    assert written["users"][0]["user"] == {"token": "secret"}


def test_every_program_listens_on_this_machine_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert "--bind-address=127.0.0.1" in layout.command(SERVER)
    assert all("127.0.0.1" in flag for flag in layout.command(ETCD) if "-urls=" in flag)


def test_no_admission_plugin_of_a_real_server_is_left_out(tmp_path: Path) -> None:
    flags = Layout(tmp_path).command(SERVER)
    assert [flag for flag in flags if "admission-plugins" in flag] == ["--enable-admission-plugins=NodeRestriction"]


def test_an_old_release_has_programs_of_its_own_and_is_asked_for_no_new_feature(tmp_path: Path) -> None:
    new, old = Layout(tmp_path), Layout(tmp_path, kubernetes=OLD_KUBERNETES)
    for name in (SERVER, CONTROLLERS):
        assert old.command(name)[0] == str(path_of(f"{name}-1.31")) != new.command(name)[0]
        assert any(flag.startswith("--feature-gates=") for flag in new.command(name))
        assert not [flag for flag in old.command(name) if flag.startswith(("--feature-gates=", "--runtime-config="))]
    assert old.command(ETCD)[0] == new.command(ETCD)[0]


def test_without_binaries_the_command_says_what_to_run(empty_cache: Path) -> None:
    result = run("dev", "cluster", "up")
    assert result.exit_code == 1
    assert "no etcd, kube-apiserver, kube-controller-manager, kwok, kubectl yet; run 'make controlplane'" in result.stderr


def test_a_second_control_plane_in_a_folder_is_refused(empty_cache: Path, tmp_path: Path) -> None:
    for name in (*NEEDED, "kubectl"):
        path_of(name).parent.mkdir(parents=True, exist_ok=True)
        path_of(name).touch()
    other = Process(ETCD, tmp_path)
    other.start(["sleep", "60"])
    with pytest.raises(ConfigError, match="a control plane runs there already; end it with 'phalanx dev cluster down'"):
        ControlPlane(tmp_path, parts=()).up()
    assert other.is_running()
    assert run("dev", "cluster", "down", "--dir", str(tmp_path)).stderr == "stopped etcd\n"
    assert not other.is_running()


def test_nothing_to_stop_is_no_error(empty_cache: Path) -> None:
    result = run("dev", "cluster", "down")
    assert (result.exit_code, result.stderr) == (0, f"nothing runs in {empty_cache}/phalanx/cluster\n")


def test_a_program_that_nobody_knows_is_not_built() -> None:
    result = run("dev", "build", "kubelet")
    assert result.exit_code == 2
    assert f"there is no 'kubelet'; write one of {', '.join(PROGRAMS)}" in result.stderr
