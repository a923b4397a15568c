"""A cluster that is recorded without a scheduler of ours in it: what sessions would read is watched, nothing is written."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from phalanx.dialects.cluster import ObjectCluster, kinds_read
from phalanx.live.clock import LoopClock
from phalanx.live.watching import Watching
from phalanx.model.kinds import NODE, POD
from phalanx.recording.entries import Config
from phalanx.recording.log_writer import Bounds, LogWriter
from phalanx.recording.recorder import Recorded, Recorder
from phalanx.scheduling.cache import SchedulerCache
from phalanx.store.api_client import ApiClient
from phalanx.store.kube.mirror import Mirror

BETWEEN_TURNS_SECONDS = 2.0
NEEDED = frozenset({POD, NODE})
"""Whoever may not read these sees nothing; without any other kind there is still something to see."""


class Observer:
    """Watches a cluster and records what it hears."""

    def __init__(
        self, client: ApiClient, schedulers: frozenset[str], config: Config, *, report: Callable[[str], None],
        clock: LoopClock | None = None,
    ) -> None:  # fmt: skip
        """Write nothing to the cluster; `schedulers` and `config` are those that a replay would decide with."""
        client.may_write = lambda: False
        self.clock, self._config, self._report = clock or LoopClock(), config, report
        self._schedulers = schedulers
        client.heard = self.clock.hear
        self.mirror = Mirror(lambda: self.clock.now)
        self.watching = Watching(client, self.mirror, kinds_read(), report=report)
        self.begun: Callable[[LogWriter], None] = lambda writer: None
        """Called with whoever writes, once everything is listed."""
        self.watching.hideable = frozenset(kinds_read()) - NEEDED

    async def run(self, folder: Path, bounds: Bounds, is_over: asyncio.Event, *, turned: Callable[[int], None]) -> None:
        """Record until it is over; `turned` is called now and then with how many changes could not be recorded so far."""
        cache = SchedulerCache(ObjectCluster(schedulers=self._schedulers), report=self._report)
        watching, end = asyncio.create_task(self.watching.run()), asyncio.create_task(is_over.wait())
        synced = asyncio.create_task(self.watching.has_synced.wait())
        await asyncio.wait({watching, end, synced}, return_when=asyncio.FIRST_COMPLETED)
        writer = LogWriter(folder, bounds, report=self._report)
        self.begun(writer)
        recorded = Recorded("record", cache, self.mirror.everything, lambda: self.clock.now, hidden=self._hidden)
        recorder = Recorder(recorded, writer, self._config)
        self.mirror.listen(recorder.noticed)
        try:
            while not end.done() and not watching.done():
                recorder.turn()
                turned(writer.dropped)
                await asyncio.wait({watching, end}, timeout=BETWEEN_TURNS_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (watching, end, synced):
                task.cancel()
            await asyncio.wait({watching, end, synced})
            recorder.close()
        if not watching.cancelled() and (problem := watching.exception()) is not None:
            raise problem

    def _hidden(self) -> list[str]:
        return sorted(kind.resource for kind in self.mirror.hidden)
