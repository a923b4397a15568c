"""The queues on the page: the tree, what each deserves, and who lends to whom."""

import pytest

from phalanx.model.resources import CPU
from phalanx.testing import build
from phalanx.ui.scope import EVERYTHING, Scope
from phalanx.ui.views.amounts import with_unit
from phalanx.ui.views.queues import queues
from tests.support import ui_clusters
from tests.support.ui_pages import seen

GPU = "nvidia.com/gpu"


def by_name(found: dict) -> dict:  # type: ignore[type-arg]  # JSON
    return {queue["name"]: queue for queue in found["queues"]}


def test_queues_deserve_their_part_by_weight() -> None:
    found = by_name(queues(seen(ui_clusters.lively()), EVERYTHING))
    deserved = {name: queue["figures"][GPU].get("deserved") for name, queue in found.items() if GPU in queue["figures"]}
    assert deserved == {"batch": 48, "interactive": 16, "production": 144, "research": 96}


def test_more_than_a_queue_deserves_is_borrowed() -> None:
    found = by_name(queues(seen(ui_clusters.lively()), EVERYTHING))
    assert (found["batch"]["figures"][GPU]["allocated"], found["batch"]["figures"][GPU]["borrowed"]) == (88, 40)
    assert found["production"]["figures"][GPU]["borrowed"] == 0


def test_a_queue_that_uses_less_than_it_deserves_lends_to_those_that_use_more() -> None:
    found = queues(seen(ui_clusters.lively()), EVERYTHING)["lending"]
    assert {loan["lender"]: loan["borrowers"] for loan in found} == {
        "interactive": ["batch", "research"],
        "production": ["batch", "research"],
    }
    assert found[-1]["text"] == (
        "production lends: 120 of the 144 GPUs that it deserves are not used; "
        "batch has 40 GPUs more than it deserves, research has 32 GPUs more than it deserves"
    )


def test_nobody_lends_where_nobody_borrows() -> None:
    cluster = seen(ui_clusters.nodes(2, racks=1, zones=1), build.queue("a"), build.queue("b"))
    assert queues(cluster, EVERYTHING)["lending"] == []


def test_gangs_and_what_they_ask_for_are_counted_by_queue() -> None:
    found = by_name(queues(seen(ui_clusters.lively()), EVERYTHING))
    assert {name: (found[name]["waiting"], found[name]["started"]) for name in ("batch", "research")} == {
        "batch": (2, 2),
        "research": (1, 3),
    }
    assert found["interactive"]["asked"] == 32


def test_what_an_object_says_comes_before_weights() -> None:
    said = build.queue("said", deserved={GPU: 6})
    cluster = seen(ui_clusters.nodes(2, racks=1, zones=1), said, build.queue("rest", weight=5))
    found = by_name(queues(cluster, EVERYTHING))
    assert {name: found[name]["figures"][GPU]["deserved"] for name in ("said", "rest")} == {"said": 6, "rest": 10}


def test_a_tree_comes_parents_first_and_gangs_count_for_every_ancestor() -> None:
    tree = [build.queue("org"), build.queue("team", parent="org"), build.queue("user", parent="team")]
    gang = build.gang("train", tasks=1, queue="user", gpus=1)
    found = queues(seen(ui_clusters.nodes(1, racks=1, zones=1), tree, gang), EVERYTHING)["queues"]
    order = [(queue["name"], queue["depth"]) for queue in found if queue["name"] in ("org", "team", "user")]
    assert order == [("org", 0), ("team", 1), ("user", 2)]
    assert {queue["name"] for queue in found if queue["started"]} >= {"org", "team", "user"}


def test_parents_that_go_round_in_a_circle_are_listed_once_each() -> None:
    tree = [build.queue("one", parent="two"), build.queue("two", parent="one")]
    names = [queue["name"] for queue in queues(seen(tree), EVERYTHING)["queues"]]
    assert sorted(name for name in names if name in ("one", "two")) == ["one", "two"]


@pytest.mark.timeout(30)
def test_three_thousand_chained_queues_are_listed() -> None:
    chain = [build.queue(f"q{number}", parent=f"q{number - 1}" if number else "") for number in range(3000)]
    found = queues(seen(chain, profile="volcano"), EVERYTHING)["queues"]
    assert max(queue["depth"] for queue in found) == 2999


def test_who_may_not_list_queues_sees_none() -> None:
    found = queues(seen(ui_clusters.lively()), Scope(sees_queues=False))
    assert (found["queues"], found["hidden"]) == ([], True)


def test_amounts_are_written_as_people_read_them() -> None:
    amounts = [
        (GPU, 1.0),
        (GPU, 0.25),
        (GPU, 114.6666),
        (CPU, 1_200_000.0),
        (GPU, 4631.579),
        ("memory", float(32 << 30)),
        ("example.com/fpga", 1.0),
    ]
    assert [with_unit(resource, amount) for resource, amount in amounts] == [
        "1 GPU", "0.25 GPUs", "114.667 GPUs", "1,200,000 CPUs", "4,632 GPUs", "32Gi memory", "1 example.com/fpga",
    ]  # fmt: skip
