"""A broken object is set aside alone: it says what is wrong and what to write, all others go on, and mended it starts."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from phalanx.controllers.controller import RecordEvent
from phalanx.dialects import gates, koordinator, kueue, native, yunikorn
from phalanx.dialects import group_references as links
from phalanx.dialects.field_values import STALENESS_GRACE
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, STATEFUL_SET, VOLCANO_JOB, Document, Kind
from phalanx.sim.world import World
from phalanx.store.patches import MERGE, patched
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import same_gang as speech
from tests.support import sim_worlds as worlds
from tests.support import volcano_jobs as jobs

GROUP, ALL, FIRST = "the group", "every pod", "the first pod"
GRACE: Document = {"metadata": {"annotations": {STALENESS_GRACE: "soon"}}}
NO_GRACE: Document = {"metadata": {"annotations": {STALENESS_GRACE: None}}}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that may be wrong: merge patches that bring it about and mend it, and what is to be said."""

    dialect: str
    name: str
    on: str
    breaks: Document
    mends: Document
    wrong: str
    write: str
    beside: list[Document] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.dialect}: {self.name}"


def note(key: str, text: str | None) -> Document:
    return {"metadata": {"annotations": {key: text}}}


def label(key: str, text: str | None) -> Document:
    return {"metadata": {"labels": {key: text}}}


def spec(**fields: Any) -> Document:
    return {"spec": fields}


def policy(count: int) -> Document:
    return spec(schedulingPolicy={"gang": {"minCount": count}})


def task_groups(count: int) -> str:
    return json.dumps([{"name": "train", "minMember": count, "minResource": {"cpu": 1}}])


