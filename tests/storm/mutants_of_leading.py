"""Planted bugs of the election, the fence, and what must not outlive a term."""

from typing import Any

import pytest

from phalanx.live import outbox
from phalanx.live.app import Live
from phalanx.live.election import Election
from phalanx.live.outbox import Outbox
from phalanx.live.watching import Watching
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.loop import SessionLoop
from phalanx.scheduling.pod_conditions import PodConditions
from phalanx.scheduling.status_writer import StatusWriter
from tests.storm.mutants import planted

OFF_DUTY = ("freeze", "lease", "take lease", "cut off")


@planted("V2: lease ignored", breaks=("wrote without the lease", "over-commitment"), needs=OFF_DUTY)
def _lease_ignored(patch: pytest.MonkeyPatch) -> None:
    """A leader sends what it has, whether its lease has run out or not."""
    connect = Live._connect

    def unfenced(self: Live) -> None:
        connect(self)
        self.client.may_write = lambda: True

    patch.setattr(Live, "_connect", unfenced)


@planted("sessions without the lease", breaks=("wrote without the lease", "two lead"), needs=OFF_DUTY)
def _never_ends(patch: pytest.MonkeyPatch) -> None:
    """A leader that could not renew its lease goes on as if it had."""
    patch.setattr(Election, "_left", property(lambda self: 10.0 if self._renewed > 0.0 else -1.0))


@planted("two leaders", breaks=("two lead", "wrote without the lease"))
def _two_leaders(patch: pytest.MonkeyPatch) -> None:
    """Whoever looks at the lease takes it, although its holder is alive."""
    patch.setattr(Election, "_has_run_out", lambda self, spec: True)


@planted("V3: catch up skipped", breaks=("over-commitment", "queue limit"), needs=("silent", "deaf heir", "blind heir"))
def _catch_up_skipped(patch: pytest.MonkeyPatch) -> None:
    """A new leader decides on what its watches have brought, though one of them may be silent."""

    async def synced(self: Watching, *, has_others: bool = True) -> None:
        await self.has_synced.wait()

    patch.setattr(Watching, "catch_up", synced)


@planted("assumptions outlive a term", breaks=("could start", "over-commitment", "half-started"), needs=OFF_DUTY)
def _assumptions_outlive(patch: pytest.MonkeyPatch) -> None:
    """Pods that were assumed on nodes when a term ended are there for ever."""
    patch.setattr(SchedulerCache, "forget_all", lambda self, find: None)


@planted("outbox outlives a term", breaks=("wrote for a past term", "over-commitment"), needs=OFF_DUTY)
def _outbox_outlives(patch: pytest.MonkeyPatch) -> None:
    """What was not sent when a term ended stays in the queue, and nobody hears of it."""
    patch.setattr(Outbox, "drop", lambda self: None)


@planted("statuses outlive a term", breaks="untrue status", needs=OFF_DUTY, is_rare=True)
def _statuses_outlive(patch: pytest.MonkeyPatch) -> None:
    """A leader goes by what it wrote in its last term, whoever has written since, and does not look."""
    patch.setattr(StatusWriter, "forget", lambda self: None)
    patch.setattr(StatusWriter, "noticed", lambda self, event: False)


@planted("V4: conditions outlive a term", breaks="no reason", needs=OFF_DUTY)
def _conditions_outlive(patch: pytest.MonkeyPatch) -> None:
    """Conditions that were dropped with the outbox count as written in the next term."""
    start = SessionLoop.start

    def started(self: SessionLoop) -> None:
        kept: dict[str, PodConditions] = dict(self._conditions)
        start(self)
        self._conditions.update(kept)

    patch.setattr(SessionLoop, "start", started)
    patch.setattr(PodConditions, "answered", _ignored)


def _ignored(*_: Any) -> bool:
    return False


@planted(
    "what failed before the lease was lost counts as refused",
    breaks="killed a healthy gang",
    needs=("strand", *OFF_DUTY),
    is_rare=True,
)
def _failures_refuse(patch: pytest.MonkeyPatch) -> None:
    """A bind that the server could not take just now is taken for refused where it may not be sent again."""
    patch.setattr(outbox, "_dropped", lambda problem: problem)
