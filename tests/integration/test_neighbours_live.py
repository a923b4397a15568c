"""The default scheduler and Phalanx on the same nodes: kubelets reject what both have bound there, and gangs end up whole."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.model.kinds import Document
from phalanx.testing import build
from tests.support.default_scheduler import kube_scheduler
from tests.support.live_gangs import Ranks, clear
from tests.support.live_site import Site
from tests.support.refusing_kubelets import RefusingKubelets
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
NODES, CPU, SIZE, GANGS = 4, 8, 4, 4
ROUNDS, MOST_ROUNDS = 3, 12
"""So many times at least, and until both have bound pods to the same room at once."""
SINGLES = NODES * CPU - GANGS * SIZE + SIZE
"""So many that one gang has no room beside them."""
GRACE = {"phalanx.dev/staleness-grace": "5s"}
ONLY = "example.com/gangs"
"""The label and the taint of nodes that only gangs use."""


@pytest.fixture
def both(plane: ControlPlane, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Let both schedulers run on the same nodes."""
    site.make(build.node(f"shared-{number}", cpu=CPU) for number in range(NODES))
    with scheduling(plane, tmp_path_factory.mktemp("run"), "--scheduler-name=phalanx"), kube_scheduler(plane):
        yield site.api()


def singles(api: Api, name: str, count: int) -> Document:
    """Return pods of the default scheduler, which a Deployment makes."""
    gang = Ranks(api.namespace, name, count, "default-scheduler", owner="Deployment")
    (found,) = gang.members()
    del found["spec"]["template"]["metadata"]["annotations"]
    return found


def gangs(api: Api, label: str) -> list[Ranks]:
    """Return gangs whose owner replaces failed pods at once; a Job waits longer after each."""
    return [
        Ranks(api.namespace, f"{label}-{number}", SIZE, "phalanx", annotations=GRACE, owner="StatefulSet")
        for number in range(GANGS)
    ]  # fmt: skip


def running(api: Api, gang: Ranks) -> int:
    pods = api.read("pods", labelSelector=f"gang={gang.name}").body["items"]
    return sum(pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"] for pod in pods)


def is_settled(api: Api, found: list[Ranks], kubelets: RefusingKubelets) -> bool:
    """Tell whether nobody is rejected any more, all room is used, and every gang runs as a whole or has nothing."""
    counts = [running(api, gang) for gang in found]
    held = sum(map(len, kubelets.held().values()))
    return set(counts) <= {0, SIZE} and held > NODES * CPU - SIZE and not kubelets.over_committed()


def stays_settled(api: Api, found: list[Ranks], kubelets: RefusingKubelets) -> bool:
    rejected = len(kubelets.rejected)
    return (
        is_settled(api, found, kubelets)
        and not eventually(lambda: not is_settled(api, found, kubelets), seconds=3.0)
        and len(kubelets.rejected) == rejected
    )


@pytest.mark.timeout(600)
def test_gangs_are_whole_though_both_schedulers_bind_to_the_same_nodes_at_once(plane: ControlPlane, site: Site, both: Api) -> None:
    with RefusingKubelets(site.connection, both.namespace) as kubelets:
        for number in range(MOST_ROUNDS):
            if number >= ROUNDS and kubelets.rejected:
                break
            found = gangs(both, f"round-{number}")
            plane.create([gang.group() for gang in found])
            plane.create([singles(both, f"singles-{number}", SINGLES), *(item for gang in found for item in gang.members())])
            assert eventually(lambda found=found: stays_settled(both, found, kubelets), seconds=90.0), (  # type: ignore[misc]  # of this round
                [running(both, gang) for gang in found], kubelets.over_committed(), kubelets.rejected
            )  # fmt: skip
            assert set(kubelets.rejected.values()) <= {"phalanx", "default-scheduler"}
            _clear(plane, both)
        assert kubelets.rejected, "both never met on a node: this shows nothing"


def _clear(plane: ControlPlane, api: Api) -> None:
    plane.kubectl("delete", "podgroups.scheduling.volcano.sh", "--all", "-n", api.namespace)
    clear(api)


@pytest.mark.timeout(180)
def test_a_gang_of_which_a_kubelet_rejects_a_pod_gets_another_place_for_it(plane: ControlPlane, site: Site, both: Api) -> None:
    gang = gangs(both, "rejected")[0]
    refused: list[str] = []

    def first_of_gang(pod: Document) -> bool:
        uid = pod["metadata"]["uid"]
        is_first = pod["metadata"]["labels"].get("gang") == gang.name and (not refused or uid in refused)
        refused.extend([uid] * (is_first and uid not in refused))
        return is_first

    with RefusingKubelets(site.connection, both.namespace, also=first_of_gang) as kubelets:
        gang.submit(plane)
        assert eventually(lambda: bool(kubelets.rejected))
        assert eventually(lambda: running(both, gang) == SIZE), site.pods()
        assert list(kubelets.rejected) == refused


@pytest.mark.timeout(180)
def test_with_nodes_of_their_own_nobody_is_rejected(plane: ControlPlane, site: Site, both: Api) -> None:
    for number in range(NODES // 2):
        plane.kubectl("label", "node", site.node(f"shared-{number}"), f"{ONLY}=true")
        plane.kubectl("taint", "node", site.node(f"shared-{number}"), f"{ONLY}=true:NoSchedule")
    found = [replace(gang, node_labels={ONLY: "true"}, tolerated=ONLY) for gang in gangs(both, "own")]
    with RefusingKubelets(site.connection, both.namespace) as kubelets:
        plane.create([gang.group() for gang in found])
        plane.create([singles(both, "singles", SINGLES), *(item for gang in found for item in gang.members())])
        assert eventually(lambda: [running(both, gang) for gang in found] == [SIZE] * GANGS), site.pods()
        others = {site.node(f"shared-{number}") for number in range(NODES // 2, NODES)}
        assert eventually(lambda: len(site.bound("singles")) == CPU * NODES // 2)
        assert set(site.bound("singles").values()) == others
        assert not kubelets.rejected
