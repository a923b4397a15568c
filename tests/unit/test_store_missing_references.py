"""Everything that is referred to and is not there is said: on stderr, and in the answer for programs."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.errors import Forbidden
from phalanx.model.kinds import kind_at
from phalanx.store.completion import ManifestObjects
from phalanx.store.input_files import Intake, take_in
from phalanx.store.listed_cluster import ListedCluster
from phalanx.store.missing_references import MissingReference, sentences
from phalanx.testing import build
from phalanx.testing.build import Document

HERE = "is not in the input; it is named by"


def pod(name: str = "p", *, owner: str = "", marks: Document | None = None, **spec: Any) -> Document:
    found = build.pod(name, cpu=1)
    api, _, kind = owner.rpartition("/")
    references = [{"apiVersion": api, "kind": kind, "name": "train", "uid": "u", "controller": True}] if owner else []
    own = {"annotations": {"scheduling.k8s.io/group-name": "g"}} if marks is None and not owner else (marks or {})
    meta = {"name": name, "namespace": "default", "ownerReferences": references, **own}
    return {**found, "metadata": meta, "spec": {**found["spec"], "schedulerName": "volcano", **spec}}


def group(**spec: Any) -> Document:
    found = build.pod_group("g", min_member=1)
    return {**found, "spec": {**found["spec"], **spec}}


def made(api: str, kind: str, name: str, **more: Any) -> Document:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **more}


def volume_claim(**spec: Any) -> Document:
    return made("v1", "PersistentVolumeClaim", "data", spec=spec)


WITH_VOLUME: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
WITH_CLAIM: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
WITH_TEMPLATE: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
CLAIM = made("resource.k8s.io/v1", "ResourceClaim", "c",
             spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "a100"}}]}})  # fmt: skip
TEMPLATE = made("resource.k8s.io/v1", "ResourceClaimTemplate", "t", spec={"spec": {}})
RACKS = made("scheduling.run.ai/v2alpha2", "PodGroup", "g", spec={
    "minMember": 1, "queue": "default", "topologyConstraint": {"topology": "racks", "requiredTopologyLevel": "rack"},
})  # fmt: skip
CASES: dict[str, tuple[list[Document], str]] = {
    "queue": ([group(queue="q"), pod()], f"Queue 'q' {HERE} PodGroup default/g"),
    "parent": ([group(), pod(), {**build.queue("q"), "spec": {"parent": "up"}}], f"Queue 'up' {HERE} Queue q"),
    "class": (
        [group(priorityClassName="hi"), pod()],
        f"PriorityClass 'hi' {HERE} PodGroup default/g, which has the default priority",
    ),
    "class of a pod": (
        [group(), pod(priorityClassName="hi")],
        f"PriorityClass 'hi' {HERE} Pod default/p, whose priority is 0",
    ),
    "group": ([pod()], f"PodGroup 'default/g' {HERE} Pod default/p"),
    "native group": (
        [pod(marks={}, schedulingGroup={"podGroupName": "x"})],
        f"PodGroup 'default/x' {HERE} Pod default/p",
    ),
    "volume claim": ([group(), pod(**WITH_VOLUME)], f"PersistentVolumeClaim 'default/data' {HERE} Pod default/p"),
    "volume": (
        [group(), pod(**WITH_VOLUME), volume_claim(volumeName="pv")],
        f"PersistentVolume 'pv' {HERE} PersistentVolumeClaim default/data",
    ),
    "storage class": (
        [group(), pod(**WITH_VOLUME), volume_claim(storageClassName="fast")],
        f"StorageClass 'fast' {HERE} PersistentVolumeClaim default/data",
    ),
    "claim": ([group(), pod(**WITH_CLAIM)], f"ResourceClaim 'default/c' {HERE} Pod default/p"),
    "claim template": ([group(), pod(**WITH_TEMPLATE)], f"ResourceClaimTemplate 'default/t' {HERE} Pod default/p"),
    "device class": ([group(), pod(**WITH_CLAIM), CLAIM], f"DeviceClass 'a100' {HERE} ResourceClaim default/c"),
    "topology": ([RACKS, pod(marks={"annotations": {"pod-group-name": "g"}})], f"Topology 'racks' {HERE} PodGroup default/g"),
    "node": (
        [group(), pod(), build.pod("b", on="n7", cpu=1)],
        f"Node 'n7' {HERE} Pod default/b, whose requests are not counted",
    ),
    "owner": (
        [pod(owner="kubeflow.org/v1/PyTorchJob")],
        f"PyTorchJob 'default/train' {HERE} Pod default/p, which is grouped without it",
    ),
}  # fmt: skip


def schedule(*objects: Document, more: tuple[str, ...] = ()) -> Result:
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": [build.node("node-0", cpu=8), *objects]})
    return CliRunner().invoke(main, ["schedule", "-f", "-", *more], input=given, prog_name="phalanx")


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_in_the_input_is_said_once_and_shown_to_programs(case: str) -> None:
    objects, sentence = CASES[case]
    found = schedule(*objects, more=("-o", "json"))
    assert [line for line in found.stderr.splitlines() if "is not in the input" in line] == [f"note: {sentence}"]
    (item,) = json.loads(found.stdout)["missing"]
    assert item["message"] == sentence
    assert sentence.startswith(f"{item['kind']} {item['name']!r}")
    assert item["namedBy"]


def test_members_of_hypernodes_are_shown_to_programs_too() -> None:
    members = [{"type": kind, "selector": {"exactMatch": {"name": name}}} for kind, name in (("Node", "n9"), ("HyperNode", "h9"))]
    tree = made("topology.volcano.sh/v1alpha1", "HyperNode", "h", spec={"tier": 1, "members": members})
    found = schedule(tree, more=("-o", "json"))
    missing = [(item["kind"], item["name"], item["namedBy"]) for item in json.loads(found.stdout)["missing"]]
    assert missing == [("Node", "n9", ["HyperNode h"]), ("HyperNode", "h9", ["HyperNode h"])]
    assert len(found.stderr.splitlines()) == 1


def test_nothing_is_missing_from_a_whole_input() -> None:
    objects = [
        group(queue="q"), build.queue("q"), pod(**WITH_TEMPLATE), TEMPLATE, made("batch/v1", "Job", "train"),
        pod("q", owner="batch/v1/Job"), build.pod("b", on="node-0", cpu=1),
    ]  # fmt: skip
    found = schedule(*objects, more=("-o", "json"))
    assert "missing" not in json.loads(found.stdout)
    assert found.stderr == ""


def test_a_group_that_names_no_queue_refers_to_none() -> None:
    nameless = made("scheduling.run.ai/v2alpha2", "PodGroup", "g", spec={"minMember": 1})
    found = schedule(nameless, pod(marks={"annotations": {"pod-group-name": "g"}}), more=("-o", "json"))
    assert "it names no queue" in found.stdout
    assert "missing" not in json.loads(found.stdout)


@pytest.mark.parametrize("names_it", [True, False])
def test_a_group_that_is_refused_is_not_missing_whether_or_not_it_names_its_namespace(names_it: bool) -> None:
    broken = group(minMember=-1)
    if not names_it:
        del broken["metadata"]["namespace"]
    found = schedule(broken, pod(), more=("-o", "json"))
    answer = json.loads(found.stdout)
    assert "missing" not in answer
    assert [item["object"] for item in answer["refused"]] == ["PodGroup default/g"]
    assert "which does not exist" not in found.stdout + found.stderr


def test_what_has_ended_refers_to_nothing() -> None:
    ended = {**pod(nodeName="n7"), "status": {"phase": "Succeeded"}}
    assert "missing" not in json.loads(schedule(group(queue="gone"), ended, more=("-o", "json")).stdout)


def live_intake(*objects: Document, hidden: tuple[str, str] | None = None) -> Intake:
    problems = {} if hidden is None else {kind_at(*hidden): Forbidden("no")}
    return take_in([], goes_on=True, live=ListedCluster("http://x", 1.0, [dict(item) for item in objects], problems))


def test_on_a_live_cluster_it_does_not_exist() -> None:
    intake = live_intake(group(queue="q"), pod())
    (missing,) = intake.missing(intake.cluster.snapshot(1.0))
    assert missing.sentence(intake.absent) == "Queue 'q' does not exist; it is named by PodGroup default/g"


def test_of_kinds_that_may_not_be_listed_nobody_knows() -> None:
    intake = live_intake(group(queue="q"), pod(), hidden=("scheduling.volcano.sh", "queues"))
    assert intake.missing(intake.cluster.snapshot(1.0)) == []


def test_of_many_the_first_are_named_and_the_rest_is_counted() -> None:
    many = [MissingReference("Node", f"n{number}", ("Pod a/b",)) for number in range(8)]
    *_, last = sentences(many, "is not in the input")
    assert last == "3 more objects of kind Node that are named are not in the input"
    *_, last = sentences(many[:6], "does not exist")
    assert last == "1 more object of kind Node that is named does not exist"
    assert many[0].sentence().endswith("named by Pod a/b, whose requests are not counted")


def test_pods_that_nobody_groups_are_not_all_well() -> None:
    alone = pod(marks={}, schedulerName="scheduler-plugins-scheduler")
    found = schedule(alone)
    assert found.exit_code == 3
    assert "names no group, and nobody makes one for pods of 'scheduler-plugins-scheduler'" in found.stdout


def test_the_usual_class_of_kais_groups_is_not_missed_since_it_changes_nothing() -> None:
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "ml"}}
    objects = ManifestObjects([])
    for name in ("train", "build"):
        objects.complete({**group, "spec": {"priorityClassName": name}})
    assert [item.name for item in objects.missing()] == ["build"]
