"""The gangs of a queue in the order in which they are tried."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from phalanx.actions.gang_line import Entry, GangLine


def entry(key: int, number: int) -> Entry:
    gang: Any = f"gang {number}"  # a line never looks into a gang
    return Entry((key,), number, gang)


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_gangs_come_in_order_whether_they_are_new_or_come_back(new: list[int], back: list[int]) -> None:
    entries = [entry(key, number) for number, key in enumerate(new)]
    returned = [entry(key, 100 + number) for number, key in enumerate(back)]
    line = GangLine(entries)
    for each in returned:
        line.push(each)
    expected = [each.gang for each in sorted([*entries, *returned])]
    seen = list[object]()
    while len(line):
        assert line.first is expected[len(seen)]
        seen.append(line.pop())
    assert seen == expected


def test_gangs_leave_the_line_wherever_they_are() -> None:
    first, second, third = entry(1, 1), entry(2, 2), entry(3, 3)
    line = GangLine([second, first])
    line.push(third)
    line.remove([first, third])
    assert list(line) == [second]
