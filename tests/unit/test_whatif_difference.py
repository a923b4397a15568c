"""What else changes: two sessions compared gang by gang."""

from collections.abc import Sequence
from typing import Any

from phalanx.testing import build
from phalanx.whatif.answer import what_if
from phalanx.whatif.changes import parse_all
from tests.support import native_groups as native
from tests.support.trial_clusters import running_gang, trial_cluster


def others(cluster_parts: Sequence[Any], *texts: str) -> list[str]:
    cluster = trial_cluster(*cluster_parts)
    answer = what_if(cluster, "default/train", parse_all(texts), clock=lambda: 0.0, budget_seconds=0.0)
    return [found.text for found in answer.others]


def test_a_gang_that_gets_room_takes_it_from_others_that_wait() -> None:
    other = build.gang("other", tasks=1, gpus=2)
    parts = [build.node("n0", gpus=2), build.gang("train", tasks=2, gpus=2), other]
    assert others(parts, "gang/default/train.minMember=1") in ([], ["default/other would wait"])
    assert others(parts, "node/n0=cordoned") == ["default/other would wait"]
    assert others(parts, "node/+2=n0") == []


def test_victims_are_named_with_their_pods() -> None:
    parts = [build.node("n0", gpus=4), native.priority_class("high", 100), running_gang("runs", "n0", "n0", gpus=2)]
    assert others([*parts, build.gang("train", tasks=1, gpus=4)], "gang/default/train.priority=high") == [
        "default/runs would be evicted (2 pods)"
    ]


def test_a_gang_that_loses_its_node_waits() -> None:
    parts = [build.node("n0", gpus=4), running_gang("runs", "n0", gpus=2), build.gang("train", tasks=1, gpus=8)]
    assert others(parts, "node/n0=drained") == ["default/runs would wait"]


def test_a_gang_that_finds_another_node_is_moved() -> None:
    parts = [build.node("n0", gpus=4), build.node("n1", gpus=4), running_gang("runs", "n0", gpus=2)]
    assert others([*parts, build.gang("train", tasks=1, gpus=8)], "node/n0=drained") == ["default/runs would be moved (1 pod)"]


def test_changes_that_leave_everything_as_it_is_are_named() -> None:
    cluster = trial_cluster(build.node("n0", gpus=4), build.gang("train", tasks=1, gpus=8))
    texts = ["node/n0.taints.team=none", "node/n0=cordoned", "node/n0=cordoned", "gang/default/train.minMember=1"]
    answer = what_if(cluster, "default/train", parse_all(texts), clock=lambda: 0.0, budget_seconds=0.0)
    assert [change.text for change in answer.idle] == [
        "node/n0.taints.team=none",
        "node/n0=cordoned",
        "gang/default/train.minMember=1",
    ]
    assert answer.document()["ifAlready"] == [change.text for change in answer.idle]


def test_a_gang_that_is_gone_is_not_there() -> None:
    parts = [build.node("n0", gpus=4), build.gang("other", tasks=1, gpus=8), build.gang("train", tasks=1, gpus=8)]
    assert others(parts, "gang/default/other=gone") == ["default/other would not be there"]
