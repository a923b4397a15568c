"""What each dialect can say, found out by saying it: each cell of the table in `docs/reference/dialects.md` is a run of the engine.

A feature is said once, in the words of the dialect or, where it has none, in those of the one from which it is converted; then a
session or a short simulation shows whether it made a difference. `python -m tests.support.dialect_features` writes the table.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx.controllers.controller import RecordEvent
from phalanx.dialects import gates, koordinator, kueue, yunikorn
from phalanx.explain.events import gang_events
from phalanx.model.kinds import GROUP_BY_DIALECT, POD
from phalanx.sim.world import World
from phalanx.store.patches import MERGE, patched
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import coscheduling_gangs as sigs
from tests.support import kai_objects as kai
from tests.support import native_groups as native
from tests.support import same_gang as speech
from tests.support import sim_worlds as worlds

BEGIN, END = "<!-- the table of features begins -->", "<!-- the table of features ends -->"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "dialects.md"
TITLES = {
    "volcano": "Volcano", "kai": "KAI", "coscheduling": "Coscheduling", "koordinator": "Koordinator", "native": "Kubernetes",
    "yunikorn": "YuniKorn", "kueue": "Kueue", "gates": "gates",
}  # fmt: skip
HIGH, LOW = native.priority_class("high", 1000), native.priority_class("low", 1)
TIMED_OUT = frozenset({"ScheduleTimeout", "GangTimedOut", "GangDegraded", "ResourceReservationTimeout"})


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that a dialect may have."""

    title: str
    has: Callable[[str], bool]
    """Takes a dialect, runs the engine and says whether it is so."""


# --- small parts ---------------------------------------------------------------------------------------------------------


def cluster(*documents: Iterable[Document], nodes: int = 1, gpus: int = 4) -> Cluster:
    """Return a cluster with a few objects in it."""
    found = build.cluster(nodes=nodes, gpus=gpus, cpu=64, policy=speech.policy()).submit(build.queue("default"), HIGH, LOW)
    for items in documents:
        found.submit(speech.seen(items))
    return found


def started(*documents: Iterable[Document], **more: int) -> list[str]:
    """Return the pods that one session starts."""
    return [pod for pod, _ in cluster(*documents, **more).run_cycle().binds]


def changed(documents: Iterable[Document], kind: str, patch: Document) -> list[Document]:
    """Return objects with a merge patch on those of a kind."""
    return [dict(patched(item, patch, MERGE)) if item["kind"] == kind else item for item in documents]


def by_dialect(documents: list[Document], dialect: str, words: Mapping[str, tuple[str, Document]]) -> list[Document]:
    """Return objects with the word that a dialect has, on its group or its pods; as they are where it has none."""
    return changed(documents, *words[dialect]) if dialect in words else documents


def note(key: str, text: str) -> Document:
    """Return the patch that writes an annotation."""
    return {"metadata": {"annotations": {key: text}}}


# --- gangs ---------------------------------------------------------------------------------------------------------------


def has_group_object(dialect: str) -> bool:
    """An object of its own says what the gang is."""
    return any(item["kind"] == "PodGroup" for item in speech.gang(dialect, "train", tasks=2, gpus=1))


def is_made_by_pods(dialect: str) -> bool:
    """Pods start as a gang although there is no group object."""
    pods = [item for item in speech.gang(dialect, "train", tasks=3, gpus=2) if item["kind"] == "Pod"]
    if dialect == "koordinator":
        pods = [sigs.describing_pod(f"train-{number}", "train", min_available="3", gpus=2) for number in range(3)]
    return len(started(pods, gpus=6)) == 3 and not started(pods, gpus=4)


def has_minimum(dialect: str) -> bool:
    """Nobody starts where there is no room for all that are needed."""
    gang = speech.gang(dialect, "train", tasks=3, gpus=2)
    return len(started(gang, gpus=6)) == 3 and not started(gang, gpus=4)


def is_elastic(dialect: str) -> bool:
    """Fewer pods than there are may be enough, and the others follow."""
    gang = speech.gang(dialect, "train", tasks=4, min_member=3, gpus=2)
    return len(started(gang, gpus=6)) == 3 and len(started(gang, gpus=8)) == 4


