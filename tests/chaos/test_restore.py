"""etcd restored from a backup under a scheduler that goes on: what it knows goes back, too, and what was undone is done again."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.layout import ETCD, SERVER
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from tests.support.http_api import connection_to
from tests.support.live_gangs import Ranks
from tests.support.store_contract import Api, eventually

CPUS, SOON_SECONDS = 8, 60.0


class Restored:
    """A cluster of one node, and its backup."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        """Everything is made in the namespace `default`."""
        self.plane, self._data, self._backup = plane, plane.folder / "etcd", folder / "backup"
        self.api = Api(connection_to(str(plane.kubeconfig)), "default")

    def gang(self, name: str, size: int) -> Ranks:
        """Return a gang, as yet unknown to everybody."""
        return Ranks("default", name, size, "phalanx")

    def is_whole(self, gang: Ranks) -> bool:
        """Tell whether all of a gang is bound."""
        return eventually(lambda: gang.bound(self.api) == gang.size, seconds=SOON_SECONDS)

    def remove(self, gang: Ranks) -> None:
        """Let somebody withdraw a gang."""
        self.api.remove("pods", labelSelector=f"gang={gang.name}", gracePeriodSeconds=0)
        assert eventually(lambda: not self.api.read("pods", labelSelector=f"gang={gang.name}").body["items"])

    def back_up(self) -> None:
        """Copy the files of etcd, while nobody writes them."""
        self.plane.stop(ETCD)
        shutil.copytree(self._data, self._backup)
        self.plane.start(ETCD)
        assert eventually(lambda: self.api.read("pods").code == 200, seconds=SOON_SECONDS)

    def restore(self) -> None:
        """Let etcd hold what it held then."""
        self.plane.stop(SERVER)
        self.plane.stop(ETCD)
        shutil.rmtree(self._data)
        shutil.copytree(self._backup, self._data)
        self.plane.start(ETCD)
        self.plane.start(SERVER)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Restored]:
    with ControlPlane(tmp_path / "plane", nodes=1, machines=Machines(cpu=str(CPUS))) as plane:
        yield Restored(plane, tmp_path)
    shutil.rmtree(tmp_path, ignore_errors=True)  # etcd's files are large


@pytest.mark.xdist_group("controlplane")
@pytest.mark.timeout(300)
def test_a_cluster_goes_on_from_its_backup(cluster: Restored, tmp_path: Path) -> None:
    before, since, large = cluster.gang("before", 4), cluster.gang("since", 6), cluster.gang("large", 5)
    with scheduling(cluster.plane, tmp_path) as log:
        before.submit(cluster.plane)
        assert cluster.is_whole(before)
        cluster.back_up()
        cluster.remove(before)
        since.submit(cluster.plane)
        assert cluster.is_whole(since)

        cluster.restore()
        assert cluster.is_whole(before), "the gang of the backup has its places again"
        assert since.bound(cluster.api) == 0
        large.submit(cluster.plane)
        found = eventually(lambda: "Unschedulable" in _reasons(cluster.api, large), seconds=SOON_SECONDS)
        assert found, f"{log}: four of eight processors are taken, and nobody says so"
        assert large.bound(cluster.api) == 0
        cluster.remove(before)
        assert cluster.is_whole(large)


def _reasons(api: Api, gang: Ranks) -> set[str]:
    pods = api.read("pods", labelSelector=f"gang={gang.name}").body["items"]
    return {item.get("reason", "") for pod in pods for item in pod["status"].get("conditions") or ()}
