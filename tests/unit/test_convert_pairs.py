"""Every dialect converted to every other: each feature of a gang is there when it is read back, or is named as lost."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from phalanx.dialects.convert import DIALECTS, converted
from phalanx.dialects.convert.neutral_gangs import NeutralGang, sort_out
from phalanx.dialects.group_references import REFERENCE_FIELDS
from phalanx.model.gang import Gang
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import coscheduling_gangs as sigs

KOORDINATOR = "gang.scheduling.koordinator.sh/"
GRACE = {"phalanx.dev/staleness-grace": "5m"}


def _pods(*names: str, labels: Mapping[str, str] = {}, annotations: Mapping[str, str] = {}, **spec: Any) -> list[Document]:
    """Return pods ``train-NAME`` of one cpu each."""
    found = [build.pod(f"train-{name}", cpu=1) for name in names]
    for pod in found:
        pod["metadata"] |= {"labels": dict(labels), "annotations": dict(annotations)}
        pod["spec"] |= spec
    return found


def _object(api: str, spec: Document, annotations: Mapping[str, str] = {}) -> Document:
    meta = {"name": "train", "namespace": "default", "annotations": {**GRACE, **annotations}}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec}


def volcano_with_roles() -> list[Document]:
    spec = {
        "minMember": 2, "minTaskMember": {"master": 1, "worker": 1}, "queue": "research", "priorityClassName": "high",
        "minResources": {"cpu": "2"}, "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
    }  # fmt: skip
    pods = [build.in_group("train", build.pod(f"train-{role}", cpu=1), role=role) for role in ("master", "worker", "ps")]
    return [_object("scheduling.volcano.sh/v1beta1", spec, {"volcano.sh/preemptable": "true"}), *pods]


def volcano_with_sub_groups() -> list[Document]:
    policy = {"name": "slice", "subGroupSize": 1, "minSubGroups": 1, "matchLabelKeys": ["slice"],
              "networkTopology": {"mode": "soft", "highestTierAllowed": 1}}  # fmt: skip
    spec = {"minMember": 2, "subGroupPolicy": [policy]}
    pods = _pods("0", "1", annotations={"scheduling.k8s.io/group-name": "train"})
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"] = {"slice": str(number)}
    return [_object("scheduling.volcano.sh/v1beta1", spec), *pods]


def kai() -> list[Document]:
    spec = {
        "minMember": 2, "queue": "research", "priorityClassName": "high", "preemptibility": "non-preemptible",
        "markUnschedulable": False, "schedulingBackoff": 1,
        "topologyConstraint": {"topology": "site", "requiredTopologyLevel": "zone", "preferredTopologyLevel": "rack"},
    }  # fmt: skip
    return [_object("scheduling.run.ai/v2alpha2", spec), *_pods("0", "1", annotations={"pod-group-name": "train"})]


def kai_with_sub_groups() -> list[Document]:
    level = {"topology": "site", "preferredTopologyLevel": "rack"}
    parts = [{"name": "all"}, {"name": "decode", "parent": "all", "minMember": 1, "topologyConstraint": level}]
    pods = _pods("0", labels={"kai.scheduler/subgroup-name": "decode"}, annotations={"pod-group-name": "train"})
    return [_object("scheduling.run.ai/v2alpha2", {"minMember": 1, "queue": "research", "subGroups": parts}), *pods]


def coscheduling() -> list[Document]:
    spec = {"minMember": 2, "minResources": {"cpu": "2", "nvidia.com/gpu": "0"}, "scheduleTimeoutSeconds": 90}
    label = {"scheduling.x-k8s.io/pod-group": "train"}
    return [_object("scheduling.x-k8s.io/v1alpha1", spec), *_pods("0", "1", labels=label, priorityClassName="high")]


def older_coscheduling() -> list[Document]:
    group, *pods = coscheduling()
    label = {"pod-group.scheduling.sigs.k8s.io/name": "train"}
    return [group | {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1"}, *(_labelled(pod, label) for pod in pods)]


def _labelled(pod: Document, labels: Mapping[str, str]) -> Document:
    return pod | {"metadata": {**pod["metadata"], "labels": dict(labels)}}


def koordinator() -> list[Document]:
    settings = {"mode": "NonStrict", "match-policy": "only-waiting", "waiting-time": "90s", "total-number": "3"}
    group = _object(
        "scheduling.sigs.k8s.io/v1alpha1", {"minMember": 2}, {KOORDINATOR + key: text for key, text in settings.items()}
    )
    labels = {"pod-group.scheduling.sigs.k8s.io": "train", "quota.scheduling.koordinator.sh/name": "research"}
    return [group, *_pods("0", "1", "2", labels=labels)]


def koordinator_gang_group() -> list[Document]:
    groups = '["default/train-decode", "default/train-prefill"]'
    spec = {"minResources": {"cpu": "1"}, "scheduleTimeoutSeconds": 90}
    return [item for name in ("decode", "prefill") for item in sigs.koordinator_gang(f"train-{name}", groups=groups, spec=spec)]


def koordinator_pods() -> list[Document]:
    settings = {"name": "train", "min-available": "2", "mode": "NonStrict", "waiting-time": "90s"}
    return _pods("0", "1", annotations={**GRACE, **{KOORDINATOR + key: text for key, text in settings.items()}})


def native() -> list[Document]:
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 2}}, "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "disruptionMode": "PodGroup", "priorityClassName": "high", "priority": 7, "resourceClaims": [{"name": "net"}],
    }  # fmt: skip
    group = _object("scheduling.k8s.io/v1alpha2", spec, {"scheduling.volcano.sh/queue-name": "research"})
    return [group, *_pods("0", "1", schedulingGroup={"podGroupName": "train"})]


def beta() -> list[Document]:
    group, *pods = native()
    spec = {**group["spec"], "disruptionMode": {"all": {}}, "preemptionPolicy": "Never"}
    return [group | {"apiVersion": "scheduling.k8s.io/v1beta1", "spec": spec}, *pods]


def yunikorn() -> list[Document]:
    groups = json.dumps([{"name": role, "minMember": 1, "minResource": {"cpu": "1"}} for role in ("master", "worker")])
    labels = {"yunikorn.apache.org/app-id": "train", "yunikorn.apache.org/queue": "root.research"}
    pods = _pods("0", "1", labels=labels, annotations=GRACE, schedulerName="yunikorn", priorityClassName="high")
    for pod, role in zip(pods, ("master", "worker"), strict=True):
        pod["metadata"]["annotations"]["yunikorn.apache.org/task-group-name"] = role
    pods[0]["metadata"]["annotations"] |= {
        "yunikorn.apache.org/task-groups": groups,
        "yunikorn.apache.org/schedulingPolicyParameters": "placeholderTimeoutInSeconds=90 gangSchedulingStyle=Hard",
    }
    return pods


def kueue(topology: str = "required") -> list[Document]:
    labels = {"kueue.x-k8s.io/pod-group-name": "train", "kueue.x-k8s.io/queue-name": "research"}
    notes = {"kueue.x-k8s.io/pod-group-total-count": "2", f"kueue.x-k8s.io/podset-{topology}-topology": "rack", **GRACE}
    return _pods("0", "1", labels=labels, annotations=notes, priorityClassName="high")


def gates() -> list[Document]:
    notes = {"phalanx.dev/min-member": "2", "phalanx.dev/timeout": "90s", "phalanx.dev/on-timeout": "delete", **GRACE}
    return _pods("0", "1", labels={"phalanx.dev/gang": "train"}, annotations=notes, schedulingGates=[{"name": "phalanx.dev/gang"}])


SOURCES: dict[str, Callable[[], list[Document]]] = {
    source.__name__: source
    for source in (
        volcano_with_roles, volcano_with_sub_groups, kai, kai_with_sub_groups, coscheduling, older_coscheduling, koordinator,
        koordinator_gang_group, koordinator_pods, native, beta, yunikorn, kueue, gates,
    )
} | {"kueue_preferred": lambda: kueue("preferred")}  # fmt: skip

FEATURES: dict[str, tuple[Callable[[NeutralGang], object], tuple[str, ...]]] = {
    "name": (lambda gang: gang.name, ()),
    "minimum": (lambda gang: gang.min_member, ("minMember",)),
    "roles": (
        lambda gang: (dict(gang.roles), sorted(member.role for member in gang.members)),
        ("minTaskMember", "members", "subGroupPolicy"),
    ),
    "sub-groups": (lambda gang: gang.subgroups, ("subGroups", "subGroupPolicy")),
    "topology": (lambda gang: gang.topology, ("topologyConstraint", "networkTopology")),
    "queue": (lambda gang: gang.queue, ("queue",)),
    "priority": (lambda gang: (gang.priority_class, gang.classes), ("priorityClassName",)),
    "minResources": (lambda gang: gang.min_resources, ("minResources",)),
    "preemptability": (lambda gang: gang.is_preemptable, ("preemptability",)),
    "timeout": (lambda gang: gang.timeout_seconds, ("scheduleTimeoutSeconds",)),
    "wholeness": (lambda gang: gang.goes_whole, ("disruptionMode",)),
    "members": (lambda gang: sorted(member.document["metadata"]["name"] for member in gang.members), ("members",)),
}
"""What a gang has, and the fields one of which is named as lost if it has changed."""


def fields_written(documents: list[Document]) -> set[str]:
    """Return fields of group objects, annotations and labels, as losses name them, that the model does not hold."""
    found = set()
    for document in documents:
        tables = ("annotations", "labels") if document["kind"] == "Pod" else ("annotations",)
        keys = {f"metadata.{table}[{key!r}]" for table in tables for key in document["metadata"].get(table) or {}}
        found |= keys | ({f"spec.{key}" for key in document["spec"]} if document["kind"] == "PodGroup" else set())
    return found


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_feature_comes_through_or_is_named_as_lost(source: str, target: str) -> None:
    documents = SOURCES[source]()
    before, found = sort_out(documents).groups, converted(documents, target)
    after, lost = sort_out(found.objects).groups, [item.field for item in found.lost]
    assert len(after) == len(before) == 1
    for feature, (value, names) in FEATURES.items():
        changed = value(before[0]) != value(after[0])
        is_named = any(field.startswith(names) for field in lost) if names else False
        assert not changed or is_named, f"{feature}: {value(before[0])} became {value(after[0])}, lost: {lost}"


HELD = frozenset({
    "spec.minMember", "spec.minTaskMember", "spec.queue", "spec.priorityClassName", "spec.minResources", "spec.networkTopology",
    "spec.subGroupPolicy", "spec.preemptibility", "spec.topologyConstraint", "spec.subGroups", "spec.scheduleTimeoutSeconds",
    "spec.schedulingPolicy", "spec.schedulingConstraints", "spec.disruptionMode",
    *(f"metadata.{table}[{key!r}]" for table in ("annotations", "labels") for key in (
        "volcano.sh/task-spec", "volcano.sh/preemptable", "scheduling.volcano.sh/queue-name", "kai.scheduler/subgroup-name",
        f"{KOORDINATOR}waiting-time", f"{KOORDINATOR}groups", f"{KOORDINATOR}min-available",
        "quota.scheduling.koordinator.sh/name", "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/pod-group-total-count",
        "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology", "phalanx.dev/min-member",
        "yunikorn.apache.org/queue", "yunikorn.apache.org/task-groups", "yunikorn.apache.org/task-group-name",
        *(field.key for field in REFERENCE_FIELDS if field.key),
    )),
})  # fmt: skip
"""Fields, labels and annotations that the features above stand for."""


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_other_field_comes_through_or_is_named_as_lost(source: str, target: str) -> None:
    documents = SOURCES[source]()
    found = converted(documents, target)
    missing = fields_written(documents) - HELD - fields_written(found.objects)
    assert missing <= {item.field for item in found.lost}


@pytest.mark.parametrize(("source", "target"), [("coscheduling", "koordinator"), ("older_coscheduling", "coscheduling")])
def test_old_and_new_groups_of_coscheduling_say_the_same(source: str, target: str) -> None:
    found = converted(SOURCES[source](), target)
    assert found.lost == []
    assert found.objects[0]["spec"] == SOURCES[source]()[0]["spec"]


def test_a_gang_keeps_its_grace_period_in_every_dialect() -> None:
    gangs: list[Gang] = []
    for target in DIALECTS:
        cluster = build.cluster(nodes=0).submit(converted(coscheduling(), target).objects)
        gangs += cluster.objects.snapshot(0.0).gangs.values()
    assert {gang.staleness_grace_seconds for gang in gangs} == {300.0}
