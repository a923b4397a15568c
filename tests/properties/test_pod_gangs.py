"""Gangs that pods alone make depend on what there is, not on the order in which pods and groups came, changed and went."""

import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.gates import MIN_MEMBER
from phalanx.dialects.group_references import KUEUE_GROUP
from phalanx.dialects.kueue import TOTAL_COUNT
from phalanx.dialects.yunikorn import TASK_GROUPS
from phalanx.errors import SnapshotError
from phalanx.testing.build import Document
from tests.support import coscheduling_gangs as sigs
from tests.support import gated_gangs as gates
from tests.support import pod_made_gangs as made


def some_pod(random: Random) -> Document:
    """Return one of a few pods of a few gangs, as old as chance has it, and now and then with nonsense on it."""
    name, gang = f"pod-{random.randrange(5)}", random.choice(["one", "two"])
    if random.random() < 0.5:
        pod = made.application_pod(name, gang, random.choice(["", "worker"]))
        if random.random() < 0.6:
            groups = json.dumps([{"name": "worker", "minMember": random.randint(0, 2)}])
            pod["metadata"]["annotations"][TASK_GROUPS] = random.choice([groups, groups, "nonsense"])
    else:
        (pod,) = made.pod_group(gang, tasks=1)
        pod["metadata"] |= {"name": name, "uid": name, "labels": {KUEUE_GROUP: f"group-{gang}"}}
        pod["metadata"]["annotations"][TOTAL_COUNT] = random.choice(["2", "2", "3", "none"])
    pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{random.randrange(3)}Z"
    return pod


def pod_of_a_bundle(random: Random) -> Document:
    """Return one of a few pods of Koordinator's gangs, which may list each other, or of gangs behind our gate."""
    name, gang = f"pod-{random.randrange(5)}", random.choice(["three", "four"])
    minimum = random.choice(["1", "2", "2", "none", ""])
    if random.random() < 0.3:
        pod = gates.pod(name, f"gated-{gang}", minimum or "0")
        if not minimum:
            del pod["metadata"]["annotations"][MIN_MEMBER]
    else:
        pod = sigs.describing_pod(name, gang, min_available=minimum, **some_list(random))
    pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{random.randrange(3)}Z"
    return pod


def some_group(random: Random) -> Document:
    """Return one of Koordinator's group objects, which may list another."""
    name, minimum = random.choice(["three", "four"]), random.randint(1, 2)
    (group,) = sigs.koordinator_gang(name, tasks=0, min_member=minimum, **some_list(random))
    return group


def some_list(random: Random) -> dict[str, str]:
    """Return which gangs start together, if any do."""
    return {"groups": '["default/three","default/four"]'} if random.random() < 0.5 else {}


def contents(cluster: ObjectCluster) -> dict[str, Any]:
    snapshot = cluster.snapshot(0.0)
    return {
        "gangs": {key: repr(gang) for key, gang in snapshot.gangs.items()},
        "members": {key: sorted((pod, task.role) for pod, task in tasks.items()) for key, tasks in snapshot.members.items()},
        "active": snapshot.active,
    }


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**40))
def test_any_history_equals_a_fresh_start(seed: int) -> None:
    the_history_does_not_matter(Random(seed), [some_pod])


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**40))
def test_any_history_of_bundles_and_objects_equals_a_fresh_start(seed: int) -> None:
    the_history_does_not_matter(Random(seed), [some_pod, pod_of_a_bundle, pod_of_a_bundle, some_group])


def the_history_does_not_matter(random: Random, makers: list[Callable[[Random], Document]]) -> None:
    cluster, present = ObjectCluster(), dict[tuple[str, str], Document]()
    for _ in range(random.randint(1, 25)):
        document = random.choice(makers)(random)
        key = (document["kind"], document["metadata"]["name"])
        if random.random() < 0.3:
            cluster.remove(document)
            present.pop(key, None)
        else:
            present[key] = document
            with suppress(SnapshotError):
                cluster.put(document)
    fresh = ObjectCluster()
    for document in random.sample(list(present.values()), len(present)):
        with suppress(SnapshotError):
            fresh.put(document)
    assert contents(cluster) == contents(fresh)
