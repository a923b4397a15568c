"""A gang whose binds failed waits before it is tried again, longer after every failure, and goes to other nodes then if it can.

Without this a gang that nobody lets in, because an admission policy or a node refuses it, wins the same room in every session and
starves all who would fit. The pods that were refused remember it, and so does their group: whoever makes pods anew makes them
without a memory.
"""

import math
from collections.abc import Sequence

import numpy as np

from phalanx.errors import ConfigError
from phalanx.model.task import FailedBind, GangKey
from phalanx.placement import Index, Mask
from phalanx.session.arguments import Arguments
from phalanx.session.decision import Decisions
from phalanx.session.node_answers import Layer
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import YES, Verdict

BACKOFF = "BindBackoff"
MOST_DOUBLINGS = 62
"""More make any wait longer than the longest one."""


class BindBackoffPlugin:
    """Lets a gang wait after a bind that failed, twice as long each time, and keeps it from the nodes that refused it."""

    name = "bindbackoff"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings."""
        settings = Arguments(self.name, policy.arguments)
        self._first = settings.seconds("first", "1s") or 0.0
        self._longest = settings.seconds("longest", "5m") or 0.0
        settings.done()
        if self._longest < self._first:
            raise ConfigError(f"plugin {self.name!r}, argument 'longest': shorter than 'first'; write at least as much")

    def open(self, session: Session) -> None:
        """Gather what is known of failures, by gang."""
        self._by_gang: dict[GangKey, list[tuple[FailedBind, ...]]] = {}
        for task in session.snapshot.refused.values():
            if task.gang is not None:
                self._by_gang.setdefault(task.gang, []).append(task.failed_binds)
        for key in session.snapshot.refused_gangs & session.snapshot.gangs.keys():
            self._by_gang.setdefault(key, []).append(session.snapshot.gangs[key].failed_binds)

    def gang_valid(self, session: Session, gang: GangState) -> Verdict:
        """Refuse a gang while it has to wait."""
        failures = self._by_gang.get(gang.gang.key)
        if failures is None:
            return YES
        attempts = max(sum(each.attempts for each in binds) for binds in failures)
        worst = max((each for binds in failures for each in binds), key=lambda each: (each.latest, each.attempts, each.node))
        left = worst.latest + self._wait(attempts) - session.now
        if left <= 0:
            return YES
        session.decisions.look_again(session.now + left)
        times = "once" if worst.attempts == 1 else f"{worst.attempts} times"
        message = f"bind to {worst.node} failed {times}, tried again in {math.ceil(left)} s"
        return Verdict.refuse(self.name, BACKOFF, message, node=worst.node, attempts=attempts, seconds=left)

    def _wait(self, attempts: int) -> float:
        return min(self._first * 2.0 ** min(attempts - 1, MOST_DOUBLINGS), self._longest)

    def avoided_nodes(self, session: Session, gang: GangState) -> Mask | None:
        """Name the nodes that refused the gang."""
        failures = self._by_gang.get(gang.gang.key)
        if failures is None:
            return None
        names = {each.node for binds in failures for each in binds}
        numbers = [number for name in names if (number := session.snapshot.nodes.number_by_name.get(name)) is not None]
        mask = np.zeros(len(session.snapshot.nodes), dtype=np.bool_)
        mask[numbers] = True
        return mask

    def task_screen(self, session: Session, task: TaskState, nodes: Index | slice) -> Sequence[Layer] | None:
        """Leave out the nodes that refused the gang, as long as others are left: its tasks may not all have a place elsewhere."""
        avoided = self.avoided_nodes(session, task.gang)
        if avoided is None:
            return None
        refused = avoided[nodes].copy()
        if refused.all():
            refused[:] = False
        return [Layer(refused, "node(s) refused the bind before")]


def shortest_wait(decisions: Decisions) -> float:
    """Return after how many seconds the first gang may be tried again that waits because binds of it failed."""
    verdicts = (verdict for outcome in decisions.outcomes for verdict in outcome.state.verdicts if verdict.reason == BACKOFF)
    return min((float(verdict.numbers["seconds"]) for verdict in verdicts), default=math.inf)
