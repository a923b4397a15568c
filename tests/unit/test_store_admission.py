"""Objects on their way into the embedded cluster, beyond what tests/contract asks of every store."""

from collections.abc import Mapping
from typing import Any

import pytest

from phalanx.dialects.gates import GATE
from phalanx.errors import Invalid
from phalanx.model.kinds import NAMESPACE, Document, kind_of
from phalanx.store.memory import MemoryStore

VOLCANO, BATCH = "scheduling.volcano.sh/v1beta1", "batch.volcano.sh/v1alpha1"
LINKS: list[tuple[str, str]] = [
    ("labels", "phalanx.dev/gang"),
    ("labels", "scheduling.x-k8s.io/pod-group"),
    ("labels", "pod-group.scheduling.sigs.k8s.io"),
    ("labels", "pod-group.scheduling.sigs.k8s.io/name"),
    ("annotations", "scheduling.k8s.io/group-name"),
    ("annotations", "pod-group-name"),
    ("annotations", "gang.scheduling.koordinator.sh/name"),
    ("labels", "kueue.x-k8s.io/pod-group-name"),
    ("annotations", "kueue.x-k8s.io/pod-group-name"),
    ("labels", "yunikorn.apache.org/app-id"),
    ("annotations", "yunikorn.apache.org/app-id"),
]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(lambda: 0.0)


def thing(api_version: str, kind: str, spec: Mapping[str, Any] | None = None, **meta: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "it", **meta}, **({} if spec is None else {"spec": spec})}


def pod(**meta: Any) -> Document:
    return thing("v1", "Pod", {"containers": [{"name": "main", "image": "train:1"}]}, **meta)


def refusal(store: MemoryStore, document: Document) -> str:
    with pytest.raises(Invalid) as caught:
        store.create(document)
    return str(caught.value)


# --- gates ---------------------------------------------------------------------------------------------------------------


def gates(document: Document) -> list[str]:
    return [gate["name"] for gate in document["spec"].get("schedulingGates", ())]


@pytest.mark.parametrize(("where", "key"), LINKS)
def test_pods_of_gangs_are_gated_where_the_namespace_asks_for_it(store: MemoryStore, where: str, key: str) -> None:
    store.create(thing("v1", "Namespace", name="gated", labels={"phalanx.dev/gates": "enabled"}))
    assert gates(store.create(pod(namespace="gated", **{where: {key: "train"}}))) == [GATE]
    assert gates(store.create(pod(namespace="default", **{where: {key: "train"}}))) == []


def test_a_pod_of_its_own_is_not_gated(store: MemoryStore) -> None:
    store.create(thing("v1", "Namespace", name="gated", labels={"phalanx.dev/gates": "enabled"}))
    assert gates(store.create(pod(namespace="gated", labels={"app": "web"}))) == []


@pytest.mark.parametrize(("scheduler", "found"), [("yunikorn", [GATE]), ("default-scheduler", []), ("", [])])
def test_labels_that_others_use_too_make_a_gang_under_their_scheduler_alone(
    store: MemoryStore, scheduler: str, found: list[str]
) -> None:
    store.create(thing("v1", "Namespace", name="gated", labels={"phalanx.dev/gates": "enabled"}))
    document = pod(namespace="gated", labels={"spark-app-selector": "spark"})
    spec = {**document["spec"], **({"schedulerName": scheduler} if scheduler else {})}
    assert gates(store.create({**document, "spec": spec})) == found


# --- what is looked at ---------------------------------------------------------------------------------------------------


def test_a_status_and_metadata_are_written_unseen(store: MemoryStore) -> None:
    broken = store.load(thing(VOLCANO, "PodGroup", {"minMember": -1}))
    kind = kind_of(broken)
    assert store.patch(kind, "default", "it", {"status": {"phase": "Nowhere"}}, is_status=True)["status"] == {"phase": "Nowhere"}
    assert store.patch(kind, "default", "it", {"metadata": {"labels": {"a": "b"}}})["spec"] == {"minMember": -1}
    with pytest.raises(Invalid, match=r"spec\.minMember"):
        store.patch(kind, "default", "it", {"spec": {"queue": "q"}})
    assert store.patch(kind, "default", "it", {"spec": {"minMember": 1}})["status"] == {"phase": "Nowhere"}


def test_what_was_stored_without_defaults_does_not_change_by_getting_them(store: MemoryStore) -> None:
    old = store.load(thing(BATCH, "Job", {"tasks": [{"name": "a", "replicas": 2}]}))
    changed = store.patch(kind_of(old), "default", "it", {"spec": {"minAvailable": 1}})["spec"]
    assert (changed["minAvailable"], changed["queue"], changed["maxRetry"]) == (1, "default", 3)
    with pytest.raises(Invalid, match="of a job only minAvailable"):
        store.patch(kind_of(old), "default", "it", {"spec": {"queue": "other"}})


def test_what_is_refused_leaves_no_trace(store: MemoryStore) -> None:
    before = store.history.version
    refusal(store, thing(VOLCANO, "PodGroup", {"minMember": -1}))
    assert store.history.version == before
    assert store.find(kind_of(thing(VOLCANO, "PodGroup")), "default", "it") is None


def test_built_in_kinds_are_left_alone(store: MemoryStore) -> None:
    made = store.create(thing("v1", "Namespace", {"whatever": True}, name="lab"))
    assert store.get(NAMESPACE, "", "lab")["spec"] == made["spec"] == {"whatever": True}
