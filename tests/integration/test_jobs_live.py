"""Volcano's Jobs, CronJobs, JobFlows and Queues on a real control plane and in its profile, from `kubectl apply` to the end."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.live.app import PACE
from phalanx.model.kinds import Document
from phalanx.testing import build
from tests.support.live_site import Site, example

pytestmark = pytest.mark.xdist_group("controlplane")
JOBS, CRON_JOBS = "jobs.batch.volcano.sh", "cronjobs.batch.volcano.sh"
QUEUES, GROUPS = "queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh"
LONG_AGO = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module", autouse=True)
def scheduler(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    names = ("--scheduler-name=phalanx", "--scheduler-name=volcano")
    with scheduling(plane, tmp_path_factory.mktemp("run"), "--profile=volcano", *names):
        yield


@pytest.fixture
def site(plane: ControlPlane) -> Iterator[Site]:
    with Site(plane) as site:
        site.make(build.node(f"place-{number}", cpu=64, memory="256Gi", gpus=8) for number in range(2))
        yield site


def lasting(documents: list[Document], seconds: int) -> list[Any]:
    """Return objects whose pods, if they end at all, end so soon."""
    found: list[Any] = json.loads(re.sub(r'(?<="phalanx.dev/duration": )"\w+"', f'"{seconds}s"', json.dumps(documents)))
    return found


def await_field(site: Site, kind: str, name: str, path: str, expected: str, namespace: str = "default") -> None:
    """Wait until a field of an object says something."""

    def said() -> str:
        return site.kubectl("get", kind, name, f"-o=jsonpath={path}", namespace=namespace)

    site.wait(lambda: expected in said(), lambda: f"{path} of {name} is {said()!r}, not {expected!r}")


def job(name: str, plugins: dict[str, list[str]]) -> Document:
    """Return a Job with a master and two workers."""
    template = {"spec": {"containers": [{"name": "main", "image": "train:1", "resources": {"requests": {"cpu": "1"}}}]}}
    roles = {"master": 1, "worker": 2}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name},
        "spec": {
            "schedulerName": "volcano", "minAvailable": 3, "plugins": plugins,
            "tasks": [{"name": role, "replicas": count, "template": template} for role, count in roles.items()],
        },
    }  # fmt: skip


def test_the_plugins_of_a_job_tell_its_pods_who_they_are_and_how_to_reach_each_other(site: Site) -> None:
    site.make([job("mpi", {"env": [], "svc": [], "ssh": []})], "apply")
    site.await_phases("mpi-", {"Running": 3})
    await_field(site, JOBS, "mpi", "{.status.state.phase} {.status.running}", "Running 3")
    worker = site.get("pod", "mpi-worker-1")["spec"]
    environment = {item["name"]: item.get("value") for item in worker["containers"][0]["env"]}
    assert (environment["VC_TASK_INDEX"], worker["hostname"], worker["subdomain"]) == ("1", "mpi-worker-1", "mpi")
    assert site.get("configmap", "mpi-svc")["data"]["worker.host"].split() == ["mpi-worker-0.mpi", "mpi-worker-1.mpi"]
    assert site.get("service", "mpi")["spec"]["clusterIP"] == "None"
    assert "id_rsa" in site.get("secret", "mpi-ssh")["data"]
    site.kubectl("delete", JOBS, "mpi")
    site.wait(lambda: site.pods() == [], lambda: f"pods are left: {site.phases()}")


def test_a_job_that_is_admitted_first_gets_its_pods_at_once(site: Site) -> None:
    site.make([job("train", {})], "apply")
    site.await_phases("train-", {"Running": 3})
    (group,) = site.get(GROUPS)["items"]
    assert max(map(made_at, site.pods())) - made_at(group) < PACE.arrival


def test_the_group_of_a_job_counts_the_pods_that_run(site: Site) -> None:
    site.make([job("train", {})], "apply")
    site.await_phases("train-", {"Running": 3})
    (group,) = site.get(GROUPS)["items"]
    await_field(site, GROUPS, group["metadata"]["name"], "{.status.running}", "3")


def test_a_job_whose_pods_the_server_refuses_says_why_and_stops_nobody(site: Site) -> None:
    broken = job("broken", {})
    broken["spec"]["tasks"][1]["template"] = {"spec": {"containers": [{"name": "main"}]}}
    site.make([broken, job("train", {})], "apply")
    site.await_phases("train-", {"Running": 3})
    said = "{.items[?(@.involvedObject.name=='broken')].message}"
    site.wait(
        lambda: (
            "spec.containers[0].image: Required value; Job broken waits" in site.kubectl("get", "events", f"-o=jsonpath={said}")
        ),
        lambda: site.kubectl("get", "events"),
    )


def made_at(document: Document) -> float:
    return datetime.fromisoformat(document["metadata"]["creationTimestamp"]).timestamp()


def test_a_job_is_complete_when_its_workers_are(site: Site) -> None:
    site.make(lasting(example("volcano-job", "job.yaml"), 1), "apply")
    await_field(site, JOBS, "wide-deep", "{.status.state.phase} {.status.succeeded}", "Completed 7", "ads")
    assert sorted(set(site.phases("", "ads"))) == ["Succeeded"]


def test_a_cron_job_makes_up_for_the_moment_that_was_missed(site: Site) -> None:
    (found,) = lasting(example("cron-job", "cronjob.yaml"), 1)
    site.make([{**found, "spec": {**found["spec"], "suspend": True}}], "apply")
    missed = json.dumps({"status": {"lastScheduleTime": LONG_AGO}})
    site.kubectl("patch", CRON_JOBS, "evaluate", "--subresource=status", "--type=merge", "-p", missed, namespace="research")
    site.kubectl("patch", CRON_JOBS, "evaluate", "--type=merge", "-p", '{"spec": {"suspend": false}}', namespace="research")
    jobs = site.api("research")
    site.wait(
        lambda: len(ended(jobs.read("batch.volcano.sh/v1alpha1:jobs").body["items"])) == 1, lambda: site.phases("", "research")
    )


def ended(jobs: list[dict[str, Any]]) -> list[str]:
    return [item["metadata"]["name"] for item in jobs if item.get("status", {}).get("state", {}).get("phase") == "Completed"]


def test_the_jobs_of_a_flow_come_one_after_the_other(site: Site) -> None:
    site.make(lasting(example("job-flow", "templates.yaml", "flow.yaml"), 1), "apply")
    await_field(site, "jobflows.flow.volcano.sh", "llama", "{.status.state.phase}", "Succeed", "research")
    jobs = site.get(JOBS, namespace="research")["items"]
    assert sorted(ended(jobs)) == ["llama-evaluate", "llama-prepare", "llama-publish", "llama-train"]


def test_a_closed_queue_takes_no_new_work_until_it_is_opened(site: Site) -> None:
    site.make([build.queue("vision")])
    await_field(site, QUEUES, "vision", "{.status.state}", "Open")
    site.make([command("CloseQueue")])
    await_field(site, QUEUES, "vision", "{.status.state}", "Closed")
    site.make(build.gang("train", tasks=2, queue="vision", cpu=4))
    await_field(site, GROUPS, "train", "{.status.conditions[*].message}", "queue vision is Closing")
    assert site.bound() == {}
    site.make([command("OpenQueue")])
    site.await_phases("train-", {"Running": 2})
    assert site.get("commands.bus.volcano.sh")["items"] == []


def command(action: str) -> Document:
    """Return what somebody writes who closes or opens a queue."""
    target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "vision"}
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": action.lower()},
        "action": action, "target": target,
    }  # fmt: skip
