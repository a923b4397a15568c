"""What `phalanx convert` makes of gangs: each dialect's own words, and a list of what it has none for."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.cli.convert import DIALECTS as OFFERED
from phalanx.dialects.convert import DIALECTS, Converted, converted
from phalanx.dialects.convert.neutral_gangs import sort_out
from phalanx.dialects.convert.subgroups import kai_parts
from phalanx.dialects.gates import GangGates, GatePlan, written
from phalanx.errors import SnapshotError
from phalanx.model.bounds import MADE_PODS
from phalanx.model.merging import merged
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import coscheduling_gangs as sigs
from tests.support import gated_gangs as gates
from tests.support import pod_made_gangs as made

TREE = {"topology": "racks", "requiredTopologyLevel": "rack"}


def volcano(**spec: Any) -> list[Document]:
    """Return a gang with a master and two workers."""
    pods = [build.in_group("train", build.pod(f"train-{role}-{number}", cpu=number + 1), role=role)
            for role, count in (("master", 1), ("worker", 2)) for number in range(count)]  # fmt: skip
    return [build.pod_group("train", min_member=2, minTaskMember={"master": 1, "worker": 1}, **spec), *pods]


def kai(*parts: Document, **spec: Any) -> list[Document]:
    """Return a group of KAI's with a pod in each leaf."""
    parents = {part.get("parent") for part in parts}
    pods = [build.pod(f"train-{part['name']}") for part in parts if part["name"] not in parents]
    for pod in pods:
        pod["metadata"] |= {
            "annotations": {"pod-group-name": "train"}, "labels": {"kai.scheduler/subgroup-name": pod["metadata"]["name"][6:]},
        }  # fmt: skip
    meta = {"name": "train", "namespace": "default"}
    spec = {"minMember": 1, "queue": "default", "subGroups": list(parts), **spec}
    return [{"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": meta, "spec": spec}, *pods]


def groups(found: Converted) -> list[dict[str, Any]]:
    return [item for item in found.objects if item["kind"] == "PodGroup"]


def pods(found: Converted) -> list[dict[str, Any]]:
    return [item for item in found.objects if item["kind"] == "Pod"]


def lost(found: Converted) -> list[tuple[str, str]]:
    return [(item.object, item.field) for item in found.lost]


def test_the_command_offers_every_dialect_that_can_be_written() -> None:
    assert set(OFFERED) == set(DIALECTS)


# --- the words of each dialect -------------------------------------------------------------------------------------------


def test_roles_become_sub_groups_of_kai() -> None:
    found = converted(volcano(), "kai")
    assert groups(found)[0]["spec"] == {
        "minMember": 2, "queue": "default", "subGroups": [{"name": "master", "minMember": 1}, {"name": "worker", "minMember": 1}],
    }  # fmt: skip
    assert [pod["metadata"]["labels"]["kai.scheduler/subgroup-name"] for pod in pods(found)] == ["master", "worker", "worker"]
    assert {pod["metadata"]["annotations"]["pod-group-name"] for pod in pods(found)} == {"train"}
    assert found.lost == []


def test_roles_become_a_bundle_of_koordinators_gangs() -> None:
    found = converted(volcano(queue="research"), "koordinator")
    assert [(group["metadata"]["name"], group["spec"]) for group in groups(found)] == [
        ("train-master", {"minMember": 1}), ("train-worker", {"minMember": 1}),
    ]  # fmt: skip
    bundle = json.loads(groups(found)[0]["metadata"]["annotations"]["gang.scheduling.koordinator.sh/groups"])
    assert bundle == ["default/train-master", "default/train-worker"]
    assert [pod["metadata"]["labels"] for pod in pods(found)][1] == {
        "pod-group.scheduling.sigs.k8s.io": "train-worker", "quota.scheduling.koordinator.sh/name": "research",
    }  # fmt: skip
    assert found.lost == []


