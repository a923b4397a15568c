"""Which sub-groups of a tree are needed."""

from phalanx.model.gang import SubGroup
from phalanx.model.subgroup_tree import SubGroupTree

PARTS = (
    SubGroup("decode", min_children=1),
    SubGroup("decode-0", "decode", 2),
    SubGroup("decode-1", "decode", 3),
    SubGroup("prefill"),
    SubGroup("prefill-leader", "prefill", 1),
    SubGroup("prefill-workers", "prefill", 4),
)


def tree(min_children: int | None = None) -> SubGroupTree:
    return SubGroupTree.of(PARTS, min_children)


def names(found: list[SubGroup]) -> list[str]:
    return [part.name for part in found]


def missing(of: SubGroupTree, has: set[str], could: set[str]) -> list[str]:
    return names(of.missing(lambda part: part.name in has, lambda part: part.name in has | could, lambda part: part.name))


def test_a_parent_is_met_by_as_many_children_as_it_needs() -> None:
    prefill = {"prefill-leader", "prefill-workers"}
    assert tree().is_met(lambda part: part.name in {*prefill, "decode-1"})
    assert not tree().is_met(lambda part: part.name in prefill)
    assert not tree().is_met(lambda part: part.name in {"decode-0", "decode-1", "prefill-leader"})
    assert tree(1).is_met(lambda part: part.name == "decode-0")


def test_the_least_is_made_of_the_cheapest_children() -> None:
    assert tree().least(lambda leaf: leaf.min_member) == 7
    assert tree(1).least(lambda leaf: leaf.min_member) == 2


def test_what_is_missing_is_no_more_than_is_needed() -> None:
    everything = {part.name for part in PARTS}
    assert missing(tree(), set(), everything) == ["decode-0", "prefill-leader", "prefill-workers"]
    assert missing(tree(), {"decode-1"}, everything) == ["prefill-leader", "prefill-workers"]
    assert missing(tree(1), {"decode-1"}, everything) == []


def test_a_child_that_could_be_met_comes_before_one_that_could_not() -> None:
    assert missing(tree(1), set(), {"decode-1"}) == ["decode-1"]
    assert missing(tree(1), set(), {"prefill-leader", "prefill-workers"}) == ["prefill-leader", "prefill-workers"]


def test_beyond_what_is_needed_comes_one_child_as_a_whole() -> None:
    def extra(has: set[str]) -> list[str]:
        return names(tree(1).extra(lambda part: part.name in has, lambda part: True, lambda part: part.name))

    assert extra({"decode-0"}) == ["decode-1"]
    assert extra({"decode-0", "decode-1"}) == ["prefill-leader", "prefill-workers"]
    assert extra({"decode-0", "decode-1", "prefill-leader", "prefill-workers"}) == []


def test_what_can_be_spared_is_the_last_child_beyond_what_is_needed() -> None:
    def spare(of: SubGroupTree, has: set[str]) -> list[str]:
        return names(of.spare(lambda part: part.name in has, lambda part: part.name))

    leaves = {"decode-0", "decode-1", "prefill-leader", "prefill-workers"}
    assert spare(tree(1), leaves) == ["prefill-leader", "prefill-workers"]
    assert spare(tree(), leaves) == ["decode-1"]
    assert spare(tree(), leaves - {"decode-1"}) == []


def test_templates_are_leaves_whatever_they_are_called() -> None:
    unnamed = SubGroup("", match_keys=("slice",))
    assert list(SubGroupTree.of((unnamed,)).leaves()) == [unnamed]
    assert SubGroupTree.of((unnamed,)).is_met(lambda part: True)
