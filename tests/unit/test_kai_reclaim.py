"""Who may take room back, and from whom."""

from phalanx.kai.amounts import BOUNDLESS, Figures
from phalanx.kai.reclaim import Reclaimer, diverging_ancestors, gate_verdict, saturation, victims_verdict
from phalanx.kai.shares import QueueShare, QueueTree, build_tree, hold
from phalanx.state.verdict import Verdict

GPU = (0.0, 0.0, 1.0)


def gpus(count: float) -> Figures:
    return 0.0, 0.0, count


def queue(name: str, parent: str = "", *, quota: float = 0, fair: float = 0, holds: float = 0) -> QueueShare:
    share = QueueShare(name, parent, deserved=(-1, -1, quota), fair_share=(0, 0, fair))
    share.allocated = gpus(holds)
    return share


def judge(
    tree: QueueTree, taker: str, victims: dict[str, list[Figures]], *, chunk: Figures = GPU, multiplier: float = 1.0
) -> Verdict:
    released = {tree.by_name[name]: units for name, units in victims.items()}
    return victims_verdict(Reclaimer(tree.by_name[taker], chunk), released, tree.allocations(), multiplier=multiplier)


def pair(quota: float = 2, fair: float = 2, victim_holds: float = 4, taker_holds: float = 0) -> QueueTree:
    """Two leaves side by side below a queue without bounds."""
    top = QueueShare("top", deserved=BOUNDLESS, fair_share=gpus(2 * fair), allocated=gpus(victim_holds + taker_holds))
    rich, poor = queue("rich", "top", quota=quota, fair=fair, holds=victim_holds), queue("poor", "top", quota=quota, fair=fair)
    poor.allocated = gpus(taker_holds)
    return build_tree([top, rich, poor])


def test_the_gate_is_the_fair_share_of_the_leaf() -> None:
    leaf = queue("poor", fair=2, holds=1)
    assert gate_verdict(Reclaimer(leaf, GPU)).ok
    verdict = gate_verdict(Reclaimer(leaf, gpus(1.01)))
    numbers = {"queue": "poor", "resource": "gpu", "allocated": 1, "fair_share": 2, "requested": 1.01}
    assert (verdict.reason, verdict.numbers) == ("OverFairShare", numbers)


def test_the_gate_holds_jobs_that_cannot_be_preempted_to_the_quota() -> None:
    leaf = queue("poor", quota=1, fair=4)
    hold(leaf, GPU, is_preemptible=False)
    assert gate_verdict(Reclaimer(leaf, GPU)).ok
    assert gate_verdict(Reclaimer(leaf, GPU, is_preemptible=False)).reason == "NonPreemptibleOverQuota"


def test_a_queue_above_its_share_gives_until_it_has_its_share() -> None:
    assert judge(pair(), "poor", {"rich": [GPU, GPU]}, chunk=gpus(2)).ok
    verdict = judge(pair(), "poor", {"rich": [GPU, GPU, GPU]}, chunk=gpus(2))
    numbers = {"queue": "rich", "victim": "rich", "resource": "gpu", "allocated": 2, "share": 2}
    assert (verdict.reason, verdict.numbers) == ("VictimWithinShare", numbers)


def test_a_unit_is_judged_before_it_goes() -> None:
    assert judge(pair(victim_holds=3), "poor", {"rich": [gpus(3)]}).ok


def test_a_taker_within_its_quota_takes_what_exceeds_the_quota_of_another() -> None:
    tree = build_tree([queue("rich", quota=1, fair=4, holds=3), queue("poor", quota=1, fair=1)])
    assert judge(tree, "poor", {"rich": [GPU]}).ok
    tree.by_name["poor"].deserved = (-1, -1, 0)
    assert judge(tree, "poor", {"rich": [GPU]}).reason == "VictimWithinShare"


