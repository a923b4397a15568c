"""`phalanx suspend`, `resume` and `queue`: what is written for which kind, and what cannot be suspended or closed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main, volcano_commands
from phalanx.model.kinds import COMMAND, kind_of
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import kai_objects as kai
from tests.support.http_api import served


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no cluster of the one who runs the tests be found; no controller runs, so that nobody waits for one."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("PHALANX_SERVER", raising=False)
    monkeypatch.setattr(volcano_commands, "PATIENCE_SECONDS", 0.0)


@contextmanager
def cluster(*documents: Document) -> Iterator[tuple[MemoryStore, str]]:
    store = MemoryStore(lambda: 1_767_225_600.0)
    for document in documents:
        store.load(document)
    with served(store) as connection:
        yield store, connection.server


def run(server: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--server", server, "-n", "default"], prog_name="phalanx")


def owner(api: str, kind: str, name: str = "x", *, of: Document | None = None, **spec: Any) -> Document:
    meta = {"name": name, "namespace": "default", "uid": f"{kind}-{name}", "ownerReferences": [_reference(of)] if of else []}
    return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec}


def _reference(of: Document) -> Mapping[str, Any]:
    meta = of["metadata"]
    return {"apiVersion": of["apiVersion"], "kind": of["kind"], "name": meta["name"], "uid": meta["uid"], "controller": True}


def owned_gang(of: Document) -> list[Document]:
    group, *pods = build.gang("train", tasks=2, gpus=1)
    group["metadata"]["ownerReferences"] = [_reference(of)]
    return [group, *pods]


def spec_of(store: MemoryStore, document: Document) -> Mapping[str, Any]:
    meta = document["metadata"]
    found: Mapping[str, Any] = store.get(kind_of(document), meta["namespace"], meta["name"])["spec"]
    return found


@pytest.mark.parametrize(
    ("api", "kind", "typed", "title"),
    [
        ("batch/v1", "Job", "job/x", "job.batch/x"),
        ("batch/v1", "CronJob", "cj/x", "cronjob.batch/x"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", "jobset/x", "jobset.jobset.x-k8s.io/x"),
        ("ray.io/v1", "RayCluster", "raycluster/x", "raycluster.ray.io/x"),
        ("ray.io/v1", "RayJob", "rayjob/x", "rayjob.ray.io/x"),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjob/x", "trainjob.trainer.kubeflow.org/x"),
    ],
)
def test_a_field_of_the_spec_suspends_and_resumes(api: str, kind: str, typed: str, title: str) -> None:
    document = owner(api, kind)
    with cluster(document) as (store, server):
        first, second = run(server, "suspend", typed), run(server, "suspend", typed)
        assert (first.exit_code, first.stdout) == (0, f"{title} suspended\n"), first.stderr
        assert second.stdout == f"{title} unchanged: it is suspended already\n"
        assert spec_of(store, document)["suspend"] is True
        assert run(server, "resume", typed).stdout == f"{title} resumed\n"
        assert spec_of(store, document)["suspend"] is False


@pytest.mark.parametrize(
    ("api", "kind"), [("kubeflow.org/v1", "PyTorchJob"), ("kubeflow.org/v1", "TFJob"), ("kubeflow.org/v2beta1", "MPIJob")]
)
def test_the_run_policy_of_a_training_job_suspends_it(api: str, kind: str) -> None:
    document = owner(api, kind, runPolicy={"cleanPodPolicy": "None"})
    with cluster(document) as (store, server):
        assert run(server, "suspend", kind.lower(), "x").exit_code == 0
        assert spec_of(store, document)["runPolicy"] == {"cleanPodPolicy": "None", "suspend": True}


def test_the_owner_of_a_gang_is_suspended() -> None:
    job = owner("batch/v1", "Job")
    with cluster(job, *owned_gang(job)) as (store, server):
        assert run(server, "suspend", "train").stdout == "job.batch/x suspended\n"
        assert spec_of(store, job)["suspend"] is True


def test_of_several_owners_the_topmost_is_suspended_unless_it_only_starts_jobs() -> None:
    whole = owner("jobset.x-k8s.io/v1alpha2", "JobSet", "whole")
    part = owner("batch/v1", "Job", "part", of=whole)
    with cluster(whole, part, *owned_gang(part)) as (_, server):
        assert run(server, "suspend", "gang/train").stdout == "jobset.jobset.x-k8s.io/whole suspended\n"
    schedule = owner("batch/v1", "CronJob", "nightly")
    job = owner("batch/v1", "Job", "tonight", of=schedule)
    with cluster(schedule, job, *owned_gang(job)) as (_, server):
        assert run(server, "suspend", "train").stdout == "job.batch/tonight suspended\n"


def test_a_job_whose_gang_has_gone_is_found_by_its_name() -> None:
    with cluster(owner("batch/v1", "Job", suspend=True)) as (_, server):
        assert run(server, "resume", "x").stdout == "job.batch/x resumed\n"


def test_a_job_of_volcano_gets_a_command_as_vcctl_writes_it() -> None:
    job = owner("batch.volcano.sh/v1alpha1", "Job")
    with cluster(job) as (store, server):
        result = run(server, "suspend", "vcjob/x")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.startswith("job.batch.volcano.sh/x will be suspended: no controller has carried it out yet")
        (command,) = store.items(COMMAND)
    assert (command["action"], command["target"]["kind"], command["target"]["name"]) == ("AbortJob", "Job", "x")
    assert command["target"]["uid"] == command["metadata"]["ownerReferences"][0]["uid"]
    assert command["metadata"]["name"].startswith("x-abortjob-")


@pytest.mark.parametrize(("phase", "status", "sentence"), [
    ("Completed", 1, "error: job.batch.volcano.sh/x: it is Completed: it has ended, so that it can be neither suspended"),
    ("Running", 0, "job.batch.volcano.sh/x unchanged: it is Running"),
])  # fmt: skip
def test_a_job_that_is_not_aborted_is_not_resumed(phase: str, status: int, sentence: str) -> None:
    job = {**owner("batch.volcano.sh/v1alpha1", "Job"), "status": {"state": {"phase": phase}}}
    with cluster(job) as (store, server):
        result = run(server, "resume", "vcjob/x")
        assert (result.exit_code, list(store.items(COMMAND))) == (status, [])
        assert sentence in result.output


def test_a_job_of_kueue_is_suspended_with_a_note() -> None:
    job = owner("batch/v1", "Job")
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    with cluster(job) as (_, server):
        result = run(server, "suspend", "job/x")
    assert (result.exit_code, result.stdout) == (0, "job.batch/x suspended\n")
    assert "note: job.batch/x is in Kueue's queue team: where Kueue runs, it undoes this" in result.stderr


@pytest.mark.parametrize(
    ("document", "typed", "sentence"),
    [
        (owner("apps/v1", "Deployment"), "deploy/x", "cannot be suspended; scale it to none: kubectl scale deployment.apps/x"),
        (owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"), "lws/x", "a LeaderWorkerSet cannot be suspended; scale it"),
        (owner("ray.io/v1", "RayService"), "rayservice/x", "a RayService cannot be suspended: its spec has no field"),
        (build.queue("x"), "vcqueue/x", "a queue is not suspended but closed; write: phalanx queue close x"),
        (build.node("n"), "job/nosuch", 'error: jobs.batch "nosuch" not found'),
        (build.node("n"), "nosuch", 'error: gang "nosuch" not found'),
    ],
)  # fmt: skip
def test_what_cannot_be_suspended_is_told_with_the_reason(document: Document, typed: str, sentence: str) -> None:
    with cluster(document) as (_, server):
        result = run(server, "suspend", typed)
    assert (result.exit_code, result.stdout) == (1, "")
    assert sentence in result.stderr


def test_a_gang_without_an_owner_cannot_be_suspended_and_others_are() -> None:
    with cluster(*build.gang("alone", tasks=1), owner("batch/v1", "Job")) as (_, server):
        result = run(server, "suspend", "gang/alone", "job/x")
    assert (result.exit_code, result.stdout) == (1, "job.batch/x suspended\n")
    assert "no owner makes its pods again; delete it with 'phalanx delete gang alone'" in result.stderr


# --- queues --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "state", "action"), [("close", "Open", "CloseQueue"), ("open", "Closed", "OpenQueue")])
def test_a_queue_of_volcano_gets_a_command(word: str, state: str, action: str) -> None:
    with cluster({**build.queue("q"), "status": {"state": state}}) as (store, server):
        result = run(server, "queue", word, "q")
        assert (result.exit_code, result.stderr) == (0, "")
        (command,) = store.items(COMMAND)
        assert (command["action"], command["target"]["kind"], command["target"]["name"]) == (action, "Queue", "q")


@pytest.mark.parametrize(("word", "state"), [("close", "Closed"), ("open", "Open")])
def test_a_queue_in_that_state_is_left_alone(word: str, state: str) -> None:
    with cluster({**build.queue("q"), "status": {"state": state}}) as (store, server):
        assert run(server, "queue", word, "q").stdout == f"queue.scheduling.volcano.sh/q unchanged: it is {state}\n"
        assert list(store.items(COMMAND)) == []


def test_a_queue_of_kai_cannot_be_closed_and_an_unknown_one_is_not_found() -> None:
    with cluster(kai.queue("team", parent="")) as (_, server):
        result = run(server, "queue", "close", "team", "nosuch")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: queue.scheduling.run.ai/team: a queue of KAI's has no state that could be closed" in result.stderr
    assert '"nosuch" not found' in result.stderr
