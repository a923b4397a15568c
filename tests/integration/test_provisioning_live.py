"""ProvisioningRequests on a real API server, the autoscaler's part played by a small actor of ours."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from phalanx.controllers.objects import PROBLEM
from phalanx.controllers.provisioning.controller import UNNEEDED_SINCE
from phalanx.controllers.provisioning.queue_class import BEST_EFFORT, CLASS, PARAMETERS
from phalanx.controllers.provisioning.request import CONSUMED_CLASS
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.model.conditions import CONSUMES, POD_SCHEDULED, UNSCHEDULABLE
from phalanx.model.moment import moment_text
from phalanx.store import patches
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import kai_objects as kai
from tests.support.http_api import connection_to
from tests.support.live_site import Site
from tests.support.store_contract import eventually

pytestmark = pytest.mark.xdist_group("controlplane")
DEFINITION = Path(__file__).parents[1] / "data" / "definitions" / "provisioningrequests.yaml"
SERVED = "/apis/autoscaling.x-k8s.io/v1"
SIZE = 8
BORN = 1_767_225_600


@pytest.fixture(scope="module")
def defined(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster on which somebody has installed the definition of requests."""
    definition = yaml.safe_load(DEFINITION.read_text())
    plane.apply([definition])
    connection = connection_to(str(plane.kubeconfig))
    assert eventually(lambda: connection.ask("GET", f"{SERVED}/provisioningrequests").code == 200)
    yield plane
    plane.kubectl("delete", "crd", definition["metadata"]["name"])


@pytest.fixture
def site(defined: ControlPlane, tmp_path: Path) -> Iterator[Site]:
    with scheduling(defined, tmp_path, "--scheduler-name=phalanx"), Site(defined) as site:
        yield site


