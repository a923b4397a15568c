"""Gangs beside Cluster Autoscaler itself: nodes come for whole gangs, and only for those that nodes would help."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from phalanx.controllers.provisioning.queue_class import BEST_EFFORT, CLASS, PARAMETERS
from phalanx.dev.plane import INSTALLED, ControlPlane
from phalanx.dev.programs import is_built
from phalanx.dev.replicas import scheduling
from phalanx.manifests.roles import role_documents
from phalanx.scheduling.kept_nodes import KEPT_FOR
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.operators.autoscaler_lanes import PROGRAM
from tests.support.cluster_autoscaler import CPU, PATIENT, POD_CPU, UNNEEDED_SECONDS, Autoscaler, Pool, cluster_autoscaler
from tests.support.fault_proxy import Blow, Harm, Proxy
from tests.support.http_api import connection_to
from tests.support.live_site import Site
from tests.support.store_contract import eventually

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300)]
DEFINITION = Path(__file__).parents[1] / "data" / "definitions" / "provisioningrequests.yaml"
REQUESTS = "/apis/autoscaling.x-k8s.io/v1"
CHECK_CAPACITY = "check-capacity.autoscaling.x-k8s.io"
SIZE, LESS, OWN = 8, 5, 3
"""How many pods a gang has, how many nodes a pool that is too small for it, and how many are there already that are free."""
STEP = 3
"""How many nodes come at once, where they come bit by bit."""
ROUNDS = 8
"""How often the autoscaler looks at something that has to stay so."""
LONG_GONE_SECONDS = 33.0
"""After this, the autoscaler takes a pod that is being deleted for gone: 30 seconds after its grace period."""
HOLD = "example.com/hold"
Start = Callable[..., Autoscaler]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane without nodes, with our scheduler beside it."""
    if not is_built(PROGRAM):
        pytest.skip(f"{PROGRAM} is not built; run 'phalanx dev build {PROGRAM}' once")
    folder = tmp_path_factory.mktemp("autoscaled")
    with ControlPlane(folder / "plane") as plane:
        plane.apply([*role_documents(replace(INSTALLED, keeps_nodes=True)), yaml.safe_load(DEFINITION.read_text())])
        connection = connection_to(str(plane.kubeconfig))
        assert eventually(lambda: connection.ask("GET", f"{REQUESTS}/provisioningrequests").code == 200)
        with scheduling(plane, folder, "--scheduler-name=phalanx", "--keep-nominated-nodes"):
            yield plane


@pytest.fixture
def start(empty: ControlPlane, tmp_path: Path) -> Iterator[Start]:
    """Starts the autoscaler with some pools."""
    with ExitStack() as stack:
        yield lambda *pools, **more: stack.enter_context(cluster_autoscaler(empty, tmp_path, *pools, **more))


@pytest.fixture
def site(empty: ControlPlane, start: Start) -> Iterator[Site]:
    with Site(empty) as site:
        yield site


def gang(name: str, size: int = SIZE, queue: str = "default") -> list[Document]:
    return build.gang(name, tasks=size, queue=queue, cpu=POD_CPU)


def asking(site: Site, name: str = BEST_EFFORT, **parameters: str) -> Document:
    queue = build.queue(f"elastic-{site.namespace()}")
    queue["metadata"]["annotations"] = {CLASS: name, PARAMETERS: json.dumps(parameters)}
    return queue


def await_start(site: Site, autoscaler: Autoscaler, name: str, size: int = SIZE) -> None:
    """Wait until a gang runs whole, and see that none of its pods was bound before there were nodes for all of them."""

    def is_running() -> bool:
        bound, nodes = len(site.bound(f"{name}-")), len(site.connection.ask("GET", "/api/v1/nodes").body["items"])
        assert not bound or nodes >= size, f"{bound} pods of {name} were bound when there were {nodes} nodes"
        return site.phases(f"{name}-") == ["Running"] * size

    site.wait(is_running, lambda: (site.phases(f"{name}-"), autoscaler.scale_ups(), autoscaler.process.last_lines()))


def watch(site: Site, autoscaler: Autoscaler, holds: Callable[[], bool], problem: Callable[[], object]) -> None:
    """See that something stays so while the autoscaler looks at the cluster again and again."""
    end = autoscaler.loops() + ROUNDS

    def is_over() -> bool:
        assert holds(), problem()
        return autoscaler.loops() >= end

    site.wait(is_over, autoscaler.process.last_lines)


def await_no_nodes(site: Site, autoscaler: Autoscaler) -> None:
    site.wait(lambda: not autoscaler.nodes(), lambda: (autoscaler.nodes(), autoscaler.process.last_lines()))


def requests(site: Site) -> list[dict[str, Any]]:
    path = f"{REQUESTS}/namespaces/{site.namespace()}/provisioningrequests"
    found: list[dict[str, Any]] = site.connection.ask("GET", path).body["items"]
    return found