def test_coscheduling_knows_a_minimum_and_resources() -> None:
    found = converted(volcano(queue="research", minResources={"cpu": "1500m"}), "coscheduling")
    assert groups(found)[0]["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert groups(found)[0]["spec"] == {"minMember": 2, "minResources": {"cpu": "1500m"}}
    assert pods(found)[0]["metadata"]["labels"] == {"scheduling.x-k8s.io/pod-group": "train"}
    assert lost(found) == [("gang default/train", "minTaskMember"), ("gang default/train", "queue")]


@pytest.mark.parametrize("dialect", ["volcano", "coscheduling"])
def test_names_of_quotas_in_the_minimum_are_kept(dialect: str) -> None:
    minimum = {"cpu": "2", "count/pods": "2", "limits.memory": "1073741824", "requests.nvidia.com/gpu": "2"}
    assert groups(converted(volcano(minResources=minimum), dialect))[0]["spec"]["minResources"] == minimum


def test_kubernetes_own_group_is_named_in_the_spec_of_pods() -> None:
    found = converted(kai(topologyConstraint=TREE, priorityClassName="high", subGroups=[]), "native")
    assert groups(found)[0]["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 1}}, "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "priorityClassName": "high",
    }  # fmt: skip
    found = converted(volcano(), "native")
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods(found)} == {"train"}


def test_the_first_pod_describes_the_task_groups_of_yunikorn() -> None:
    found = converted(volcano(queue="research"), "yunikorn")
    first, *others = pods(found)
    assert json.loads(first["metadata"]["annotations"]["yunikorn.apache.org/task-groups"]) == [
        {"name": "master", "minMember": 1, "minResource": {"cpu": "1"}},
        {"name": "worker", "minMember": 1, "minResource": {"cpu": "2"}},
    ]
    assert first["metadata"]["labels"]["yunikorn.apache.org/queue"] == "root.research"
    assert all("yunikorn.apache.org/task-groups" not in pod["metadata"]["annotations"] for pod in others)
    assert groups(found) == []


def test_kueues_groups_start_with_all_of_their_pods() -> None:
    found = converted(build.gang("train", tasks=3, min_member=2, queue="research"), "kueue")
    assert pods(found)[0]["metadata"]["labels"] == {
        "kueue.x-k8s.io/pod-group-name": "train", "kueue.x-k8s.io/queue-name": "research",
    }  # fmt: skip
    assert {pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] for pod in pods(found)} == {"3"}
    assert lost(found) == [("gang default/train", "minMember")]


def test_pods_behind_the_gate_of_phalanx() -> None:
    pod = pods(converted(made.pod_group("train", tasks=2, is_gated=True), "gates"))[0]
    assert pod["metadata"]["labels"] == {"phalanx.dev/gang": "train"}
    assert pod["metadata"]["annotations"] == {"phalanx.dev/min-member": "2"}
    assert pod["spec"]["schedulingGates"] == [{"name": "phalanx.dev/gang"}]


def test_a_gate_of_kueue_does_not_follow_into_another_dialect() -> None:
    found = converted(made.pod_group("train", tasks=2, is_gated=True), "volcano")
    assert all("schedulingGates" not in pod["spec"] for pod in pods(found))


@pytest.mark.parametrize(("before", "after"), [("volcano", "kai-scheduler"), ("mine", "mine"), (None, None)])
def test_pods_are_for_the_scheduler_that_reads_the_dialect(before: str | None, after: str | None) -> None:
    documents = volcano()
    documents[1]["spec"] |= {"schedulerName": before} if before else {}
    assert pods(converted(documents, "kai"))[0]["spec"].get("schedulerName") == after


# --- Koordinator's bundles, and what pods say for their gang ----------------------------------------------------------------


def bundle(*names: str) -> list[Document]:
    """Return gangs of one pod each that start together."""
    listed = json.dumps([*names])
    return [item for name in names for item in sigs.koordinator_gang(name, groups=listed)]


@pytest.mark.parametrize(
    ("names", "name", "roles"),
    [
        (("default/llm-decode", "default/llm-prefill"), "llm", {"decode": 1, "prefill": 1}),
        (("default/decode", "default/prefill"), "decode", {"decode": 1, "prefill": 1}),
        (("default/llm", "default/llm-prefill"), "llm", {"llm": 1, "llm-prefill": 1}),
    ],
)
def test_a_bundle_is_one_gang_with_roles(names: tuple[str, ...], name: str, roles: dict[str, int]) -> None:
    found = converted(bundle(*names), "volcano")
    (group,) = groups(found)
    assert (group["metadata"], group["spec"]["minTaskMember"]) == ({"name": name, "namespace": "default"}, roles)
    assert {pod["metadata"]["annotations"]["volcano.sh/task-spec"] for pod in pods(found)} == set(roles)
    assert found.lost == []