class SmallAutoscaler:
    """Brings the nodes of requests, one for each pod, and removes those of requests that are gone."""

    def __init__(self, site: Site) -> None:
        self._site, self._path = site, f"{SERVED}/namespaces/{site.namespace()}/provisioningrequests"
        self.nodes_by_request: dict[str, list[str]] = {}

    def requests(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._site.connection.ask("GET", self._path).body["items"]
        return found

    def provision(self, request: Document, count: int) -> None:
        """Bring nodes for so many of the pods of a request, each as large as its template asks for."""
        name = request["metadata"]["name"]
        (pods,) = request["spec"]["podSets"]
        template = f"/api/v1/namespaces/{self._site.namespace()}/podtemplates/{pods['podTemplateRef']['name']}"
        spec = self._site.connection.ask("GET", template).body["template"]["spec"]
        cpu = spec["containers"][0]["resources"]["requests"]["cpu"]
        made = [f"{name[:20]}-{number}" for number in range(count)]
        self._site.make([build.node(node, cpu=cpu) for node in made])
        self.nodes_by_request[name] = [self._site.node(node) for node in made]

    def say(self, request: Document, kind: str, reason: str, message: str) -> None:
        item = {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": moment_text(BORN)}
        path = f"{self._path}/{request['metadata']['name']}/status"
        answer = self._site.connection.ask("PATCH", path, {"status": {"conditions": [item]}}, form=patches.MERGE)
        assert answer.code == 200, answer.body

    def scale_down(self) -> list[str]:
        """Remove the nodes of requests that are gone and on which nobody runs; return their names."""
        there, used = {item["metadata"]["name"] for item in self.requests()}, set(self._site.bound().values())
        spare = [node for name, nodes in self.nodes_by_request.items() if name not in there for node in nodes if node not in used]
        for node in spare:
            self._site.connection.ask("DELETE", f"/api/v1/nodes/{node}")
        return spare


def asking(site: Site, **spec: Any) -> Document:
    queue = build.queue(f"elastic-{site.namespace()}", **spec)
    queue["metadata"]["annotations"] = {CLASS: BEST_EFFORT, PARAMETERS: json.dumps({"ValidUntilSeconds": "600"})}
    return queue


def only_request(site: Site, autoscaler: SmallAutoscaler) -> dict[str, Any]:
    site.wait(lambda: len(autoscaler.requests()) == 1, lambda: [item["metadata"]["name"] for item in autoscaler.requests()])
    (found,) = autoscaler.requests()
    return found


def left(site: Site) -> list[str]:
    templates = f"/api/v1/namespaces/{site.namespace()}/podtemplates"
    found = [*SmallAutoscaler(site).requests(), *site.connection.ask("GET", templates).body["items"]]
    return [item["metadata"]["name"] for item in found]


def events(site: Site, reason: str) -> list[str]:
    found = site.get("events", f"--field-selector=reason={reason}")["items"]
    return [item["message"] for item in found if item["involvedObject"]["kind"] == "PodGroup"]


def reasons(site: Site, start: str) -> list[str]:
    conditions = [item for pod in site.pods(start) for item in pod["status"].get("conditions") or ()]
    return [str(item.get("reason")) for item in conditions if item["type"] == POD_SCHEDULED]


def test_a_gang_on_an_empty_pool_starts_whole_by_one_request(site: Site) -> None:
    queue = asking(site)
    site.make([queue, *build.gang("train", tasks=SIZE, queue=queue["metadata"]["name"], cpu=1)])
    autoscaler = SmallAutoscaler(site)
    request = only_request(site, autoscaler)
    name, (pods,) = request["metadata"]["name"], request["spec"]["podSets"]
    assert (request["spec"]["provisioningClassName"], pods["count"]) == (BEST_EFFORT, SIZE)
    assert request["spec"]["parameters"] == {"ValidUntilSeconds": "600"}
    notes = [pod["metadata"]["annotations"] for pod in site.pods("train-")]
    assert [(note[CONSUMES], note[CONSUMED_CLASS]) for note in notes] == [(name, BEST_EFFORT)] * SIZE
    autoscaler.say(request, "Accepted", "Accepted", "it is being looked at")
    autoscaler.provision(request, pods["count"])
    autoscaler.say(request, "Provisioned", "Provisioned", "all nodes are there")
    site.await_phases("train-", {"Running": SIZE})
    site.wait(lambda: left(site) == [], lambda: left(site))
    assert autoscaler.scale_down() == []
    assert len(events(site, "ProvisioningRequested")) == 1


def test_a_request_that_fails_half_way_gives_its_nodes_back_and_the_gang_is_told(site: Site) -> None:
    queue = asking(site)
    site.make([queue, *build.gang("train", tasks=SIZE, queue=queue["metadata"]["name"], cpu=1)])
    autoscaler = SmallAutoscaler(site)
    request = only_request(site, autoscaler)
    autoscaler.provision(request, SIZE // 2)
    assert autoscaler.scale_down() == []
    autoscaler.say(request, "Failed", "OutOfStock", "4 of 8 nodes could not be made")
    site.wait(lambda: left(site) == [], lambda: left(site))
    assert len(autoscaler.scale_down()) == SIZE // 2
    site.wait(lambda: bool(events(site, "ProvisioningFailed")), lambda: site.kubectl("get", "events"))
    (told,) = events(site, "ProvisioningFailed")
    assert told.startswith(
        f"ProvisioningRequest {request['metadata']['name']}: Failed: 4 of 8 nodes could not be made; it is deleted"
    )
    assert site.bound() == {}


def test_a_gang_that_waits_for_quota_makes_no_request(site: Site) -> None:
    queue = asking(site, capability={"cpu": "2"})
    name = queue["metadata"]["name"]
    site.make([queue, *build.gang("large", tasks=3, queue=name, cpu=1), *build.gang("small", tasks=2, queue=name, cpu=1)])
    site.wait(lambda: len(reasons(site, "large-")) == 3, lambda: reasons(site, "large-"))
    autoscaler = SmallAutoscaler(site)
    request = only_request(site, autoscaler)
    assert request["metadata"]["name"].startswith("small-")
    assert UNSCHEDULABLE not in reasons(site, "large-")
    assert not any(CONSUMES in pod["metadata"]["annotations"] for pod in site.pods("large-"))


def annotations(site: Site, kind: str, name: str) -> dict[str, str]:
    found: dict[str, str] = site.get(kind, name)["metadata"].get("annotations") or {}
    return found


def test_a_request_says_since_when_it_asks_for_a_pod_that_is_gone(site: Site) -> None:
    queue = asking(site)
    site.make([queue, *build.gang("train", tasks=3, min_member=2, queue=queue["metadata"]["name"], cpu=1)])
    name = only_request(site, SmallAutoscaler(site))["metadata"]["name"]
    site.kubectl("delete", "pod", "train-2")
    site.wait(lambda: UNNEEDED_SINCE in annotations(site, "provreq", name), lambda: annotations(site, "provreq", name))


def test_a_queue_of_kai_with_a_class_that_cannot_be_is_told(site: Site) -> None:
    queue = kai.queue(f"wrong-{site.namespace()}", parent="")
    queue["metadata"]["annotations"] = {CLASS: "Not A Class"}
    site.make([queue])
    place = "queues.scheduling.run.ai", queue["metadata"]["name"]
    site.wait(lambda: "'Not A Class'" in annotations(site, *place).get(PROBLEM, ""), lambda: annotations(site, *place))
