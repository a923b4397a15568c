"""Gangs that run longer than they may: told, and evicted only where their queue says so."""

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.model.moment import moment_text
from phalanx.testing import build
from phalanx.testing.build import Cycle

NOW = 1_700_000_000
EVICTS = {"phalanx.dev/overdue": "evict"}
ONE_HOUR = {"phalanx.dev/max-duration": "1h"}


def decided(hours: float, queue: dict[str, str], group: dict[str, str] | None = None) -> Cycle:
    strict, (noun, *pods) = build.queue("strict"), build.gang("train", tasks=2, queue="strict", cpu=1)
    strict["metadata"]["annotations"], noun["metadata"]["annotations"] = queue, group or {}
    noun["status"] = {"phase": "Running"}
    for pod in pods:
        pod["spec"]["nodeName"], pod["status"] = "node-0", {"phase": "Running", "startTime": moment_text(int(NOW - hours * 3600))}
    waits = build.gang("waits", tasks=1, cpu=9)
    return build.cluster(nodes=1, policy=policy_of_profile("phalanx")).submit(strict, noun, *pods, waits).run_cycle(now=NOW)


@pytest.mark.parametrize("group", [{}, {"phalanx.dev/duration": "9h"}])
def test_a_queue_that_says_so_evicts_the_whole_gang_and_tells_why(group: dict[str, str]) -> None:
    evictions = decided(1.5, {**EVICTS, **ONE_HOUR}, group).decisions.evictions
    assert sorted(evictions) == ["default/train-0", "default/train-1"]
    assert {(each.action, each.message) for each in evictions.values()} == {
        ("overdue", "gang default/train runs longer than its maximum of 60m (phalanx.dev/max-duration of the queue), "
         "and its queue evicts such gangs"),
    }  # fmt: skip


def test_any_other_queue_evicts_nobody() -> None:
    assert decided(99, ONE_HOUR).decisions.evictions == {}
    assert decided(99, EVICTS).decisions.evictions == {}
    assert decided(99, EVICTS, {"phalanx.dev/duration": "1h"}).decisions.evictions == {}


def test_before_that_nobody_is_evicted() -> None:
    assert decided(0.99, {**EVICTS, **ONE_HOUR}).decisions.evictions == {}
    assert len(decided(1.0, {**EVICTS, **ONE_HOUR}).decisions.evictions) == 2
