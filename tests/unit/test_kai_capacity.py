"""Limits bind every job, quotas those that cannot be preempted."""

from phalanx.kai.amounts import BOUNDLESS
from phalanx.kai.capacity import capacity_verdict, limit_verdict, quota_verdict
from phalanx.kai.shares import QueueShare, build_tree

GB = 1_000_000_000


def leaf(**above: object) -> QueueShare:
    """A leaf with limits and quotas of 4 cores, 8 GB and 2 GPUs, of which half is held; above it a queue without bounds."""
    top = QueueShare("top", deserved=BOUNDLESS)
    for attribute, value in above.items():
        setattr(top, attribute, value)
    bounds, held = (4000.0, 8.0 * GB, 2.0), (2000.0, 4.0 * GB, 1.0)
    below = QueueShare("research", "top", "Research", deserved=bounds, limit=bounds, allocated=held, allocated_nonpreemptible=held)
    return build_tree([top, below]).by_name["research"]


def test_what_fits_exactly_fits() -> None:
    assert capacity_verdict(leaf(), (2000, 4 * GB, 1), is_preemptible=False).ok


def test_a_limit_refuses_with_the_numbers() -> None:
    verdict = capacity_verdict(leaf(), (0, 0, 1.5), is_preemptible=True)
    assert (verdict.ok, verdict.plugin, verdict.reason) == (False, "proportion", "OverLimit")
    assert verdict.message == (
        "Research quota has reached the allowable limit of GPUs. "
        "Limit is 2 GPUs, currently 1 GPUs allocated and workload requested 1.5 GPUs"
    )
    assert verdict.numbers == {"queue": "research", "resource": "gpu", "limit": 2, "allocated": 1, "requested": 1.5}


def test_cores_and_gigabytes_are_written_in_their_own_words() -> None:
    assert limit_verdict(leaf(), (2500, 0, 0)).message == (
        "Research quota has reached the allowable limit of CPU cores. "
        "Limit is 4 cores, currently 2 cores allocated and workload requested 2.5 cores"
    )
    assert limit_verdict(leaf(), (0, 5 * GB, 0)).message == (
        "Research quota has reached the allowable limit of memory. "
        "Limit is 8 GB, currently 4 GB allocated and workload requested 5 GB"
    )
    assert (
        "Workload requested 2.5 CPU cores, but Research quota is 4 cores, while 2 cores are"
        in quota_verdict(leaf(), (2500, 0, 0)).message
    )
    assert (
        "Workload requested 5 GB memory, but Research quota is 8 GB, while 4 GB are"
        in quota_verdict(leaf(), (0, 5 * GB, 0)).message
    )


def test_a_quota_binds_only_what_cannot_be_preempted() -> None:
    queue = leaf()
    queue.limit = BOUNDLESS
    assert capacity_verdict(queue, (0, 0, 50), is_preemptible=True).ok
    verdict = capacity_verdict(queue, (0, 0, 2), is_preemptible=False)
    assert verdict.reason == "NonPreemptibleOverQuota"
    assert verdict.message == (
        "Non-preemptible workload is over quota. Workload requested 2 GPUs, but Research quota is 2 GPUs, while 1 GPUs are already "
        "allocated for non-preemptible pods. Use a preemptible workload to go over quota."
    )
    assert verdict.numbers == {"queue": "research", "resource": "gpu", "quota": 2, "allocated": 1, "requested": 2}


def test_the_limit_is_named_before_the_quota() -> None:
    assert capacity_verdict(leaf(), (0, 0, 2), is_preemptible=False).reason == "OverLimit"


def test_the_queues_above_are_asked_too() -> None:
    assert limit_verdict(leaf(limit=(-1, -1, 0)), (0, 0, 1)).numbers["queue"] == "top"
    assert quota_verdict(leaf(deserved=(-1, -1, 0)), (0, 0, 1)).numbers["queue"] == "top"


def test_a_resource_that_is_not_asked_for_cannot_be_exceeded() -> None:
    queue = leaf()
    queue.allocated = queue.allocated_nonpreemptible = (9999, 9 * GB, 99)
    assert capacity_verdict(queue, (0, 0, 0), is_preemptible=False).ok
    assert limit_verdict(queue, (0, 1, 0)).numbers["resource"] == "memory"


def test_amounts_have_three_decimals_that_are_cut_off() -> None:
    assert "workload requested 2.999 cores" in limit_verdict(leaf(), (2999.9, 0, 0)).message