def said(site: Site, kind: str) -> list[tuple[str, str]]:
    """Return status and reason of a condition of all requests."""
    conditions = [item for request in requests(site) for item in request.get("status", {}).get("conditions", ())]
    return [(item["status"], item["reason"]) for item in conditions if item["type"] == kind]


def left(site: Site) -> list[str]:
    templates = site.connection.ask("GET", f"/api/v1/namespaces/{site.namespace()}/podtemplates").body["items"]
    return [item["metadata"]["name"] for item in (*requests(site), *templates)]


def events(site: Site, reason: str) -> list[str]:
    return [item["message"] for item in site.get("events", f"--field-selector=reason={reason}")["items"]]


@pytest.mark.autoscaler("one")
def test_a_gang_on_an_empty_pool_starts_whole_after_one_scale_up(site: Site, start: Start) -> None:
    autoscaler = start(Pool("pool", 2 * SIZE), flags=PATIENT)
    site.make(gang("train"))
    await_start(site, autoscaler, "train")
    watch(site, autoscaler, lambda: autoscaler.scale_ups() == [("pool", SIZE)], autoscaler.scale_ups)
    assert len(set(site.bound("train-").values())) == len(autoscaler.nodes()) == SIZE


@pytest.mark.autoscaler("steps")
def test_no_pod_is_bound_before_the_last_node_of_its_gang_has_come(site: Site, start: Start) -> None:
    autoscaler = start(Pool("pool", 2 * SIZE), flags=(f"--max-nodes-per-scaleup={STEP}",))
    site.make(gang("train"))
    await_start(site, autoscaler, "train")
    sizes = [size for _, size in autoscaler.scale_ups()]
    assert sizes[-1] == SIZE
    assert all(0 < after - before <= STEP for before, after in pairwise((0, *sizes))), sizes


@pytest.mark.autoscaler("quota")
def test_a_gang_that_waits_for_quota_scales_nothing_until_it_has_some(site: Site, start: Start) -> None:
    autoscaler = start(Pool("pool", 2 * SIZE))
    queue = f"small-{site.namespace()}"
    site.make([build.queue(queue, capability={"cpu": str((SIZE - 1) * POD_CPU)}), *gang("train", queue=queue)])
    watch(site, autoscaler, lambda: not autoscaler.nodes() and not autoscaler.scale_ups(), autoscaler.scale_ups)
    patch = {"spec": {"capability": {"cpu": str(SIZE * POD_CPU)}}}
    site.kubectl("patch", "queues.scheduling.volcano.sh", queue, "--type=merge", "-p", json.dumps(patch))
    await_start(site, autoscaler, "train")
    assert autoscaler.scale_ups()[-1] == ("pool", SIZE)


@pytest.mark.autoscaler("limit")
def test_a_gang_that_is_larger_than_the_pool_starts_no_pod_and_a_smaller_one_takes_its_nodes(site: Site, start: Start) -> None:
    autoscaler = start(Pool("pool", LESS))
    site.make(gang("large"))
    site.wait(lambda: len(autoscaler.nodes()) == LESS, autoscaler.process.last_lines)
    watch(site, autoscaler, lambda: not site.bound("large-"), lambda: site.bound("large-"))
    site.make(gang("small", LESS))
    site.await_phases("small-", {"Running": LESS})
    assert (site.bound("large-"), autoscaler.scale_ups()[-1]) == ({}, ("pool", LESS))


@pytest.mark.autoscaler("request")
def test_a_request_brings_the_nodes_that_a_gang_lacks_and_goes_when_it_runs(site: Site, start: Start) -> None:
    autoscaler = start(Pool("pool", 2 * SIZE))
    queue = asking(site)
    site.make([build.node(f"own-{number}", cpu=CPU) for number in range(OWN)])
    site.make([queue, *gang("train", queue=queue["metadata"]["name"])])
    site.wait(lambda: bool(left(site)), lambda: site.kubectl("get", "events"))
    await_start(site, autoscaler, "train")
    site.wait(lambda: left(site) == [], lambda: left(site))
    assert autoscaler.scale_ups() == [("pool", SIZE - OWN)]


@pytest.mark.autoscaler("refused")
def test_a_request_for_more_than_the_pool_may_have_brings_nothing(site: Site, start: Start) -> None:
    autoscaler = start(Pool("pool", LESS))
    queue = asking(site)
    site.make([queue, *gang("large", queue=queue["metadata"]["name"])])
    site.wait(lambda: said(site, "Provisioned") == [("False", "CapacityIsNotFound")], lambda: requests(site))
    watch(site, autoscaler, lambda: not autoscaler.nodes() and not site.bound(), autoscaler.scale_ups)
    assert len(requests(site)) == 1
    site.kubectl("delete", "podgroups.scheduling.volcano.sh", "large")
    site.kubectl("delete", "pods", "--all")
    site.wait(lambda: left(site) == [], lambda: left(site))


