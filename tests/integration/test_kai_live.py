"""KAI's own way on a real control plane: its profile, queues in a tree, sub-groups, and binds by BindRequests."""

import json
from collections.abc import Iterator
from time import sleep

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from tests.support.live_site import Site, example

pytestmark = pytest.mark.xdist_group("controlplane")
QUIET_SECONDS = 4.0
GROUPS, REQUESTS = "podgroups.scheduling.run.ai", "scheduling.run.ai/v1alpha2:bindrequests"


@pytest.fixture(scope="module", autouse=True)
def scheduler(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with scheduling(plane, tmp_path_factory.mktemp("run"), "--profile=kai", "--scheduler-name=kai-scheduler"):
        yield


def await_condition(site: Site, name: str, text: str, namespace: str) -> None:
    """Wait until a PodGroup says why it waits."""

    def said() -> str:
        return site.kubectl("get", GROUPS, name, "-o=jsonpath={.status.schedulingConditions[*].message}", namespace=namespace)

    site.wait(lambda: text in said(), lambda: f"{name} says {said()!r}, and not {text!r}")


def test_a_gang_is_bound_by_requests_and_the_next_one_waits_whole(site: Site) -> None:
    site.make(example("kai-binder", "nodes.yaml", "queues.yaml", "jobs.yaml"))
    site.await_phases("llama", {"Running": 4}, "research")
    requests = site.api("research").read(REQUESTS).body["items"]
    assert {item["spec"]["podName"]: item["spec"]["selectedNode"] for item in requests} == site.bound("llama", "research")
    site.wait(lambda: phases_of_requests(site) == ["Succeeded"] * 4, lambda: phases_of_requests(site))
    site.make(json.loads(json.dumps(example("kai-binder", "jobs.yaml")).replace("llama", "gemma")))
    await_condition(site, "gemma", "Resources were found for 0 pods while 4 are required for gang scheduling.", "research")
    assert site.bound("gemma", "research") == {}
    site.kubectl("delete", "pod", *(f"llama-{number}" for number in range(4)), namespace="research")
    site.await_phases("gemma", {"Running": 4}, "research")


def phases_of_requests(site: Site) -> list[str]:
    return [item.get("status", {}).get("phase", "") for item in site.api("research").read(REQUESTS).body["items"]]


def test_decode_and_prefill_start_together_each_in_one_rack(site: Site) -> None:
    site.make(example("decode-and-prefill", "nodes.yaml", "topology.yaml", "queues.yaml", "llama.yaml"))
    site.await_phases("llama", {"Running": 10}, "serving")
    racks = {half: {node[:5] for node in site.bound(f"llama-{half}", "serving").values()} for half in ("decode", "prefill")}
    assert sorted(racks.values(), key=min) == [{"gpu-a"}, {"gpu-b"}]
    site.make(example("decode-and-prefill", "mixtral.yaml"))
    await_condition(site, "mixtral", "topology racks, requirement rack couldn't be satisfied", "serving")
    assert site.bound("mixtral", "serving") == {}
    site.kubectl("delete", "pod", "-l", "app=llama", namespace="serving")
    site.await_phases("mixtral", {"Running": 7}, "serving")


def test_two_shards_in_one_process_each_look_after_their_pool(site: Site) -> None:
    site.make(example("kai-node-pools", "nodes.yaml", "queues.yaml", "shards.yaml", "jobs.yaml"))
    site.await_phases("bert", {"Running": 2}, "research")
    site.await_phases("llama", {"Running": 4}, "research")
    assert set(site.bound("llama", "research").values()) == {site.node("h100-1")}
    await_condition(site, "mixtral", "Resources were not found for pod", "research")
    await_condition(site, "gemma", "no SchedulingShard takes node pool 'a100'", "research")
    site.wait(lambda: all(told(site, name) for name in ("mixtral", "gemma")), lambda: "pods are not told why they wait")
    before = versions(site)
    sleep(QUIET_SECONDS)  # sessions of both shards go on; what one says the other leaves alone
    assert versions(site) == before


def told(site: Site, name: str) -> bool:
    """Tell whether the pods of a gang say why they wait."""
    conditions = [pod["status"].get("conditions", []) for pod in site.pods(name, "research")]
    return bool(conditions) and all(any(item["type"] == "PodScheduled" for item in items) for items in conditions)


def versions(site: Site) -> dict[str, str]:
    """Return the versions of the groups and pods that wait."""
    groups = site.get(GROUPS, namespace="research")["items"]
    waiting = [item for name in ("mixtral", "gemma") for item in site.pods(name, "research")]
    found = [*(item for item in groups if item["metadata"]["name"] in ("mixtral", "gemma")), *waiting]
    return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in found}
