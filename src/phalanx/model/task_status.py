"""What state a task is in, and which states count for what. Every count of a gang's members is built from these sets.

A place that lists statuses by itself is where counts begin to disagree; a new question gets a new set here.
"""

from enum import IntEnum


class Status(IntEnum):
    """The state of a task, as the session sees it."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9

    @property
    def word(self) -> str:
        """The name users see."""
        return self.name.capitalize()


HOLDING = (Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING)
"""Has a node and uses its resources."""

READY = (*HOLDING, Status.SUCCEEDED)
"""Counts towards the minimum of a gang."""

VALID = (*READY, Status.PIPELINED, Status.PENDING)
"""Could still make the gang whole."""

SCHEDULED = (Status.RUNNING, Status.BOUND, Status.FAILED, Status.SUCCEEDED)
"""Was given a node in an earlier session."""

COMPLETED = (Status.FAILED, Status.SUCCEEDED)
"""Has ended; holds nothing."""

EVICTABLE = (Status.BOUND, Status.RUNNING)
"""May be evicted for another task."""

ON_NODE = frozenset({Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING, Status.RELEASING})
"""Takes room in a node's books when the session opens."""

ENDED = ("Succeeded", "Failed")
"""Phases of pods that do not run any more."""