def takes_more_than_it_needs(dialect: str) -> bool:
    """Pods beyond the minimum that come later are members too, and start."""
    words = {"kueue": ("Pod", note(kueue.TOTAL_COUNT, "3"))}
    gang = by_dialect(speech.gang(dialect, "train", tasks=4, min_member=3, gpus=2), dialect, words)
    return len(started(gang, gpus=8)) == 4


def has_role_minima(dialect: str) -> bool:
    """Pods of one role do not make up for those of another that are missing."""
    return not started(_roles(dialect, launcher=9), gpus=8) and len(started(_roles(dialect, launcher=2), gpus=6)) == 3


def _roles(dialect: str, *, launcher: int) -> list[Document]:
    """Return a launcher that asks for so many GPUs, and three workers of which two are needed."""
    pods = [("launcher", "train-launcher-0", launcher), *(("worker", f"train-worker-{number}", 2) for number in range(3))]
    members = [build.in_group("train", build.pod(name, gpus=gpus), role=role) for role, name, gpus in pods]
    group = build.pod_group("train", min_member=3, minTaskMember={"launcher": 1, "worker": 2})
    return speech.said([group, *members], dialect)


def has_subgroups(dialect: str) -> bool:
    """A part of the gang that is not whole keeps the gang waiting."""
    parts = [{"name": "ring", "subGroupSize": 2, "minSubGroups": 2, "matchLabelKeys": ["ring"]}]
    pods = [build.pod(f"train-{number}", group="train", gpus=1) for number in range(4)]
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"]["ring"] = "b" if number == 3 else "a"
    return not started(speech.said([build.pod_group("train", min_member=3, subGroupPolicy=parts), *pods], dialect))


def starts_with_others(dialect: str) -> bool:
    """Several groups start together or not at all."""
    together = {
        "koordinator": ("PodGroup", note(koordinator.GROUPS, '["default/one", "default/two"]'))
    }  # fmt: skip
    gangs = [speech.gang(dialect, "one", tasks=1, gpus=1), speech.gang(dialect, "two", tasks=1, gpus=9)]
    return not started(*(by_dialect(gang, dialect, together) for gang in gangs))


# --- where, and how important --------------------------------------------------------------------------------------------


def knows_tiers(dialect: str) -> bool:
    """A gang may stay inside a tier of HyperNodes."""
    domains = [build.hypernode(f"rack-{number}", tier=1, members=[f"node-{number}"]) for number in range(2)]
    group, *pods = build.gang("train", tasks=2, gpus=4)
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    return not started(domains, speech.said([group, *pods], dialect), nodes=2)