class Shortage:
    """A cloud that can make so many nodes and no more."""

    def __init__(self, machines: int) -> None:
        self.left = machines

    def draw(self, request: web.Request) -> Blow | None:
        if (request.method, request.path) != ("POST", "/api/v1/nodes"):
            return None
        self.left -= 1
        return Blow(Harm.REFUSED, 500) if self.left < 0 else None


@pytest.fixture
def cloud(empty: ControlPlane) -> Iterator[Proxy]:
    """A way to the API server on which a shortage can be played; it lasts longer than the autoscaler that goes it."""
    with Proxy(connection_to(str(empty.kubeconfig))) as proxy:
        yield proxy


@pytest.mark.autoscaler("half")
def test_a_request_that_is_provisioned_by_half_gives_its_nodes_back(cloud: Proxy, site: Site, start: Start, tmp_path: Path) -> None:
    cloud.draw = Shortage(SIZE // 2).draw
    autoscaler = start(Pool("pool", 2 * SIZE), kubeconfig=cloud.write_kubeconfig(tmp_path / "cloud"))
    queue = asking(site)
    site.make([queue, *gang("train", queue=queue["metadata"]["name"])])
    site.wait(lambda: len(autoscaler.nodes()) == SIZE // 2, autoscaler.process.last_lines)
    await_no_nodes(site, autoscaler)
    assert (said(site, "Provisioned"), site.bound()) == ([("False", "CapacityIsNotFound")], {})
    cloud.calm()
    await_start(site, autoscaler, "train")
    site.wait(lambda: left(site) == [], lambda: left(site))
    assert len(autoscaler.nodes()) == SIZE


@pytest.mark.autoscaler("check")
def test_a_request_that_only_checks_brings_nothing_and_the_gang_starts_when_somebody_adds_nodes(site: Site, start: Start) -> None:
    autoscaler = start(Pool("pool", 2 * SIZE))
    queue = asking(site, CHECK_CAPACITY)
    site.make([queue, *gang("train", queue=queue["metadata"]["name"])])
    site.wait(lambda: said(site, "Provisioned") == [("False", "CapacityIsNotFound")], lambda: requests(site))
    watch(site, autoscaler, lambda: not autoscaler.nodes() and not site.bound(), autoscaler.scale_ups)
    site.make([build.node(f"own-{number}", cpu=CPU) for number in range(SIZE)])
    site.await_phases("train-", {"Running": SIZE})
    site.wait(lambda: left(site) == [], lambda: left(site))


@pytest.mark.autoscaler("fails")
def test_a_request_that_is_given_up_is_reported_and_deleted(site: Site, start: Start) -> None:
    autoscaler = start(Pool("pool", 2 * SIZE))
    queue = asking(site, CHECK_CAPACITY, noRetry="true")
    site.make([queue, *gang("train", queue=queue["metadata"]["name"])])
    site.wait(lambda: bool(events(site, "ProvisioningFailed")), lambda: requests(site))
    site.wait(lambda: left(site) == [], lambda: left(site))
    assert "CA could not find requested capacity" in events(site, "ProvisioningFailed")[0]
    assert (autoscaler.scale_ups(), site.bound()) == ([], {})


@pytest.mark.autoscaler("idle")
def test_the_nodes_of_a_gang_go_when_it_has_ended(site: Site, start: Start) -> None:
    autoscaler = start(Pool("pool", 2 * SIZE))
    site.make(gang("train"))
    await_start(site, autoscaler, "train")
    watch(site, autoscaler, lambda: len(autoscaler.nodes()) == SIZE, autoscaler.nodes)
    site.kubectl("delete", "pods", "--all")
    await_no_nodes(site, autoscaler)


@pytest.mark.autoscaler("nominated")
def test_a_node_that_a_gang_is_nominated_to_is_kept_though_it_is_idle(site: Site, start: Start) -> None:
    autoscaler = start(Pool("pool", 1))
    group, low = gang("low", 1)
    low["metadata"]["finalizers"], low["spec"]["terminationGracePeriodSeconds"] = [HOLD], 1
    site.make([group, low])
    await_start(site, autoscaler, "low", 1)
    kept = autoscaler.nodes()
    preempt(site)
    site.wait(lambda: KEPT_FOR in site.kubectl("get", "nodes", "-o", "yaml"), lambda: site.kubectl("get", "nodes", "-o", "yaml"))
    assert not eventually(lambda: autoscaler.nodes() != kept, seconds=LONG_GONE_SECONDS + 3 * UNNEEDED_SECONDS, step=0.5)
    site.kubectl("patch", "pod", "low-0", "-p", json.dumps({"metadata": {"finalizers": None}}))
    await_start(site, autoscaler, "urgent", 1)
    site.kubectl("delete", "pods", "--all")
    await_no_nodes(site, autoscaler)


def preempt(site: Site) -> None:
    """Submit a gang that takes the place of others."""
    name = f"high-{site.namespace()}"
    site.make([{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1000}])
    group, pod = gang("urgent", 1)
    group["spec"]["priorityClassName"] = pod["spec"]["priorityClassName"] = name
    site.make([group, pod])