OTHER_GROUP = sigs.pod_group(sigs.COSCHEDULING, "another", {"minMember": 1})
OTHER_VOLCANO = build.pod_group("another")
TWICE = (label(links.COSCHEDULING_GROUP, "another"), label(links.COSCHEDULING_GROUP, None))
TWICE_VOLCANO = (note(links.GROUP, "another"), note(links.GROUP, None))
TWO = ("it belongs to two groups", "remove the mark of one of them")
NO_QUEUE, CREATE = "queue 'nowhere' does not exist", "create it, or write another one in"
FEW, LOWER = "3 of 4 pods exist", "create 1 more pod, or write 3 in"
PARENTS = [{"name": "a", "minMember": 1, "parent": "b"}, {"name": "b", "minMember": 1, "parent": "a"}]
MANY = [
    Fault("volcano", "queue", GROUP, spec(queue="nowhere"), spec(queue="default"), NO_QUEUE, f"{CREATE} spec.queue"),
    Fault("volcano", "few", GROUP, spec(minMember=4), spec(minMember=3), FEW, f"{LOWER} spec.minMember"),
    Fault("volcano", "negative", GROUP, spec(minMember=-1), spec(minMember=3), "-1 is negative", "write 0 or more"),
    Fault(
        "volcano", "role", GROUP, spec(minTaskMember={"a": -2}), spec(minTaskMember=None), "-2 is negative", "write 0 or more",
    ),
    Fault(
        "volcano", "word", GROUP, spec(networkTopology={"mode": "strict"}), spec(networkTopology=None),
        "'strict' is unknown", "write 'hard' or 'soft'",
    ),
    Fault(
        "volcano", "orphans", GROUP, spec(subGroupPolicy=[{"name": "ring", "minSubGroups": 1}]), spec(subGroupPolicy=None),
        "matchLabelKeys: missing", "write the labels",
    ),
    Fault("volcano", "annotation", GROUP, GRACE, NO_GRACE, "'soon' is not a period", "write seconds"),
    Fault("volcano", "twice", FIRST, *TWICE, *TWO, [OTHER_GROUP]),
    Fault("kai", "queue", GROUP, spec(queue="nowhere"), spec(queue="default"), NO_QUEUE, f"{CREATE} spec.queue"),
    Fault("kai", "few", GROUP, spec(minMember=4), spec(minMember=3), FEW, f"{LOWER} spec.minMember"),
    Fault("kai", "negative", GROUP, spec(minMember=-1), spec(minMember=3), "-1 is negative", "write 1 or more"),
    Fault("kai", "word", GROUP, spec(preemptibility="maybe"), spec(preemptibility=None), "'maybe' is unknown", "write 'preempt"),
    Fault(
        "kai", "orphan", GROUP, spec(subGroups=[{"name": "a", "minMember": 1, "parent": "z"}]), spec(subGroups=None),
        "parent 'z', which does not exist", "add it, or leave the parent out",
    ),
    Fault("kai", "circle", GROUP, spec(subGroups=PARENTS), spec(subGroups=None), "is its own ancestor", "remove one of them"),
    Fault("kai", "annotation", GROUP, GRACE, NO_GRACE, "'soon' is not a period", "write seconds"),
    Fault("kai", "twice", FIRST, *TWICE, *TWO, [OTHER_GROUP]),
    Fault("coscheduling", "few", GROUP, spec(minMember=4), spec(minMember=3), FEW, f"{LOWER} spec.minMember"),
    Fault("coscheduling", "negative", GROUP, spec(minMember=-1), spec(minMember=3), "-1 is negative", "write 1 or more"),
    Fault(
        "coscheduling", "timeout", GROUP, spec(scheduleTimeoutSeconds=-5), spec(scheduleTimeoutSeconds=None),
        "-5 is negative", "write seconds",
    ),
    Fault("coscheduling", "annotation", GROUP, GRACE, NO_GRACE, "'soon' is not a period", "write seconds"),
    Fault("coscheduling", "twice", FIRST, *TWICE_VOLCANO, *TWO, [OTHER_VOLCANO]),
    Fault("koordinator", "few", GROUP, spec(minMember=4), spec(minMember=3), FEW, f"{LOWER} spec.minMember"),
    Fault("koordinator", "negative", GROUP, spec(minMember=-1), spec(minMember=3), "-1 is negative", "write 1 or more"),
    Fault(
        "koordinator", "annotation", GROUP, note(koordinator.GROUPS, "nonsense"), note(koordinator.GROUPS, None),
        "is not a JSON list", "write for example",
    ),
    Fault(
        "koordinator", "waiting time", GROUP, note(koordinator.WAITING_TIME, "long"), note(koordinator.WAITING_TIME, None),
        "'long' is not a duration", "write for example '90s'",
    ),
    Fault("koordinator", "twice", FIRST, *TWICE_VOLCANO, *TWO, [OTHER_VOLCANO]),
    Fault(
        "native", "queue", GROUP, note(native.QUEUE, "nowhere"), note(native.QUEUE, None), NO_QUEUE,
        f"{CREATE} annotation {native.QUEUE}",
    ),
    Fault("native", "few", GROUP, policy(4), policy(3), FEW, f"{LOWER} spec.schedulingPolicy.gang.minCount"),
    Fault("native", "negative", GROUP, policy(-1), policy(3), "-1 is too small", "1 or more"),
    Fault(
        "native", "word", GROUP, spec(disruptionMode="All"), spec(disruptionMode=None), "'All' is unknown", "write 'Pod'",
    ),
    Fault("native", "annotation", GROUP, GRACE, NO_GRACE, "'soon' is not a period", "write seconds"),
    Fault("native", "twice", FIRST, *TWICE_VOLCANO, *TWO, [OTHER_VOLCANO]),
    Fault(
        "yunikorn", "queue", ALL, label(yunikorn.QUEUE, "root.nowhere"), label(yunikorn.QUEUE, "root.default"), NO_QUEUE,
        f"{CREATE} label {yunikorn.QUEUE}",
    ),
    Fault(
        "yunikorn", "annotation", FIRST, note(yunikorn.TASK_GROUPS, "nonsense"), note(yunikorn.TASK_GROUPS, task_groups(3)),
        "not JSON", "write a list such as",
    ),
    Fault(
        "yunikorn", "negative", FIRST, note(yunikorn.TASK_GROUPS, task_groups(-1)), note(yunikorn.TASK_GROUPS, task_groups(3)),
        "-1 is too small", "write 1 or more",
    ),
    Fault(
        "kueue", "few", ALL, note(kueue.TOTAL_COUNT, "4"), note(kueue.TOTAL_COUNT, "3"), FEW,
        f"{LOWER} annotation {kueue.TOTAL_COUNT}",
    ),
    Fault(
        "kueue", "annotation", ALL, note(kueue.TOTAL_COUNT, "many"), note(kueue.TOTAL_COUNT, "3"),
        "'many' is not a whole number", "write one, such as '4'",
    ),
    Fault(
        "kueue", "negative", ALL, note(kueue.TOTAL_COUNT, "-1"), note(kueue.TOTAL_COUNT, "3"), "'-1' is too small", "1 or more",
    ),
    Fault(
        "gates", "few", ALL, note(gates.MIN_MEMBER, "4"), note(gates.MIN_MEMBER, "3"), FEW,
        f"{LOWER} annotation {gates.MIN_MEMBER}",
    ),
    Fault(
        "gates", "annotation", ALL, note(gates.MIN_MEMBER, "all"), note(gates.MIN_MEMBER, "3"),
        "'all' is not a whole number", "write one, such as '4'",
    ),
    Fault(
        "gates", "negative", ALL, note(gates.MIN_MEMBER, "-1"), note(gates.MIN_MEMBER, "3"), "'-1' is too small", "1 or more",
    ),
    Fault(
        "gates", "word", ALL, note(gates.AFTERWARDS, "explode"), note(gates.AFTERWARDS, None), "'explode' is unknown",
        "write 'wait' or 'delete'",
    ),
]  # fmt: skip