def knows_levels(dialect: str) -> bool:
    """All members may share a value of a node label."""
    racks = [build.node(f"node-{number}", labels={"rack": f"r{number}"}, cpu=64, gpus=4) for number in range(2)]
    if dialect == "kai":
        constraint = {"topology": "site", "requiredTopologyLevel": "rack"}
        gang = kai.gang("train", tasks=2, gpus=4, queue="default", topologyConstraint=constraint)
        return not kai.cluster(nodes=0).submit(racks, kai.topology("site", "rack"), gang).run_cycle().binds
    words: dict[str, tuple[str, Document]] = {
        "native": ("PodGroup", {"spec": {"schedulingConstraints": {"topology": [{"key": "rack"}]}}}),
        "kueue": ("Pod", {"metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}}}),
    }
    gang = by_dialect(speech.gang(dialect, "train", tasks=2, gpus=4), dialect, words)
    return not started(racks, gang, nodes=0)


def group_has_priority(dialect: str) -> bool:
    """The group object says how important the gang is."""
    return _comes_first(dialect, "PodGroup")


def pods_have_priority(dialect: str) -> bool:
    """The pods say how important the gang is."""
    return _comes_first(dialect, "Pod")


def _comes_first(dialect: str, kind: str) -> bool:
    late = changed(speech.gang(dialect, "zebra", tasks=2, gpus=2), kind, {"spec": {"priorityClassName": "high"}})
    return started(speech.gang(dialect, "aardvark", tasks=2, gpus=2), late) == ["zebra-0", "zebra-1"]


def has_queue(dialect: str) -> bool:
    """The limit of the queue that the gang names holds it back."""
    group, *pods = build.gang("train", tasks=2, gpus=2, queue="research")
    queue = build.queue("research", capability={"nvidia.com/gpu": 1})
    return not started([queue], speech.said([group, *pods], dialect))


# --- time ----------------------------------------------------------------------------------------------------------------


def has_timeout(dialect: str) -> bool:
    """The gang says how long it may wait, and is told when that time is up."""
    words = {
        "coscheduling": ("PodGroup", {"spec": {"scheduleTimeoutSeconds": 30}}),
        "koordinator": ("PodGroup", note(koordinator.WAITING_TIME, "30s")),
        "yunikorn": ("Pod", note(yunikorn.POLICY, "placeholderTimeoutInSeconds=30")),
        "gates": ("Pod", {"metadata": {"annotations": {gates.TIMEOUT: "30s", gates.AFTERWARDS: gates.DELETE}}}),
    }  # fmt: skip
    world, told = _listened_to(nodes=1, gpus=2)
    worlds.submit(world, by_dialect(speech.gang(dialect, "train", tasks=2, gpus=2), dialect, words))
    worlds.run(world, 90)
    return not TIMED_OUT.isdisjoint(told)


def has_backoff(dialect: str) -> bool:
    """The gang may ask not to be tried again where it failed."""
    words = {"kai": ("PodGroup", {"spec": {"schedulingBackoff": 1}})}
    world = speech.cluster(nodes=1, gpus=2)
    worlds.submit(world, by_dialect(speech.gang(dialect, "train", tasks=2, gpus=2), dialect, words))
    world.plan(30, lambda: world.load([build.node("another", gpus=2)]))
    worlds.run(world, 90)
    return not speech.running(world, "train")


def _listened_to(**more: Any) -> tuple[World, list[str]]:
    """Return a world, and the reasons of all events that are told in it."""
    world, told = speech.cluster(**more), list[str]()
    world.on_event(lambda event: told.append(event.reason))
    world.loop.decided.append(lambda _, decisions: told.extend(item.reason for item in gang_events(decisions)))
    return world, told


# --- evictions -----------------------------------------------------------------------------------------------------------


def goes_whole(dialect: str) -> bool:
    """The gang may ask that all of it goes where one pod would be enough."""
    return _evicted(dialect, {"native": ("PodGroup", {"spec": {"disruptionMode": "PodGroup"}})}) == 3


def gives_what_it_can_spare(dialect: str) -> bool:
    """Otherwise one pod that it can do without goes, and the gang goes on."""
    return _evicted(dialect, {}) == 1


def stays(dialect: str) -> bool:
    """The gang may ask that nobody takes its room."""
    words = {
        "volcano": ("PodGroup", note("volcano.sh/preemptable", "false")),
        "kai": ("PodGroup", {"spec": {"preemptibility": "non-preemptible"}}),
    }
    return _evicted(dialect, words) == 0


def _evicted(dialect: str, words: Mapping[str, tuple[str, Document]]) -> int:
    """Return how many of three pods, of which two are needed, go for one that is more important."""
    world = speech.cluster(nodes=3, gpus=1)
    world.load([HIGH, LOW])
    low = changed(speech.gang(dialect, "low", tasks=3, min_member=2, gpus=1), "Pod", {"spec": {"priorityClassName": "low"}})
    if dialect == "kueue":
        low = changed(low, "Pod", note(kueue.TOTAL_COUNT, "2"))
    worlds.submit(world, by_dialect(low, dialect, words))
    high = native.gang("high", tasks=1, gpus=1, spec={"priorityClassName": "high"})
    worlds.submit(world, changed(high, "Pod", {"spec": {"priorityClassName": "high"}}), at=30)
    worlds.run(world, 60)
    return len(world.recorder.evictions)


# --- what is written -----------------------------------------------------------------------------------------------------


def writes_status(dialect: str) -> bool:
    """The group object says how the gang stands."""
    world = speech.cluster(nodes=1, gpus=4)
    worlds.submit(world, speech.gang(dialect, "train", tasks=2, gpus=2))
    worlds.run(world, 30)
    kind = GROUP_BY_DIALECT.get(dialect)
    group = None if kind is None else world.store.find(kind, "default", "train")
    return group is not None and bool(group.get("status"))


def pods_say_it(dialect: str) -> bool:
    """The pods say that the gang is set aside."""
    world, _ = _short_of_pods(dialect)
    return any(item["reason"] == "Undetermined" for pod in world.store.items(POD) for item in pod["status"].get("conditions") or ())


def writes_events(dialect: str) -> bool:
    """An event tells that the gang is set aside."""
    return bool(_short_of_pods(dialect)[1])


def _short_of_pods(dialect: str) -> tuple[World, list[RecordEvent]]:
    world, told = speech.cluster(nodes=1, gpus=4), list[RecordEvent]()
    world.on_event(told.append)
    worlds.submit(world, speech.gang(dialect, "train", tasks=2, min_member=3, gpus=1))
    worlds.run(world, 1)
    return world, told


def finished_members_count(dialect: str) -> bool:
    """A pod that takes the place of another starts though the rest of its gang has finished."""
    group = [item for item in speech.gang(dialect, "train", tasks=3, gpus=1) if item["kind"] != "Pod"]
    first, second, third = speech.seen(item for item in speech.gang(dialect, "train", tasks=3, gpus=1) if item["kind"] == "Pod")
    done = [{**pod, "spec": {**pod["spec"], "nodeName": "node-0"}, "status": {"phase": "Succeeded"}} for pod in (first, second)]
    return started([*group, *done, third]) == ["train-2"]


def shares_names(dialect: str) -> bool:
    """A group of another dialect may have the same name in the same namespace."""
    other = "coscheduling" if dialect == "volcano" else "volcano"
    strangers = speech.gang(other, "train", tasks=2, gpus=1)
    for item in strangers:
        if item["kind"] == "Pod":
            item["metadata"]["name"] = item["metadata"]["name"].replace("train", "other")
    return len(started(strangers, speech.gang(dialect, "train", tasks=2, gpus=1))) == 4


FEATURES = (
    Feature("group object", has_group_object),
    Feature("made by pods alone", is_made_by_pods),
    Feature("minimum: whole or not at all", has_minimum),
    Feature("minimum below the number of pods that were asked for", is_elastic),
    Feature("pods beyond the minimum start too", takes_more_than_it_needs),
    Feature("minimum of each role", has_role_minima),
    Feature("sub-groups", has_subgroups),
    Feature("several groups start together", starts_with_others),
    Feature("topology: tiers of HyperNodes", knows_tiers),
    Feature("topology: node labels (KAI: profile `kai`)", knows_levels),
    Feature("priority of the group object", group_has_priority),
    Feature("priority of the pods", pods_have_priority),
    Feature("queue", has_queue),
    Feature("own timeout", has_timeout),
    Feature("own back-off", has_backoff),
    Feature("preemption: what it can spare goes pod by pod", gives_what_it_can_spare),
    Feature("preemption: may ask to go as a whole", goes_whole),
    Feature("preemption: may ask to stay", stays),
    Feature("status of the group object is written", writes_status),
    Feature("pods say why the gang is quarantined", pods_say_it),
    Feature("events are written", writes_events),
    Feature("finished members count", finished_members_count),
    Feature("may have the name of a group of another dialect", shares_names),
)


def table() -> str:
    """Return the table, as it stands on the page."""
    head = f"| feature | {' | '.join(TITLES.values())} |"
    lines = [head, f"| --- |{' --- |' * len(TITLES)}"]
    for feature in FEATURES:
        cells = ("yes" if feature.has(dialect) else "no" for dialect in TITLES)
        lines.append(f"| {feature.title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of(page: str) -> str:
    """Return the table that a page has."""
    return page.partition(BEGIN)[2].partition(END)[0].strip()


def with_table(page: str, fresh: str) -> str:
    """Return a page with another table."""
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    return f"{before}{BEGIN}\n\n{fresh}\n\n{END}{after}"


if __name__ == "__main__":
    text = table()
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: {len(FEATURES)} features of {len(TITLES)} dialects\n")
