"""What lists and descriptions show: columns from the definitions, selection by fields, shares of queues, groups that are in use."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.explain.queue_figures import queue_list
from phalanx.manifests.definitions import DEFINITIONS, definition_documents
from phalanx.model.kinds import GROUP_KINDS
from phalanx.session.cycle import run_cycle
from phalanx.store.kube.client import QUEUES
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from phalanx.testing.build import Document
from phalanx.web.columns import columns_of
from tests.support import coscheduling_gangs as sigs
from tests.support.http_api import served

NOW = 1_767_225_600.0
SERVING = {kind.group for kind in GROUP_KINDS}
Own = Mapping[str, Callable[[], Mapping[str, Any]]]


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no cluster of the one who runs the tests be found."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def filled(*documents: Document) -> MemoryStore:
    """Return a store with these objects."""
    store = MemoryStore(lambda: NOW)
    for document in ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}, *documents):
        store.load(document)
    return store


def run(*arguments: str, store: MemoryStore, own: Own | None = None) -> Result:
    """Run a command against a cluster with these objects."""
    with served(store, own) as server:
        return CliRunner().invoke(main, [*arguments, "--server", server.server], prog_name="phalanx")


# --- columns -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("definition", definition_documents(), ids=lambda item: item["metadata"]["name"])
def test_a_list_has_the_columns_of_the_definition(definition: Any) -> None:
    (version,) = definition["spec"]["versions"]
    api = f"{definition['spec']['group']}/{version['name']}"
    shown = [column.title for column in columns_of(definition["spec"]["names"]["kind"], api, NOW)]
    assert shown == ["NAME", *(column["name"].upper() for column in version["additionalPrinterColumns"])]


def test_every_definition_ends_with_the_age() -> None:
    assert {definition.columns[-1].name for definition in DEFINITIONS} == {"Age"}


def test_kinds_of_others_with_a_name_of_ours_have_only_a_name_and_an_age() -> None:
    assert [column.title for column in columns_of("Service", "serving.knative.dev/v1", NOW)] == ["NAME", "AGE"]
    assert [column.title for column in columns_of("Job", "batch/v1", NOW)] == ["NAME", "AGE"]


def test_a_job_shows_how_many_it_needs_and_how_many_run() -> None:
    meta = {"name": "train", "namespace": "default"}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": {"tasks": []}}
    store = filled({**job, "status": {"state": {"phase": "Running"}, "minAvailable": 3, "running": 2}})
    head, row = run("get", "vcjob", store=store).stdout.splitlines()
    assert head.split() == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert row.split()[:4] == ["train", "Running", "3", "2"]


def test_a_job_shows_the_counts_of_vcctl_when_there_is_room() -> None:
    meta = {"name": "train", "namespace": "default"}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": {"tasks": [], "queue": "q"}}
    counts = {"minAvailable": 3, "running": 2, "pending": 4, "succeeded": 5, "failed": 6, "retryCount": 7}
    store = filled({**job, "status": {"state": {"phase": "Running"}, **counts}})
    head, row = run("get", "vcjob", "-o", "wide", store=store).stdout.splitlines()
    assert head.split()[3:] == ["RUNNINGS", "QUEUE", "PENDING", "SUCCEEDED", "FAILED", "RETRIES", "AGE"]
    assert row.split()[3:9] == ["2", "q", "4", "5", "6", "7"]


def test_a_moment_is_shown_as_an_age() -> None:
    columns = {column.title: column for column in columns_of("CronJob", "batch.volcano.sh/v1alpha1", NOW)}
    assert columns["LAST"].cell({"status": {"lastScheduleTime": "2025-12-31T23:59:00Z"}}) == "60s"
    assert columns["LAST"].cell({}) == ""


# --- selection by fields -------------------------------------------------------------------------------------------------


def some_pods() -> MemoryStore:
    return filled(build.node("node-0"), build.pod("a", on="node-0"), build.pod("b"), build.pod("other/c", on="node-0"))


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("spec.nodeName=node-0", ["a", "c"]),
        ("spec.nodeName!=node-0", ["b"]),
        ("status.phase=Pending", ["b"]),
        ("metadata.namespace=other", ["c"]),
        ("metadata.name=a,status.phase=Running", ["a"]),
    ],
)
def test_objects_are_selected_by_fields(selector: str, names: list[str]) -> None:
    found = run("get", "pods", "-A", "--field-selector", selector, "-o", "name", store=some_pods()).stdout.split()
    assert found == [f"pod/{name}" for name in names]


def test_a_field_that_is_none_is_refused_with_those_that_are() -> None:
    result = run("get", "pods", "--field-selector", "spec.image=a", store=some_pods())
    assert result.exit_code == 1
    assert result.stderr.startswith("error: field label not supported: spec.image; Pod has metadata.name")


def test_gangs_have_no_fields_to_select_by() -> None:
    result = run("get", "gangs", "--field-selector", "metadata.name=a", store=some_pods())
    assert result.exit_code == 2
    assert "gangs have no labels or fields to select by" in result.stderr


# --- queues --------------------------------------------------------------------------------------------------------------


def test_queues_are_listed_with_what_they_deserve() -> None:
    cluster = build.cluster(nodes=2, cpu=4, policy=policy_of_profile("volcano"))
    cluster.submit(build.queue("research"), build.gang("train", tasks=2, cpu=2, queue="research"))
    snapshot = cluster.objects.snapshot(NOW)
    listed = queue_list(snapshot, run_cycle(snapshot, cluster.policy, CATALOGUE).queues)["items"]
    (figures,) = [item["figures"] for item in listed if item["name"] == "research"]
    assert figures["cpu"]["requested"] == figures["cpu"]["deserved"] == 4
    assert "allocated" not in figures["cpu"]


def test_a_queue_is_described_with_what_it_deserves() -> None:
    memory = {"deserved": 2.0**30, "capability": 2.0**31}
    figures = {"cpu": {"deserved": 6.0, "requested": 4.5}, "memory": memory, "pods": {"requested": 0.0}}
    own: Own = {QUEUES: lambda: {"items": [{"name": "research", "figures": figures}]}}
    lines = run("describe", "queue", "research", store=filled(build.queue("research")), own=own).stdout.splitlines()
    table = [line.split() for line in lines[lines.index("Shares:") + 1 :]]
    assert table == [
        ["RESOURCE", "DESERVED", "REQUESTED", "CAPABILITY"],
        ["cpu", "6", "4.5", "-"], ["memory", "1Gi", "0", "2Gi"],
    ]  # fmt: skip


def test_a_cluster_that_says_nothing_of_shares_shows_none() -> None:
    described = run("describe", "queue", "research", store=filled(build.queue("research")))
    assert described.exit_code == 0
    assert "Shares:" not in described.stdout


# --- which group kubectl takes -------------------------------------------------------------------------------------------


def groups(*documents: Document) -> list[str]:
    """Return the API groups of a cluster with these objects, in the order of its discovery."""
    with served(filled(*documents)) as server:
        return [item["name"] for item in server.ask("GET", "/apis").body["groups"]]


def test_groups_that_have_pod_groups_come_first() -> None:
    first = [next(name for name in found if name in SERVING) for found in (groups(), groups(*sigs.gang("train", tasks=1)))]
    assert first == ["scheduling.k8s.io", "scheduling.x-k8s.io"]


def test_all_other_groups_stay_where_they_are() -> None:
    before, after = groups(), groups(*sigs.gang("train", tasks=1))
    assert {name for name, other in zip(before, after, strict=True) if name != other} <= SERVING
    assert sorted(before) == sorted(after)
