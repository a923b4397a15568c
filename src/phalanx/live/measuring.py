"""What happens in a scheduler, counted: listens to sessions, binds, evictions and watches, and keeps the metrics of them."""

from collections import Counter

from phalanx.errors import ClusterError, Conflict
from phalanx.live.app import Live
from phalanx.live.metrics import CONTENT_TYPE, Metrics
from phalanx.live.reload import ConfigSource, Reload
from phalanx.model.kinds import Kind
from phalanx.model.task import Task
from phalanx.scheduling.timing import Times
from phalanx.session.decision import Decisions, Eviction
from phalanx.state.snapshot import Snapshot


class Measuring:
    """Keeps the metrics of one scheduler."""

    content_type = CONTENT_TYPE

    def __init__(self, live: Live, config: ConfigSource | None) -> None:
        """Begin to listen; `config` is the file of the configuration, if there is one."""
        self._live, self.metrics = live, Metrics(lambda: live.clock.now)
        live.loop.decided.append(self._note)
        live.loop.timed.append(self._time)
        live.loop.binding.bound.append(self._bound)
        live.loop.binding.refused.append(self._refused)
        live.loop.evictor.evicted.append(self._evicted)
        live.watching.on_event = self._watched
        live.turned.append(self._turn)
        self.metrics.configured()
        if config is not None:
            config.on_reload.append(self._reloaded)

    def _note(self, snapshot: Snapshot, decisions: Decisions) -> None:
        self.metrics.note(snapshot, decisions)

    def _time(self, seconds: float, snapshot_seconds: float, times: Times) -> None:
        self.metrics.session_held(seconds, snapshot_seconds=snapshot_seconds, times=times)

    def _bound(self, task: Task, node: str, seconds: float) -> None:
        self.metrics.bind_ended(task.key, "bound", seconds=seconds)

    def _refused(self, task: Task, problem: ClusterError, seconds: float) -> None:
        self.metrics.bind_ended(task.key, "conflict" if isinstance(problem, Conflict) else "failed", seconds=seconds)

    def _evicted(self, eviction: Eviction) -> None:
        self.metrics.evicted(eviction.action)

    def _watched(self, kind: Kind, type_: str) -> None:
        self.metrics.watch_event(kind.resource, type_)

    def _turn(self) -> None:
        self.metrics.quarantined(Counter(found.kind.resource for found in self._live.cache.quarantined.values()))
        self.metrics.leads(self._live.is_leader)

    def _reloaded(self, outcome: Reload) -> None:
        self.metrics.config_reloaded(outcome.is_applied)
