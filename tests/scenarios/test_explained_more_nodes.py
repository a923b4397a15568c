"""Every situation in `explained/`: whether more nodes would help, which autoscalers are told by the pods."""

from pathlib import Path

import pytest

from tests.scenarios.test_explained import SITUATIONS, explained
from tests.support.situations import Situation

NO_HELP = {
    "bind-refused", "bind-rollback", "claim-deleted", "claim-lost", "claim-missing", "claim-of-one-pod-in-use", "claim-unbound",
    "claim-unbound-no-csinodes", "coscheduling-pauses", "coscheduling-timed-out", "device-claim-deleted", "device-claim-missing",
    "device-claim-on-a-full-node", "device-class-missing", "gates-pods-missing", "kai-level-missing", "kai-limit",
    "kai-pods-missing", "kai-pool-without-shard", "kai-queue-missing", "kai-queue-of-others-missing",
    "kai-quota-of-non-preemptible", "kai-sub-group-unknown", "kai-sub-group-without-pods", "kai-topology-missing",
    "koordinator-annotations", "members-terminating", "namespace-quota", "native-several-schedulers", "no-hypernodes",
    "one-member-gated", "own-quota-too-small-to-preempt", "parent-queue-capability-reached", "plain-job-pods-missing",
    "pod-names-two-groups", "pods-failed", "pods-missing", "queue-capability-reached", "queue-closed", "queue-missing",
    "queue-not-a-leaf", "role-without-pods", "storage-class-missing", "sub-group-policy-without-effect",
    "sub-group-without-pods", "tier-name-unknown", "volcano-queue-closed", "volume-missing", "yunikorn-pods-missing",
}  # fmt: skip
"""They wait for their queue, their own pods or claims, or for somebody who has to correct something."""
NOBODY_OF_OURS = {
    "foreign-gate", "group-in-another-namespace", "group-invalid", "group-name-misspelt", "kueue-gate", "no-pods-yet",
    "overcommit-before-pods", "scheduler-name-misspelt", "scheduler-of-others",
}  # fmt: skip
"""No pod of theirs waits for us."""


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.path.stem)
def test_more_nodes_would_help_exactly_those_that_lack_some(situation: Situation, tmp_path: Path) -> None:
    name = situation.path.stem
    expected = None if name in NOBODY_OF_OURS else name not in NO_HELP
    assert explained(situation, tmp_path).get("moreNodesHelp") is expected
