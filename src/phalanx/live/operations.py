"""What people who run a scheduler see of it: metrics, logs, health, and the configuration in force."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from traceback import format_exception
from typing import TYPE_CHECKING

from msgspec import ValidationError

from phalanx.controllers.controller import RecordEvent
from phalanx.errors import ClusterError, PhalanxError, SnapshotError
from phalanx.live.app import Live
from phalanx.live.heartbeat import Heartbeat
from phalanx.live.logs import Line, log_line, log_lines, logger_of, verbosity_of
from phalanx.live.reload import ConfigSource, Reload
from phalanx.live.serving import Address, served
from phalanx.live.session_log import Narrator
from phalanx.model.task import Task
from phalanx.scheduling.cache import QuarantinedObject
from phalanx.session.decision import Decisions, Eviction
from phalanx.session.policy import Policy
from phalanx.state.snapshot import Snapshot

if TYPE_CHECKING:  # what serves takes a while to import, and is needed where something is served
    from phalanx.live.health import Health

TRACE_LEVEL, MOST_VERBOSE = 3, 5
"""From this verbosity on the trace of sessions is recorded."""


class Operations:
    """Watches over a scheduler."""

    def __init__(
        self, live: Live, *, config: ConfigSource | None, describe: Callable[[Policy], object], traced_gangs: Collection[str] = (),
        is_served: bool = True,
    ) -> None:  # fmt: skip
        """Begin to listen; `config` is the file of the configuration, if there is one, and `describe` writes one in full.

        With `traced_gangs`, only what concerns these gangs is logged of sessions. Where nothing is served nothing is measured:
        nobody could read it, and counting takes longer than some of what is counted.
        """
        self._live, self._config, self._describe = live, config, describe
        self._narrator, self._heartbeat = Narrator(traced_gangs), Heartbeat(lambda: live.clock.elapsed)
        if is_served:
            from phalanx.live.measuring import Measuring

            self.measuring = Measuring(live, config)
        self._log = logger_of("scheduler")
        level = verbosity_of(self._log)
        live.loop.trace_level = level if level >= TRACE_LEVEL else 0
        live.loop.traced_gangs = traced_gangs
        live.loop.decided.append(self._note)
        live.loop.failed.append(self._failed)
        live.cache.refused.append(self._quarantined)
        live.loop.binding.refused.append(self._refused)
        live.loop.evictor.refused.append(self._not_evicted)
        live.turned.append(self._heartbeat.beat)
        if live.election is not None:
            live.election.on_change = lambda text: log_line(self._log, Line(0, text))
        if config is not None:
            config.on_reload.append(self._reloaded)

    # --- what happens ------------------------------------------------------------------------------------------------

    def _note(self, snapshot: Snapshot, decisions: Decisions) -> None:
        cycle = self._live.loop.count
        for fault in decisions.faults.values():
            log_line(self._log, Line(MOST_VERBOSE, fault.traceback.rstrip()))
        log_lines(self._log, lambda level: self._narrator.lines(snapshot, decisions, cycle=cycle, verbosity=level))

    def _failed(self, problem: Exception) -> None:
        log_line(self._log, Line(MOST_VERBOSE, "".join(format_exception(problem)).rstrip()))

    def _quarantined(self, found: QuarantinedObject, problem: SnapshotError) -> None:
        """Log where reading failed, if that is no mistake that readers know."""
        if problem.__cause__ is not None and not isinstance(problem.__cause__, PhalanxError | ValidationError):
            log_line(self._log, Line(MOST_VERBOSE, "".join(format_exception(problem.__cause__)).rstrip()))

    def _refused(self, task: Task, problem: ClusterError, seconds: float) -> None:
        log_line(self._log, Line(0, f"a bind was refused: {problem}", {"pod": task.key, "gang": task.gang or ""}))

    def _not_evicted(self, eviction: Eviction, reason: str) -> None:
        log_line(self._log, Line(2, f"an eviction for {eviction.preemptor} was refused: {reason}", {"pod": eviction.task.key}))

    def _reloaded(self, outcome: Reload) -> None:
        self._log.log(20 if outcome.is_applied else 30, "%s", outcome.message)
        if self._config is not None and outcome.is_applied:
            self._live.loop.profile = replace(self._live.loop.profile, policy=self._config.policy)
        lease = self._live.election_object()
        if lease is not None:
            reason = "ConfigurationReloaded" if outcome.is_applied else "ConfigurationRefused"
            self._live.record(RecordEvent(lease, reason, outcome.message, is_warning=not outcome.is_applied))

    # --- what is served ----------------------------------------------------------------------------------------------

    def health(self) -> "Health":
        """Return what is answered over HTTP."""
        from phalanx.live.health import Health

        return Health(
            metrics=self.measuring.metrics.text, metrics_type=self.measuring.content_type,
            config=lambda: self._describe(self._live.loop.profile.policy),
            live={"loop": self._heartbeat.check, "sessions": self._live.loop.failures.check},
            ready={"caches": self._caches, "stopping": self._stopping},
        )  # fmt: skip

    def _caches(self) -> str | None:
        missing = [kind.resource for kind, reflector in self._live.watching.reflectors.items() if not reflector.is_synced.is_set()]
        if self._live.watching.has_synced.is_set() and not missing:
            return None
        return f"not listed yet: {', '.join(missing) or 'which kinds there are'}"

    def _stopping(self) -> str | None:
        return "shutting down" if self._live.is_stopping else None

    async def run(self, address: Address | None, is_over: asyncio.Event) -> None:
        """Run the scheduler, and serve what it says about itself, until it is over."""
        follower = asyncio.create_task(self._config.follow()) if self._config is not None else None
        try:
            if address is None:
                await self._live.run(is_over)
                return
            async with served(self.health(), address, self._log):
                await self._live.run(is_over)
        finally:
            if follower is not None:
                follower.cancel()
