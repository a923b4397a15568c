"""A gang of every dialect on a real control plane: it starts whole, and one that has no room waits whole and says why."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from phalanx.dev.layout import SCHEDULER
from phalanx.dev.plane import ControlPlane
from phalanx.dev.programs import path_of
from phalanx.dev.replicas import scheduling
from phalanx.model.kinds import Document
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import same_gang as speech
from tests.support.live_site import Site

pytestmark = pytest.mark.xdist_group("controlplane")
NAMES = ("phalanx", "volcano", "kai-scheduler", "koord-scheduler", "yunikorn")
GANGS = ("first", "second")
GATED = "phalanx.dev/gates=enabled"
"""A namespace with this label: our policy puts the gate on pods of gangs."""
VOLCANO = "podgroups.scheduling.volcano.sh"


@dataclass(frozen=True, slots=True)
class Words:
    """How a dialect says that the first of two gangs runs and why the second waits."""

    scheduler: str
    why: str
    groups: str = ""
    """Where there are any; if not, pods say it."""
    stands: str = ""
    runs: str = ""
    waits: str = ""
    reason: str = ""
    """Where a group says why it waits; if nowhere, pods say it."""


WORDS = {
    "volcano": Words(
        "volcano", "1/2 tasks in gang unschedulable: pod group is not ready", VOLCANO,
        "{.status.phase} {.status.running} {.status.conditions[-1:].type}", "Running 2 Scheduled", "Inqueue 0 Unschedulable",
        "{.status.conditions[*].message}",
    ),
    "kai": Words(
        "kai-scheduler", "queue default has 12 of 12 cpu it may use", "podgroups.scheduling.run.ai",
        "{.status.phase} {.status.schedulingConditions[*].type}", "Running ", "Pending UnschedulableOnNodePool",
        "{.status.schedulingConditions[*].message}",
    ),
    "coscheduling": Words(
        "phalanx", "/second: queue default has 12 of 12 cpu", "podgroups.scheduling.x-k8s.io",
        "{.status.phase} {.status.running}", "Running 2", "Scheduling 0",
    ),
    "koordinator": Words(
        "koord-scheduler", "/second: queue default has 12 of 12 cpu", "podgroups.scheduling.sigs.k8s.io",
        "{.status.phase} {.status.scheduled}", "Running 2", "Scheduling 0",
    ),
    "native": Words(
        "phalanx", "1 of 2 tasks fit; 1 more place for 4 cpu needed", "podgroups.scheduling.k8s.io",
        "{.status.conditions[*].type} {.status.conditions[*].status}", "PodGroupScheduled True", "PodGroupScheduled False",
        "{.status.conditions[*].message}",
    ),
    "yunikorn": Words("yunikorn", "application second starts as a whole, and 1 of the 2 pods"),
    "kueue": Words("phalanx", "pod group second starts as a whole, and 1 of the 2 pods"),
    "gates": Words("default-scheduler", "1 of 2 tasks fit; 1 more place for 4 cpu needed"),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def scheduler(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with scheduling(plane, tmp_path_factory.mktemp("run"), *(f"--scheduler-name={name}" for name in NAMES)):
        yield


@pytest.fixture
def kube_scheduler(plane: ControlPlane) -> Iterator[None]:
    plane.start(SCHEDULER)
    yield
    plane.stop(SCHEDULER)


def gang(dialect: str, name: str) -> list[Document]:
    return [*speech.gang(dialect, name, tasks=2, cpu=4)]


def with_scheduler(documents: Iterable[Document], name: str) -> list[Document]:
    """Return objects whose pods name a scheduler."""
    return [{**item, "spec": {**item["spec"], "schedulerName": name}} if item["kind"] == "Pod" else item for item in documents]


def said(site: Site, words: Words, name: str, path: str) -> str:
    """Return what stands on a group, or in the condition of its pods where no path is known."""
    if path:
        return site.kubectl("get", words.groups, name, f"-o=jsonpath={path}")
    conditions = [item for pod in site.pods(f"{name}-") for item in pod["status"].get("conditions", ())]
    return "\n".join(item.get("message", "") for item in conditions if item["type"] == "PodScheduled")


def await_words(site: Site, words: Words, name: str, path: str, expected: str) -> None:
    site.wait(lambda: expected in said(site, words, name, path), lambda: f"{said(site, words, name, path)!r} has no {expected!r}")


def gangs_by_plugin(plane: ControlPlane, site: Site) -> dict[str, dict[str, Any]]:
    """Return what `kubectl phalanx get gangs` says, by name."""
    command = [str(path_of("kubectl")), "phalanx", "get", "gangs", "-n", site.namespace(), "-o", "json"]
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "KUBECONFIG": str(plane.kubeconfig)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return {item["metadata"]["name"]: item for item in json.loads(done.stdout)["items"]}


def bring(dialect: str, plane: ControlPlane, site: Site, first: Iterable[Document], second: Iterable[Document]) -> None:
    """Bring two gangs of two to three places: the first one starts, the second one waits whole until the first one has gone."""
    words = WORDS[dialect]
    site.make(build.node(f"place-{number}", cpu=4) for number in range(3))
    site.make(with_scheduler(first, words.scheduler))
    site.await_phases("first-", {"Running": 2})
    site.make(with_scheduler(second, words.scheduler))
    await_words(site, words, "second", words.reason, words.why)
    assert site.bound("second-") == {}
    found = gangs_by_plugin(plane, site)
    assert [(found[name]["dialect"], found[name]["status"]) for name in GANGS] == [(dialect, "Runs"), (dialect, "Waits")]
    site.kubectl("delete", "pod", "first-0", "first-1")
    site.await_phases("second-", {"Running": 2})


@pytest.mark.parametrize("dialect", [name for name in speech.DIALECTS if name != "gates"])
def test_a_gang_starts_whole_and_the_next_one_waits_whole_for_its_room(dialect: str, plane: ControlPlane, site: Site) -> None:
    bring(dialect, plane, site, *(gang(dialect, name) for name in GANGS))


@pytest.mark.parametrize("dialect", [name for name, words in WORDS.items() if words.groups])
def test_a_group_says_how_it_stands_in_the_words_of_its_dialect(dialect: str, site: Site) -> None:
    words = WORDS[dialect]
    site.make(build.node(f"place-{number}", cpu=4) for number in range(3))
    for name, expected in zip(GANGS, (words.runs, words.waits), strict=True):
        site.make(with_scheduler(gang(dialect, name), words.scheduler))
        await_words(site, words, name, words.stands, expected)


def test_koordinators_gangs_need_no_group_object(plane: ControlPlane, site: Site) -> None:
    pods = {name: [sigs.describing_pod(f"{name}-{number}", name, min_available="2", cpu=4) for number in (0, 1)] for name in GANGS}
    bring("koordinator", plane, site, *pods.values())


def test_behind_our_gate_kube_scheduler_starts_gangs_whole(plane: ControlPlane, site: Site, kube_scheduler: None) -> None:
    plane.kubectl("label", "namespace", site.namespace(), GATED)
    bring("gates", plane, site, *(map(without_gates, gang("gates", name)) for name in GANGS))


def without_gates(pod: Document) -> Document:
    return {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "schedulingGates"}}


def test_a_gang_of_another_scheduler_is_left_alone(site: Site) -> None:
    site.make([build.node("place", cpu=4), *with_scheduler(gang("volcano", "theirs"), "somebody-else")])
    site.make([build.node("room", cpu=4), *with_scheduler(gang("volcano", "ours"), "volcano")])
    site.await_phases("ours-", {"Running": 2})
    assert site.phases("theirs-") == ["Pending"] * 2
    assert "status" not in site.get(VOLCANO, "theirs")
