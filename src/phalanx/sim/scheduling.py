"""Sessions in virtual time: one after every change, with a gap between them, and what they decide is carried out on the store."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random

from phalanx.controllers.controller import Write
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import ClusterError
from phalanx.model.kinds import POD, Document, split_key
from phalanx.model.status import Status
from phalanx.plugins.bindbackoff import shortest_wait
from phalanx.scheduling.bind_requests import request_writes
from phalanx.scheduling.status import StatusWriter
from phalanx.session.cycle import Decider, Profile, run_cycle
from phalanx.session.decision import Decisions, Eviction
from phalanx.session.shards import seen_by
from phalanx.sim.settings import Settings
from phalanx.sim.unschedulable import ParkingLot
from phalanx.sim.virtual_time import Rank, Timer, VirtualTime
from phalanx.sim.writing import Pen
from phalanx.state.gang_state import TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.store.memory import MemoryStore


class Scheduling:
    """Runs sessions on a cluster and carries them out."""

    def __init__(
        self, cluster: ObjectCluster, store: MemoryStore, time: VirtualTime, profile: Profile, settings: Settings, chance: Random
    ) -> None:
        """Decide nothing before the first change."""
        self._cluster, self._store, self._time = cluster, store, time
        self._mind, self._settings, self._chance = profile, settings, chance
        self._statuses = StatusWriter(store)
        self.pen = Pen(store)
        # In the family kai shares are counted over all gangs of a session.
        is_parkable = settings.parks_up_to > 0 and profile.policy.family != "kai"
        self._parking = ParkingLot(settings.parks_up_to) if is_parkable else None
        self._planned: Timer | None = None
        self._last = -1e18
        self._is_writing = False
        self._decider = Decider()
        self.sessions = 0
        self.evicting: list[Callable[[Eviction], None]] = []
        """Told of every pod that has to go, before it does; a budget may still say no."""
        self.evicted: list[Callable[[Eviction], None]] = []
        """Told of every pod that was told to go."""
        self.decided: list[Callable[[Snapshot, Decisions], None]] = []
        """Told of every session."""

    def wake(self, *, later: float = 0.0) -> None:
        """Something has changed: decide soon, or a while later."""
        if not self._is_writing:
            self._plan(max(self._time.now + later, self._last + self._settings.period))

    def _plan(self, moment: float) -> None:
        if self._planned is not None and self._planned.action is not None:
            if self._planned.moment <= moment:
                return
            self._planned.cancel()
        self._planned = self._time.at(moment, Rank.SESSION, self._decide)

    def _decide(self) -> None:
        self._planned, self._last = None, self._time.now
        if self._parking is not None and not self._mind.policy.moves_running and not self._cluster.state.has_active():
            return
        self.sessions += 1
        snapshot = seen_by(self._mind.policy, self._cluster.snapshot(self._time.now))
        if self._parking is not None:
            snapshot = self._parking.without_parked(snapshot)
        decisions = self._decider.decide(snapshot, self._mind.policy, self._mind.catalogue)
        if self._parking is not None:
            self._parking.park(snapshot, decisions)
        for listener in self.decided:
            listener(snapshot, decisions)
        self._is_writing = True
        try:
            has_changed = self._carry_out(snapshot, decisions)
        finally:
            self._is_writing = False
        if has_changed:
            self.wake()
        if decisions.again is not None:
            self._plan(max(decisions.again, self._time.now + self._settings.period))
        if any(_is_waiting(outcome.state.tasks) for outcome in decisions.outcomes) or self._may_move(snapshot):
            self._plan(self._time.now + min(self._settings.heartbeat, shortest_wait(decisions)))
        elif self._parking is not None and (moment := self._parking.next_time()) is not None:
            self._plan(max(moment, self._time.now + self._settings.heartbeat))

    def _may_move(self, snapshot: Snapshot) -> bool:
        """Tell whether somebody who runs may have to go elsewhere as time passes."""
        members = (task for key in snapshot.gangs for task in snapshot.members_of(key).values())
        return self._mind.policy.moves_running and any(task.status is Status.RUNNING for task in members)

    def _carry_out(self, snapshot: Snapshot, decisions: Decisions) -> bool:
        """Write what was decided; tell whether a group was admitted, which the next session builds on."""
        for eviction in decisions.evictions.values():
            self._evict(eviction)
        for write in self._statuses.writes(snapshot, decisions):
            self._write(write)
        for write in request_writes(snapshot, decisions) if self._settings.has_binder else ():
            self._write(write)
        for key, node in decisions.binds.items() if not self._settings.has_binder else ():
            self._start_binding(key, node, decisions.annotations.get(key))
        return self._statuses.has_admitted

    def _write(self, write: Write) -> None:
        with suppress(ClusterError):  # gone or asked for meanwhile: the next session sees what is there
            self.pen.write(write)

    def _start_binding(self, key: str, node: str, annotations: Mapping[str, str] | None) -> None:
        """Bind a pod now or after a while, in which sessions see it where it will be."""
        pod, delay = self._store.find(POD, *_parts(key)), self._settings.delays.bind.draw(self._chance)
        if pod is None:
            return
        if delay:
            self._cluster.put({**pod, "spec": {**pod["spec"], "nodeName": node}})
            self._time.after(delay, Rank.KUBELET, lambda: self._bind(pod, node, annotations))
        else:
            self._bind(pod, node, annotations)

    def _evict(self, eviction: Eviction) -> None:
        for listener in self.evicting:
            listener(eviction)
        task = eviction.task
        try:
            self._store.evict(task.namespace, task.name, uid=task.uid)
        except ClusterError:
            return  # gone already, or a budget says no: the next session sees what is there
        for listener in self.evicted:
            listener(eviction)

    def _bind(self, pod: Document, node: str, annotations: Mapping[str, str] | None) -> None:
        meta = pod["metadata"]
        try:
            self._store.bind(meta["namespace"], meta["name"], node, uid=meta["uid"], annotations=annotations)
        except ClusterError:  # deleted, gated or refused meanwhile: the next session sees what is there
            found = self._store.find(POD, meta["namespace"], meta["name"])
            if found is not None:
                self._cluster.put(found)
                self._plan(self._time.now + self._settings.period)

    def look(self) -> tuple[Snapshot, Decisions]:
        """Return what a session would decide now; nothing is carried out."""
        snapshot = self._cluster.snapshot(self._time.now)
        return snapshot, run_cycle(snapshot, self._mind.policy, self._mind.catalogue)


def _parts(key: str) -> tuple[str, str]:
    namespace, name = split_key(key)
    return namespace, name


def _is_waiting(tasks: list[TaskState]) -> bool:
    return any(task.status is Status.PENDING or task.status is Status.PIPELINED for task in tasks)