def broken(fault: Fault) -> list[Document]:
    """Return a gang of three with something wrong."""
    objects = speech.gang(fault.dialect, "train", tasks=3, gpus=1)
    return [patched(item, fault.breaks, MERGE) if chosen(fault, item) else item for item in objects]


def chosen(fault: Fault, item: Document) -> bool:
    if item["kind"] != "Pod":
        return fault.on == GROUP
    return fault.on == ALL or (fault.on == FIRST and item["metadata"]["name"] == "train-0")


def texts(found: World, fault: Fault) -> list[str]:
    """Return what the broken objects say now."""
    if fault.on != GROUP:
        pods = [pod for pod in found.store.items(POD) if pod["metadata"]["name"].startswith("train-")]
        conditions = [item for pod in pods for item in pod["status"].get("conditions") or ()]
        return [item["message"] for item in conditions if (item["type"], item["status"]) == ("PodScheduled", "False")]
    group = found.store.get(GROUP_BY_DIALECT[fault.dialect], "default", "train")
    status, annotations = group.get("status") or {}, group["metadata"].get("annotations") or {}
    conditions = [*(status.get("conditions") or ()), *(status.get("schedulingConditions") or ())]
    notes = [annotations[key] for key in ("phalanx.dev/problem", "phalanx.dev/quarantined") if key in annotations]
    return [*notes, *(item["message"] for item in conditions if item["type"] in ("Refused", "Quarantined"))]


def says(found: Iterable[str], fault: Fault) -> bool:
    return any(fault.wrong in text and fault.write in text for text in found)


def mend(found: World, fault: Fault) -> None:
    for item in broken(fault):
        if chosen(fault, item):
            kind: Kind = POD if item["kind"] == "Pod" else GROUP_BY_DIALECT[fault.dialect]
            found.store.patch(kind, "default", item["metadata"]["name"], fault.mends)


@pytest.mark.parametrize("fault", MANY, ids=str)
def test_it_is_told_what_to_write_and_everybody_else_runs_and_mended_it_starts(fault: Fault) -> None:
    found = speech.cluster(nodes=2, gpus=8)
    told: list[RecordEvent] = []
    found.on_event(told.append)
    stranger = "native" if fault.dialect == "volcano" else "volcano"
    healthy = [*speech.gang(fault.dialect, "fine", tasks=2, gpus=1), *speech.gang(stranger, "other", tasks=2, gpus=1)]
    objects = [*fault.beside, *broken(fault), *healthy]
    found.load(item for item in objects if item["kind"] != "Pod")  # as they were before anybody checked them
    found.submit([[item for item in objects if item["kind"] == "Pod"]])
    worlds.run(found, 60)

    assert says(texts(found, fault), fault), texts(found, fault)
    events = [event for event in told if event.about["metadata"]["name"].startswith("train")]
    assert says([event.message for event in events], fault)
    assert len({(event.about["metadata"]["name"], event.message) for event in events}) == len(events), "told once"
    assert speech.running(found, "train") == []
    assert speech.running(found, "fine") == ["fine-0", "fine-1"]
    assert speech.running(found, "other") == ["other-0", "other-1"]

    mend(found, fault)
    worlds.run(found, 120)
    assert speech.running(found, "train") == ["train-0", "train-1", "train-2"]
    assert texts(found, fault) == []