def test_names_of_gangs_and_roles_survive_a_bundle_though_roles_begin_alike() -> None:
    documents = [build.pod_group("a", min_member=2, minTaskMember={"b-c": 1, "b-d": 1})]
    documents += [build.in_group("a", build.pod(f"a-{role}"), role=role) for role in ("b-c", "b-d")]
    (group,) = sort_out(converted(documents, "koordinator").objects).groups
    assert (group.name, group.roles) == ("a", {"b-c": 1, "b-d": 1})


def test_a_bundle_over_several_namespaces_comes_apart_and_that_is_said() -> None:
    documents = bundle("a/decode", "b/prefill")
    found = converted(documents, "volcano")
    place = "metadata.annotations['gang.scheduling.koordinator.sh/groups']"
    assert [group["metadata"]["namespace"] for group in groups(found)] == ["a", "b"]
    assert lost(found) == [("gang a/decode", place), ("gang b/prefill", place)]
    assert converted(documents, "koordinator").lost == []
    assert len(sort_out(converted(documents, "koordinator").objects).groups) == 2


def test_a_gang_of_koordinators_pods_gets_an_object_with_what_they_say_of_it() -> None:
    pod = sigs.describing_pod("train-0", "train", min_available="1", mode="NonStrict")
    pod["metadata"]["annotations"]["team"] = "a"
    (group,) = groups(converted([pod], "koordinator"))
    assert group["metadata"]["annotations"] == {"gang.scheduling.koordinator.sh/mode": "NonStrict"}
    assert group["spec"] == {"minMember": 1}


def test_the_quota_of_all_pods_is_the_queue_and_several_are_none() -> None:
    documents = sigs.koordinator_gang("train", tasks=2)
    for pod in documents[1:]:
        pod["metadata"]["labels"]["quota.scheduling.koordinator.sh/name"] = "research"
    assert groups(converted(documents, "volcano"))[0]["spec"]["queue"] == "research"
    del documents[1]["metadata"]["labels"]["quota.scheduling.koordinator.sh/name"]
    found = converted(documents, "volcano")
    assert groups(found)[0]["spec"]["queue"] == "default"
    assert lost(found) == [("gang default/train", "queue")]


CLASSES = {
    ("coscheduling", "volcano", "high", "high"): (),
    ("coscheduling", "volcano", "high", "low"): ("priorityClassName",),
    ("coscheduling", "native", "high", "low"): (),
    ("coscheduling", "gates", "high", "low"): (),
    ("coscheduling", "kueue", "high", "low"): ("priorityClassName",),
    ("volcano", "coscheduling", "high", "high"): ("priorityClassName",),
    ("volcano", "native", "high", "high"): ("priorityClassName",),
    ("volcano", "kai", "high", "high"): (),
}
"""A dialect, another, and the classes of two pods of a gang: what is lost."""


@pytest.mark.parametrize("case", CLASSES, ids="-".join)
def test_how_important_a_gang_is_survives_or_is_said_to_be_lost(case: tuple[str, str, str, str]) -> None:
    before, after, *classes = case
    documents = sigs.gang("train", tasks=2) if before == "coscheduling" else build.gang("train", tasks=2)
    for pod, name in zip(documents[1:], classes, strict=True):
        pod["spec"]["priorityClassName"] = name
    assert tuple(field for _, field in lost(converted(documents, after))) == CLASSES[case]


def test_the_class_of_all_pods_is_that_of_the_gang() -> None:
    documents = sigs.gang("train", tasks=2, pod_spec={"priorityClassName": "high"})
    assert groups(converted(documents, "volcano"))[0]["spec"]["priorityClassName"] == "high"


