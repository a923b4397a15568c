"""Autoscalers on a real API server, their part played by a small one of ours: it brings a node for each pod that it has to."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phalanx.dev.plane import INSTALLED, ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.manifests.roles import role_documents
from phalanx.model.conditions import POD_SCHEDULED, UNDETERMINED, UNSCHEDULABLE
from phalanx.scheduling.kept_nodes import KEPT_BY, KEPT_FOR, OF_AUTOSCALERS
from phalanx.testing import build
from tests.support.live_site import Site

pytestmark = pytest.mark.xdist_group("controlplane")
HOLD = "example.com/hold"
MOST_NODES = 8


@pytest.fixture
def site(plane: ControlPlane, tmp_path: Path) -> Iterator[Site]:
    """A scheduler that keeps nominated nodes, with the permissions for that and no more."""
    plane.apply(role_documents(replace(INSTALLED, keeps_nodes=True)))
    with scheduling(plane, tmp_path, "--scheduler-name=phalanx", "--keep-nominated-nodes"), Site(plane) as site:
        yield site
    plane.apply(role_documents(INSTALLED))


def reasons(site: Site, start: str) -> list[str]:
    """Return the reasons of PodScheduled of pods that have no node, as Cluster Autoscaler and Karpenter read them."""
    pods = (pod["status"].get("conditions") or () for pod in site.pods(start) if not pod["spec"].get("nodeName"))
    return [str(item.get("reason")) for conditions in pods for item in conditions if item["type"] == POD_SCHEDULED]


class SmallAutoscaler:
    """Brings one node for each pod that is Unschedulable and not nominated, up to a number."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.brought = 0

    def look(self) -> None:
        """Look once at all pods."""
        wanted = sum(self._is_wanting(pod) for pod in self._site.pods())
        news = [build.node(f"new-{number}", cpu=1) for number in range(self.brought, min(wanted, MOST_NODES))]
        if news:
            self.brought += len(news)
            self._site.make(news)

    def _is_wanting(self, pod: dict[str, Any]) -> bool:
        if pod["spec"].get("nodeName") or pod["status"].get("nominatedNodeName"):
            return False
        found = pod["status"].get("conditions") or ()
        return any((item["type"], item.get("reason")) == (POD_SCHEDULED, UNSCHEDULABLE) for item in found)


def test_nodes_come_for_a_whole_gang_and_none_for_one_that_waits_for_its_queue(site: Site) -> None:
    queue = f"small-{site.namespace()}"
    site.make([build.node("old", cpu=1), build.queue(queue, capability={"cpu": "2"})])
    site.make([*build.gang("quota", tasks=3, queue=queue, cpu=1), *build.gang("train", tasks=3, cpu=1)])
    site.wait(lambda: reasons(site, "train-") == [UNSCHEDULABLE] * 3, lambda: reasons(site, "train-"))
    site.wait(lambda: set(reasons(site, "quota-")) <= {UNDETERMINED, "Schedulable"} and len(reasons(site, "quota-")) == 3,
              lambda: reasons(site, "quota-"))  # fmt: skip
    autoscaler = SmallAutoscaler(site)
    autoscaler.look()
    site.await_phases("train-", {"Running": 3})
    autoscaler.look()
    assert autoscaler.brought == 3
    assert not {UNSCHEDULABLE} & set(reasons(site, "quota-"))


def annotations(site: Site, node: str) -> dict[str, str]:
    found: dict[str, str] = site.connection.ask("GET", f"/api/v1/nodes/{site.node(node)}").body["metadata"]["annotations"]
    return {key: text for key, text in found.items() if key in (*OF_AUTOSCALERS, KEPT_FOR, KEPT_BY)}


def test_a_node_is_kept_while_a_gang_waits_for_those_who_leave_it(site: Site) -> None:
    high = f"high-{site.namespace()}"
    site.make([{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": high}, "value": 1000}])
    group, low = build.gang("low", tasks=1, cpu=1)
    low["metadata"]["finalizers"] = [HOLD]
    site.make([build.node("a", cpu=1), group, low])
    site.await_phases("low-", {"Running": 1})
    urgent, hurried = build.gang("urgent", tasks=1, cpu=1)
    urgent["spec"]["priorityClassName"] = hurried["spec"]["priorityClassName"] = high
    site.make([urgent, hurried])
    kept = {**dict.fromkeys(OF_AUTOSCALERS, "true"), KEPT_FOR: f"{site.namespace()}/urgent", KEPT_BY: ", ".join(OF_AUTOSCALERS)}
    site.wait(lambda: annotations(site, "a") == kept, lambda: annotations(site, "a"))
    assert reasons(site, "urgent-") != [UNSCHEDULABLE]
    site.kubectl("patch", "pod", "low-0", "-p", json.dumps({"metadata": {"finalizers": None}}))
    site.wait(lambda: bool(site.bound("urgent-")), lambda: site.phases("urgent-"))
    site.wait(lambda: annotations(site, "a") == {}, lambda: annotations(site, "a"))