def test_a_volcano_job_that_needs_more_pods_than_it_has_replicas_is_refused_alone_and_starts_when_it_is_mended() -> None:
    found = speech.cluster(nodes=2, gpus=8)
    told: list[RecordEvent] = []
    found.on_event(told.append)
    found.load([jobs.job("train", jobs.task("worker", 3, gpus=1), minAvailable=4)])
    found.submit([[jobs.job("fine", jobs.task("worker", 2, gpus=1))]])
    worlds.run(found, 60)
    state = found.store.get(VOLCANO_JOB, "default", "train")["status"]["state"]
    assert state["reason"] == "Refused"
    assert [event.message for event in told if event.reason == "Refused"] == [state["message"]]
    assert (speech.running(found, "train"), len(speech.running(found, "fine"))) == ([], 2)
    found.store.patch(VOLCANO_JOB, "default", "train", spec(minAvailable=3))
    worlds.run(found, 120)
    assert len(speech.running(found, "train")) == 3


def owned_by_set(*, replicas: int, min_member: int, **more: str) -> tuple[World, list[dict[str, Any]]]:
    """Return a cluster with a StatefulSet and its group, and the pods that come later."""
    owner = {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "default", "name": "serve", "uid": "serve"},
        "spec": {"replicas": replicas, **more},
    }  # fmt: skip
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "serve", "uid": "serve", "controller": True}
    group, *pods = speech.gang("volcano", "train", tasks=3, min_member=min_member, gpus=1)
    group["metadata"]["ownerReferences"] = [reference]
    found = speech.cluster(nodes=2, gpus=8)
    found.load([owner, group])
    return found, pods


def test_a_group_that_needs_more_pods_than_its_owner_makes_says_how_many_there_will_be() -> None:
    found, pods = owned_by_set(replicas=2, min_member=3, podManagementPolicy="Parallel")
    found.submit([pods[:2]])
    worlds.run(found, 60)
    asked = Fault("volcano", "owner", GROUP, {}, {}, "but StatefulSet serve makes 2", "write 2 or less, or let it make more")
    assert says(texts(found, asked), asked)
    found.store.patch(STATEFUL_SET, "default", "serve", spec(replicas=3))
    found.submit([pods[2:]])
    worlds.run(found, 120)
    assert len(speech.running(found, "train")) == 3
    assert texts(found, asked) == []


def test_a_group_whose_owner_waits_for_each_pod_before_it_makes_the_next_says_how_to_write_the_owner() -> None:
    found, pods = owned_by_set(replicas=3, min_member=2)
    found.submit([pods[:1]])
    worlds.run(found, 60)
    asked = Fault("volcano", "owner", GROUP, {}, {}, "makes each when the one before is ready", "podManagementPolicy: Parallel")
    assert says(texts(found, asked), asked)
    found.store.patch(STATEFUL_SET, "default", "serve", spec(podManagementPolicy="Parallel"))
    found.submit([pods[1:]])
    worlds.run(found, 120)
    assert len(speech.running(found, "train")) == 3
    assert texts(found, asked) == []


def test_a_group_that_is_changed_into_nonsense_keeps_its_last_good_form_and_its_pods_run_on() -> None:
    found, asked = speech.cluster(nodes=2, gpus=8), next(fault for fault in MANY if str(fault) == "volcano: annotation")
    found.submit([speech.gang("volcano", "train", tasks=3, min_member=2, gpus=1)])
    worlds.run(found, 30)
    found.store.patch(GROUP_BY_DIALECT["volcano"], "default", "train", asked.breaks)
    found.plan(40, lambda: found.faults.fail("default", "train-2"))
    worlds.run(found, 60)
    assert says(texts(found, asked), asked)
    assert {"train-0", "train-1"} <= set(speech.running(found, "train"))
    found.store.patch(GROUP_BY_DIALECT["volcano"], "default", "train", asked.mends)
    worlds.run(found, 90)
    assert texts(found, asked) == []
