"""Gangs that pods alone make depend on which pods there are, not on the order in which they came, changed and went."""

import json
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.kueue import TOTAL_COUNT
from phalanx.dialects.links import KUEUE_GROUP
from phalanx.dialects.yunikorn import TASK_GROUPS
from phalanx.errors import SnapshotError
from phalanx.testing import made
from phalanx.testing.build import Document


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


def contents(cluster: ObjectCluster) -> dict[str, Any]:
    snapshot = cluster.snapshot(0.0)
    return {
        "gangs": {key: repr(gang) for key, gang in snapshot.gangs.items()},
        "members": {key: sorted(tasks) for key, tasks in snapshot.members.items()},
        "active": snapshot.active,
    }


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**40))
def test_any_history_equals_a_fresh_start(seed: int) -> None:
    random = Random(seed)
    cluster, present = ObjectCluster(), dict[str, Document]()
    for _ in range(random.randint(1, 25)):
        pod = some_pod(random)
        if random.random() < 0.3:
            cluster.remove(pod)
            present.pop(pod["metadata"]["name"], None)
        else:
            present[pod["metadata"]["name"]] = pod
            with suppress(SnapshotError):
                cluster.put(pod)
    fresh = ObjectCluster()
    for pod in random.sample(list(present.values()), len(present)):
        with suppress(SnapshotError):
            fresh.put(pod)
    assert contents(cluster) == contents(fresh)
