"""Why a running gang gives nothing to another one: what an action says of a task, and the verdicts on gangs that are made of it.

The message of a verdict follows the name of the gang: ``is not preemptable``. Actions and plugins refuse victims for the same few
reasons; here are those that more than one of them gives.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

from phalanx.model.gang import Gang
from phalanx.session.amounts import figure_text
from phalanx.state.verdict import Verdict


class Spared(Enum):
    """Why an action leaves a running task alone before plugins are asked: the code of verdicts, and two texts."""

    NOT_PREEMPTABLE = "NotPreemptable", "not preemptable", "is not preemptable"
    NOT_RUNNING = "NotRunning", "not running yet", "does not run yet"
    NOT_LOWER = "NotLowerPriority", "not of lower priority", "has no lower priority"
    KEEPS_ALL = "QueueWithinShare", "of a queue that has no more than it keeps", "is in a queue that has no more than it keeps"
    NOT_RECLAIMABLE = "QueueNotReclaimable", "of a queue that is not reclaimable", "is in a queue that is not reclaimable"
    SAME_QUEUE = "SameQueue", "of the same queue", "is in the same queue"
    OTHER_QUEUE = "OtherQueue", "of another queue", "is in another queue"
    TOO_YOUNG = "MinimumRuntime", "too young", "has not run for its minimum runtime"
    SAME_GANG = "Protected", "of the same gang", "is of the same gang"
    OTHER_GANG = "Protected", "of another gang", "is of another gang"
    HAS_REQUESTS = "Protected", "with requests, for a task without", "is with requests, for a task without"
    ENOUGH_MOVED = "Protected", "one too many", "stays, since maxConsolidationPreemptees jobs are moved already"

    def __init__(self, code: str, of_tasks: str, of_gang: str) -> None:
        """Keep the texts: what follows a number of tasks, and what follows the name of a gang."""
        self.code, self.of_tasks, self.of_gang = code, of_tasks, of_gang

    def verdict(self, source: str, its: Gang, mine: Gang) -> Verdict:
        """Return why a gang gives nothing to mine, with what is known of the two."""
        match self:
            case Spared.NOT_LOWER:
                return not_lower(source, its.priority, mine.priority)
            case Spared.NOT_RECLAIMABLE:
                return Verdict.refuse(source, self.code, f"is in queue {its.queue}, which is not reclaimable", queue=its.queue)
            case Spared.OTHER_QUEUE | Spared.SAME_QUEUE:
                return Verdict.refuse(source, self.code, f"{self.of_gang}, {its.queue}", queue=its.queue)
        return Verdict.refuse(source, self.code, self.of_gang)


def not_lower(source: str, its: int, mine: int) -> Verdict:
    """Say that the priority of a victim is not lower than that of the preemptor."""
    return Verdict.refuse(source, Spared.NOT_LOWER.code, f"has priority {its}, not lower than {mine}", priority=its, preemptor=mine)


def queue_keeps(source: str, queue: str, figures: Mapping[str, Mapping[str, float]], wanted: Iterable[str]) -> Verdict:
    """Say that a queue has nothing beyond what it deserves of what is wanted, by the figures with which the session began."""
    held, deserved = figures.get("allocated", {}), figures.get("deserved", {})
    name = max((name for name in wanted if deserved.get(name)), key=lambda name: held.get(name, 0.0) / deserved[name], default=None)
    if name is None:
        return Verdict.refuse(
            source, Spared.KEEPS_ALL.code, f"is in queue {queue}, which has no more than it deserves", queue=queue
        )
    has, due = (figure_text(name, amounts.get(name, 0.0)) for amounts in (held, deserved))
    text = f"is in queue {queue}, which has {has} of the {due} {name} that it deserves"
    numbers = {"allocated": held.get(name, 0.0), "deserved": deserved[name]}
    return Verdict.refuse(source, Spared.KEEPS_ALL.code, text, queue=queue, resource=name, **numbers)
