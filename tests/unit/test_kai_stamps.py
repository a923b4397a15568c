"""The times that groups carry: when they started, and since when they are broken."""

import pytest

from phalanx.testing.build import Cluster, Cycle
from tests.support import kai_objects as kai

NOON = 1_767_268_800.0
NOON_TEXT = "2026-01-01T12:00:00Z"
GRACE = {"stalenessGracePeriodSeconds": 60}


def stamps(cycle: Cycle, gang: str = "train") -> dict[str, str | None]:
    found: dict[str, str | None] = cycle.answer["groups"][f"default/{gang}"].get("annotations", {})
    return found


def cluster_of(*parts: object, gpus: int = 2, **more: object) -> Cluster:
    found = kai.cluster(gpus=gpus, options=GRACE, **more)  # type: ignore[arg-type]  # passed on as it is
    return found.submit(kai.queue("a", quota=4), *parts)  # type: ignore[arg-type]  # objects or lists of them


def test_a_gang_that_starts_is_stamped() -> None:
    cycle = cluster_of(kai.gang("train", tasks=2, gpus=1)).run_cycle(now=NOON)
    assert stamps(cycle) == {kai.LAST_START: NOON_TEXT}


def test_a_gang_that_grows_or_waits_is_not_stamped() -> None:
    grows = kai.gang("train", tasks=2, min_member=1, on=["node-0"], gpus=1)
    assert stamps(cluster_of(grows).run_cycle(now=NOON)) == {}
    assert stamps(cluster_of(kai.gang("train", gpus=3)).run_cycle(now=NOON)) == {}


def test_a_pipelined_gang_has_not_started() -> None:
    group, pod = kai.gang("old", on="node-0", gpus=2)
    cycle = cluster_of(group, kai.leaving(pod), kai.gang("train", gpus=2)).run_cycle(now=NOON)
    assert (cycle.status("train-0"), stamps(cycle)) == ("Pipelined", {})


def test_a_broken_gang_is_stamped_once_and_goes_after_the_grace() -> None:
    cluster = cluster_of(kai.gang("train", tasks=2, on=["node-0"], gpus=2))
    first = cluster.run_cycle(now=NOON)
    assert (stamps(first), first.answer["evictions"]) == ({kai.STALE_SINCE: NOON_TEXT}, {})
    second = cluster.carry_out(first).run_cycle(now=NOON + 59)
    assert (stamps(second), second.answer["evictions"]) == ({}, {})
    third = cluster.carry_out(second).run_cycle(now=NOON + 60)
    assert list(third.answer["evictions"]) == ["default/train-0"]


def test_the_stamp_is_struck_when_the_gang_is_whole_again() -> None:
    cluster = cluster_of(kai.gang("train", tasks=2, on=["node-0"], gpus=2))
    cluster.carry_out(cluster.run_cycle(now=NOON))
    whole = cluster.submit(kai.pod("train-1", "train", on="node-0")).run_cycle(now=NOON + 30)
    assert stamps(whole) == {kai.STALE_SINCE: None}
    broken = cluster.carry_out(whole).submit(kai.pod("train-1", "train", gpus=2)).run_cycle(now=NOON + 70)
    assert stamps(broken) == {kai.STALE_SINCE: "2026-01-01T12:01:10Z"}
    assert broken.answer["evictions"] == {}


def test_a_gang_that_is_repaired_in_the_session_is_not_stale() -> None:
    assert kai.STALE_SINCE not in stamps(cluster_of(kai.gang("train", tasks=2, on=["node-0"], gpus=1)).run_cycle(now=NOON))


def test_a_stamp_without_a_zone_is_in_utc() -> None:
    gang = kai.gang("train", tasks=2, on=["node-0"], gpus=2, annotations={kai.STALE_SINCE: "2026-01-01T11:59:30"})
    assert cluster_of(gang).run_cycle(now=NOON).answer["evictions"] == {}
    assert list(cluster_of(gang).run_cycle(now=NOON + 30).answer["evictions"]) == ["default/train-0"]


@pytest.mark.parametrize("actions", ["allocate", "allocate, preempt"])
def test_nobody_is_stamped_as_broken_if_nobody_looks(actions: str) -> None:
    cycle = cluster_of(kai.gang("train", tasks=2, on=["node-0"], gpus=2), actions=actions).run_cycle(now=NOON)
    assert stamps(cycle) == {}


def test_a_start_protects_a_gang_in_the_next_session() -> None:
    young = {"minruntime": {"arguments": {"defaultPreemptMinRuntime": "60s"}}}
    cluster = cluster_of(kai.gang("train", gpus=2), plugins=young)
    cluster.carry_out(cluster.run_cycle(now=NOON))
    cluster.submit(kai.gang("urgent", gpus=2, priorityClassName="build-preemptible"))
    assert cluster.run_cycle(now=NOON + 59).answer["evictions"] == {}
    assert list(cluster.run_cycle(now=NOON + 60).answer["evictions"]) == ["default/train-0"]
