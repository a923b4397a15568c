"""A priority queue that compares its items anew each time, because the share of a queue changes while it waits in the heap.

Only the path that `push` and `pop` walk is compared, so an entry deep in the heap may be out of order for a while. That is how
Volcano's queues behave. `heapq` cannot do it: it needs keys, and keys of waiting queues would go stale.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Heap(Generic[Item]):
    """A binary heap; `comes_first(a, b)` says whether a goes before b now."""

    __slots__ = ("_comes_first", "_items")

    def __init__(self, comes_first: Callable[[Item, Item], bool]) -> None:
        """Start empty."""
        self._comes_first = comes_first
        self._items: list[Item] = []

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self._items)

    def push(self, item: Item) -> None:
        """Add an item."""
        items = self._items
        items.append(item)
        place = len(items) - 1
        while place > 0 and self._comes_first(items[place], items[(place - 1) // 2]):
            items[place], items[(place - 1) // 2] = items[(place - 1) // 2], items[place]
            place = (place - 1) // 2

    def pop(self) -> Item:
        """Remove and return the first item."""
        items = self._items
        items[0], items[-1] = items[-1], items[0]
        first = items.pop()
        self._sink()
        return first

    def _sink(self) -> None:
        items, place = self._items, 0
        while (child := 2 * place + 1) < len(items):
            if child + 1 < len(items) and self._comes_first(items[child + 1], items[child]):
                child += 1
            if not self._comes_first(items[child], items[place]):
                break
            items[place], items[child] = items[child], items[place]
            place = child
