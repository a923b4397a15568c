"""Owners whose controllers do not run in an embedded cluster: their users are told that nobody creates the pods."""

from typing import Any

import pytest

from phalanx.controllers.unmade_pods import UnmadePods
from phalanx.model.kinds import Document
from phalanx.store.memory import MemoryStore
from phalanx.store.warning_headers import warning_header, warning_text
from phalanx.testing import build
from tests.support.controller_store import Stage
from tests.support.http_api import served

OWNERS = [
    ("batch/v1", "Job"),
    ("apps/v1", "StatefulSet"),
    ("kubeflow.org/v1", "PyTorchJob"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"),
]
TEXT = "no controller in this cluster creates the pods of a Job; create them too, or use a Job of batch.volcano.sh"
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "train"}], "restartPolicy": "Never"}}
JOBS, VOLCANO_JOBS = (f"/apis/{group}/namespaces/default/jobs" for group in ("batch/v1", "batch.volcano.sh/v1alpha1"))


def owner(api: str = "batch/v1", kind: str = "Job", *, uid: str = "u", of: str = "", **spec: Any) -> Document:
    above = {"ownerReferences": [{"kind": "JobSet", "name": "train", "uid": of, "controller": True}]} if of else {}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "train", "namespace": "default", "uid": uid, **above},
        "spec": spec,
    }


def events(*documents: Document) -> list[tuple[str, bool]]:
    stage = Stage(UnmadePods())
    stage.make(*documents)
    stage.run(1)
    assert stage.told == []
    stage.run(5)
    return [(event.reason, event.is_warning) for event in stage.told]


@pytest.mark.parametrize(("api", "kind"), OWNERS)
def test_an_owner_that_stays_without_pods_gets_an_event(api: str, kind: str) -> None:
    assert events(owner(api, kind)) == [("NoPodController", True)]


def test_an_owner_with_pods_gets_none() -> None:
    pod = build.pod("train-0")
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    ]
    assert events(owner(), pod) == []


WANTS_NONE = pytest.mark.parametrize(
    "spec", [{"suspend": True}, {"runPolicy": {"suspend": True}}, {"replicas": 0}, {"parallelism": 0}]
)


@WANTS_NONE
def test_an_owner_that_wants_no_pods_gets_none(spec: dict[str, Any]) -> None:
    assert events(owner(**spec)) == []


def test_an_owner_that_belongs_to_another_is_not_the_one_that_is_told() -> None:
    assert events(owner(uid="v", of="u")) == []


def test_the_answer_to_a_creation_warns() -> None:
    with served(MemoryStore(lambda: 0.0)) as api:
        answer = api.ask("POST", JOBS, owner(template=TEMPLATE))
        assert (answer.code, [warning_text(item) for item in answer.warnings]) == (201, [TEXT])


@WANTS_NONE
def test_the_answer_to_the_creation_of_an_owner_that_wants_no_pods_does_not_warn(spec: dict[str, Any]) -> None:
    with served(MemoryStore(lambda: 0.0)) as api:
        answer = api.ask("POST", JOBS, owner(template=TEMPLATE, **spec))
        assert (answer.code, [item for item in answer.warnings if TEXT in item]) == (201, [])


def test_a_job_whose_controller_runs_here_needs_no_warning() -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "train"}]}}
    job = owner("batch.volcano.sh/v1alpha1", tasks=[{"replicas": 1, "template": template}])
    with served(MemoryStore(lambda: 0.0)) as api:
        answer = api.ask("POST", VOLCANO_JOBS, job)
        assert (answer.code, [item for item in answer.warnings if TEXT in item]) == (201, [])


@pytest.mark.parametrize("text", ["plain", 'a "quoted" one', "back\\slash", ""])
def test_a_warning_survives_its_header(text: str) -> None:
    assert warning_text(warning_header(text)) == text


def test_a_warning_is_one_line_of_plain_characters() -> None:
    assert warning_header("a\r\nSet-Cookie: é") == '299 - "a??Set-Cookie: ?"'
    assert warning_text("199 - 'something else'") == ""