def test_a_taker_above_its_fair_share_may_not_end_better_off_than_its_victim() -> None:
    tree = pair(fair=2, quota=0, victim_holds=6, taker_holds=2)
    assert judge(tree, "poor", {"rich": [GPU]}).ok
    verdict = judge(tree, "poor", {"rich": [GPU, GPU, GPU]})
    assert verdict.numbers == {"queue": "poor", "victim": "rich", "resource": "gpu"}
    assert verdict.reason == "BetterOffThanVictim"


def test_a_multiplier_demands_a_wider_gap() -> None:
    tree = pair(fair=2, quota=0, victim_holds=6, taker_holds=2)
    assert judge(tree, "poor", {"rich": [GPU]}, multiplier=1.5).ok
    assert judge(tree, "poor", {"rich": [GPU]}, multiplier=2.0).reason == "BetterOffThanVictim"


def test_a_victim_without_any_share_is_never_worse_off() -> None:
    tree = build_tree([queue("rich", fair=0, holds=1), queue("poor", fair=0)])
    assert judge(tree, "poor", {"rich": [GPU]}).ok


def test_queues_are_compared_where_their_lines_part() -> None:
    left, right = queue("left", quota=2, fair=2, holds=4), queue("right", quota=2, fair=2)
    tree = build_tree([left, right, queue("leaf", "left", quota=9, fair=9, holds=4), queue("other", "right", fair=2)])
    assert diverging_ancestors(tree.by_name["leaf"], tree.by_name["other"]) == (left, right)
    assert judge(tree, "other", {"leaf": [GPU]}).ok
    left.deserved = (-1, -1, 4)
    assert judge(tree, "other", {"leaf": [GPU]}).numbers == {
        "queue": "left", "victim": "leaf", "resource": "gpu", "allocated": 4, "share": 4,
    }  # fmt: skip


def test_losses_of_two_leaves_add_up_on_the_side_they_share() -> None:
    tree = build_tree(
        [queue("side", quota=2, fair=2, holds=4), queue("x", "side", holds=2), queue("y", "side", holds=2), queue("poor", fair=9)]
    )
    assert judge(tree, "poor", {"x": [GPU], "y": [GPU]}).ok
    assert judge(tree, "poor", {"x": [GPU, GPU], "y": [GPU]}).reason == "VictimWithinShare"


def test_every_queue_above_the_taker_keeps_its_quota_for_what_cannot_be_preempted() -> None:
    tree = pair(quota=9)
    tree.by_name["top"].deserved = gpus(0)
    released = {tree.by_name["rich"]: [GPU]}
    tree.by_name["rich"].deserved = gpus(0)
    taker = Reclaimer(tree.by_name["poor"], GPU, is_preemptible=False)
    verdict = victims_verdict(taker, released, tree.allocations())
    assert (verdict.reason, verdict.numbers) == ("NonPreemptibleOverQuota", {"queue": "top"})


def test_the_state_at_the_start_of_the_search_is_judged() -> None:
    tree = pair()
    before = tree.allocations()
    hold(tree.by_name["poor"], gpus(50), is_preemptible=True)
    assert victims_verdict(Reclaimer(tree.by_name["poor"], GPU), {tree.by_name["rich"]: [GPU]}, before).ok


def test_resources_that_nobody_moves_are_not_compared() -> None:
    tree = pair(fair=4, victim_holds=6)
    tree.by_name["poor"].allocated = (10, 0, 0)
    tree.by_name["rich"].fair_share = (5, 5, 2)
    assert judge(tree, "poor", {"rich": [GPU]}).ok
    assert judge(tree, "poor", {"rich": [GPU]}, chunk=(1, 0, 1)).numbers["resource"] == "cpu"


def test_a_queue_is_full_at_one_and_overfull_without_a_share() -> None:
    assert saturation(3, 2) == 1.5
    assert saturation(0, 0) == 0
    assert saturation(1, 0) == float("inf")


def test_no_victims_are_no_reason_to_refuse() -> None:
    assert judge(pair(), "poor", {}).ok
    assert diverging_ancestors(queue("a"), queue("a"))[0].name == "a"