def test_a_pod_with_a_plan_is_as_it_was_before() -> None:
    (pod,) = gates.gang("train", 1, notes={"phalanx.dev/timeout": "10m"})
    planned = pod | {"metadata": {**pod["metadata"], "resourceVersion": "1"}}
    plan = GatePlan("1", 1, "node-0", "2026-01-01T00:00:00Z")
    planned = merged(merged(planned, written(plan)), GangGates().lifted(planned, plan))
    found = converted([planned], "volcano")
    assert pods(found)[0]["spec"].get("affinity", {}) == {}
    assert pods(found)[0]["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "train"}
    assert lost(found) == [("Pod default/train-0", "metadata.annotations['phalanx.dev/timeout']")]


# --- sub-groups and topologies -------------------------------------------------------------------------------------------


def test_sub_groups_of_kai_with_a_topology_become_templates_of_volcano() -> None:
    parts = ({"name": "decode", "minMember": 2, "topologyConstraint": TREE}, {"name": "prefill", "minMember": 1})
    found = converted(kai(*parts), "volcano")
    assert groups(found)[0]["spec"]["subGroupPolicy"][0] == {
        "name": "decode", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["kai.scheduler/subgroup-name"],
        "labelSelector": {"matchLabels": {"kai.scheduler/subgroup-name": "decode"}},
    }  # fmt: skip
    assert [pod["metadata"]["labels"]["kai.scheduler/subgroup-name"] for pod in pods(found)] == ["decode", "prefill"]
    assert lost(found) == [("gang default/train", "subGroups[decode].topologyConstraint")]


def test_sub_groups_inside_each_other_are_lost_to_volcano() -> None:
    found = converted(kai({"name": "all"}, {"name": "one", "parent": "all", "minMember": 1}), "volcano")
    assert [part["name"] for part in groups(found)[0]["spec"]["subGroupPolicy"]] == ["one"]
    assert lost(found) == [("gang default/train", "subGroups[one].parent")]


def test_templates_of_volcano_are_written_out_for_kai() -> None:
    policy = {"name": "slice", "subGroupSize": 2, "minSubGroups": 2, "matchLabelKeys": ["slice"]}
    group, *members = build.gang("train", tasks=4)
    group["spec"]["subGroupPolicy"] = [policy]
    for number, pod in enumerate(members):
        pod["metadata"]["labels"] = {"slice": str(number // 2)}
    found = converted([group, *members], "kai")
    assert groups(found)[0]["spec"]["subGroups"] == [{"name": "slice-0", "minMember": 2}, {"name": "slice-1", "minMember": 2}]
    assert pods(found)[3]["metadata"]["labels"] == {"slice": "1", "kai.scheduler/subgroup-name": "slice-1"}
    assert found.lost == []


def test_a_template_of_which_some_are_enough_becomes_a_parent_in_kai() -> None:
    policy = {"name": "slice", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["slice"]}
    group, *members = build.gang("train", tasks=4, min_member=2)
    group["spec"]["subGroupPolicy"] = [policy]
    for number, pod in enumerate(members):
        pod["metadata"]["labels"] = {"slice": str(number // 2)}
    found = converted([group, *members], "kai")
    assert groups(found)[0]["spec"]["subGroups"] == [
        {"name": "slice", "minSubGroup": 1},
        {"name": "slice-0", "minMember": 2, "parent": "slice"},
        {"name": "slice-1", "minMember": 2, "parent": "slice"},
    ]
    assert found.lost == []


def test_a_number_of_sub_groups_is_kept_in_kai_and_lost_to_volcano() -> None:
    documents = kai({"name": "one", "minMember": 1}, {"name": "two", "minMember": 1})
    del documents[0]["spec"]["minMember"]
    documents[0]["spec"]["minSubGroup"] = 1
    spec = groups(converted(documents, "kai"))[0]["spec"]
    assert (spec["minSubGroup"], "minMember" in spec) == (1, False)
    assert lost(converted(documents, "volcano")) == [("gang default/train", "minSubGroup")]


def test_tiers_and_levels_are_not_the_same() -> None:
    tiers = converted(volcano(networkTopology={"mode": "hard", "highestTierAllowed": 1}), "kai")
    assert lost(tiers) == [("gang default/train", "networkTopology")]
    levels = converted(kai(topologyConstraint=TREE, subGroups=[]), "volcano")
    assert lost(levels) == [("gang default/train", "topologyConstraint")]


# --- what is lost, and what stays ----------------------------------------------------------------------------------------


def test_fields_and_annotations_that_the_model_does_not_hold_are_said_to_be_lost() -> None:
    documents = kai(subGroups=[], markUnschedulable=False)
    documents[0]["metadata"]["annotations"] = {"kai.scheduler/top-owner-metadata": "x", "team": "a"}
    found = converted(documents, "volcano")
    assert lost(found) == [
        ("gang default/train", "metadata.annotations['kai.scheduler/top-owner-metadata']"),
        ("PodGroup default/train", "spec.markUnschedulable"),
    ]  # fmt: skip
    assert groups(found)[0]["metadata"]["annotations"] == {"team": "a"}


def test_what_pods_say_in_their_dialect_alone_is_said_to_be_lost() -> None:
    documents = volcano()
    documents[1]["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    documents[2]["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "train", "uid": "1"}]
    found = converted(documents, "kai")
    assert lost(found) == [
        ("Pod default/train-master-0", "metadata.annotations['volcano.sh/preemptable']"),
        ("Pod default/train-worker-0", "metadata.ownerReferences"),
    ]  # fmt: skip
    assert converted(documents[:2], "volcano").lost == []


def test_objects_that_are_no_part_of_a_gang_stay_as_they_are() -> None:
    others = [build.node("node-0"), build.pod("alone", cpu=1), build.queue("research")]
    assert converted([*others, *volcano()], "kueue").objects[:3] == others


def test_annotations_of_a_group_move_to_its_pods_where_these_alone_make_the_gang() -> None:
    documents = volcano()
    documents[0]["metadata"]["annotations"] = {"phalanx.dev/duration": "10m"}
    found = converted(documents, "kueue")
    assert {pod["metadata"]["annotations"]["phalanx.dev/duration"] for pod in pods(found)} == {"10m"}


def test_two_gangs_of_one_name_do_not_become_one() -> None:
    documents = [*build.gang("train", tasks=1), *made.pod_group("train", tasks=1)]
    documents[2]["metadata"]["name"] = "other-0"
    assert [group["metadata"]["name"] for group in groups(converted(documents, "volcano"))] == ["train", "train-kueue"]


# --- Volcano's Jobs ------------------------------------------------------------------------------------------------------


def job(**spec: Any) -> Document:
    template = {"metadata": {"labels": {"app": "train"}}, "spec": {"containers": [{"name": "main"}]}}
    tasks = [{"name": "ps", "replicas": 1, "minAvailable": 1, "template": template}, {"replicas": 2, "template": template}]
    meta = {"name": "train", "namespace": "research"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": {"tasks": tasks, **spec}}


def test_a_job_is_written_out_as_its_group_and_pods() -> None:
    found = converted([job(queue="research", policies=[{"event": "PodEvicted", "action": "RestartJob"}])], "volcano")
    assert groups(found)[0]["spec"] == {"minMember": 3, "queue": "research", "minTaskMember": {"ps": 1, "default1": 2}}
    assert [pod["metadata"]["name"] for pod in pods(found)] == ["train-ps-0", "train-default1-0", "train-default1-1"]
    assert pods(found)[0]["spec"]["schedulerName"] == "volcano"
    assert lost(found) == [("Job research/train", "spec.policies")]


def test_a_job_becomes_a_gang_of_another_dialect() -> None:
    (group,) = sort_out(converted([job()], "yunikorn").objects).groups
    assert (group.namespace, group.name, group.min_member) == ("research", "train", 3)
    assert group.roles == {"ps": 1, "default1": 2}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"tasks": []}, "spec.tasks: empty; write at least one task with a template"),
        ({"tasks": [{"replicas": 2**31 - 1}]}, f"2,147,483,647 replicas are too many: {MADE_PODS.text}"),
        ({"tasks": [{"replicas": "two"}]}, "spec.tasks[0].replicas: expected `int | null`, got `str`"),
        (
            {"tasks": [{}, {"template": {"metadata": [{"labels": {}}]}}]},
            "spec.tasks[1].template.metadata: expected `object`, got list",
        ),
        (
            {"tasks": [{"template": {"metadata": {"labels": "x"}}}]},
            "spec.tasks[0].template.metadata.labels: expected `object`, got str",
        ),
        ({"tasks": [{"template": {"spec": 3}}]}, "spec.tasks[0].template.spec: expected `object`, got int"),
    ],
)
def test_a_job_that_cannot_be_read_is_refused(spec: Document, problem: str) -> None:
    with pytest.raises(SnapshotError) as refusal:
        converted([job(**spec)], "kai")
    assert str(refusal.value) == f"Job research/train: {problem}"


def test_a_job_is_written_out_as_at_its_start_whatever_its_status_says() -> None:
    assert converted([{**job(), "status": {"version": "1"}}], "volcano") == converted([job()], "volcano")


def test_the_command_says_in_which_document_a_job_is_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(yaml.safe_dump_all([job(), job(tasks=[{"replicas": "two"}])]))
    found = CliRunner().invoke(main, ["convert", "--to", "kai", "-f", str(path)])
    problem = "Job research/train: spec.tasks[0].replicas: expected `int | null`, got `str`"
    assert (found.exit_code, found.stderr) == (1, f"error: {path}, document 2: {problem}\n")


# --- the command ---------------------------------------------------------------------------------------------------------


def run(*arguments: str, documents: list[Document]) -> Any:
    text = yaml.safe_dump_all(documents)
    return CliRunner().invoke(main, ["convert", "-f", "-", *arguments], input=text, prog_name="phalanx")


def test_yaml_has_what_is_lost_as_comments_and_stderr_too() -> None:
    result = run("--to", "coscheduling", documents=volcano())
    line = "lost: gang default/train: minTaskMember: coscheduling has no field for it"
    assert result.exit_code == 0
    assert result.stdout.startswith(f"# {line}\n")
    assert result.stderr == f"note: {line}\n"
    assert [item["kind"] for item in yaml.safe_load_all(result.stdout)] == ["PodGroup", "Pod", "Pod", "Pod"]


def test_json_has_a_list_of_what_is_lost() -> None:
    answer = json.loads(run("--to", "coscheduling", "-o", "json", documents=volcano()).stdout)
    assert len(answer["items"]) == 4
    assert answer["lost"] == [
        {"object": "gang default/train", "field": "minTaskMember", "why": "coscheduling has no field for it"},
    ]  # fmt: skip


def test_what_comes_out_can_be_scheduled() -> None:
    text = run("--to", "yunikorn", documents=[*volcano(), build.node("node-0")]).stdout
    result = CliRunner().invoke(main, ["schedule", "-f", "-"], input=text, prog_name="phalanx")
    assert result.exit_code == 0
    assert "default/train" in result.stdout


@pytest.mark.parametrize(("arguments", "problem"), [((), "Missing option '--to'"), (("--to", "slurm"), "'slurm' is not one of")])
def test_a_dialect_must_be_named(arguments: tuple[str, ...], problem: str) -> None:
    result = run(*arguments, documents=volcano())
    assert result.exit_code == 2
    assert problem in result.stderr


def test_many_objects_that_lose_the_same_are_one_line() -> None:
    documents = volcano()
    for pod in documents[1:]:
        pod["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    result = run("--to", "kai", documents=documents)
    place = "metadata.annotations['volcano.sh/preemptable']"
    assert result.stderr == f"note: lost: Pod default/train-master-0 and 2 more: {place}: only volcano knows it\n"


def test_what_is_asked_for_every_pod_of_a_gang_is_found_once() -> None:
    first, second = (sort_out(build.gang(name, tasks=3)).groups[0] for name in ("one", "two"))
    parts = kai_parts(first)
    assert kai_parts(first) is parts
    assert kai_parts(second) is not parts
    assert kai_parts(first) == parts


def test_pods_stay_in_the_order_of_the_input() -> None:
    group, *pods = build.gang("one", tasks=12)
    pods.sort(key=lambda pod: str(pod["metadata"]["name"]), reverse=True)
    (found,) = sort_out([*pods[:5], group, *pods[5:]]).groups
    assert [member.document for member in found.members] == pods
