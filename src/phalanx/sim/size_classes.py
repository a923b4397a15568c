"""Classes of gangs by their number of tasks, in which waits are counted apart."""

from bisect import bisect_left
from itertools import pairwise

LARGEST = (1, 8, 32)
"""The largest number of tasks of each class but the last, which is open."""
SIZE_CLASSES = (str(LARGEST[0]), *(f"{low + 1}-{high}" for low, high in pairwise(LARGEST)), f"{LARGEST[-1] + 1}+")
"""Their names, each of which begins with its least number of tasks."""


def size_class(tasks: int) -> str:
    """Return the class of a gang of so many tasks."""
    return SIZE_CLASSES[bisect_left(LARGEST, tasks)]


def size_words(name: str) -> str:
    """Return a class in words: ``2-8 tasks``, ``over 32 tasks``."""
    if name.endswith("+"):
        return f"over {int(name[:-1]) - 1} tasks"
    return f"{name} task{'' if name == '1' else 's'}"
