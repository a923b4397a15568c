"""Controllers in virtual time: they are asked as soon as something that concerns them has changed, before the next session."""

from collections.abc import Sequence

from phalanx.controllers.controller import Controller, Key, Patient, Result, Try, Write
from phalanx.controllers.objects import controller_of
from phalanx.errors import ClusterError
from phalanx.model.kinds import Document, Kind
from phalanx.model.watch_event import WatchEvent
from phalanx.sim.virtual_time import Rank, VirtualTime
from phalanx.sim.writing import Pen
from phalanx.store.memory import MemoryStore

FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0
Question = tuple[Controller, Key]


class Controllers:
    """Asks controllers and writes what they say."""

    def __init__(self, store: MemoryStore, time: VirtualTime, controllers: Sequence[Controller], problems: list[str]) -> None:
        """Begin to listen; what controllers run into is added to `problems`, and the rest goes on."""
        self._store, self._time, self._problems = store, time, problems
        self._by_kind: dict[Kind, list[Controller]] = {}
        for controller in controllers:
            for kind in controller.watches:
                self._by_kind.setdefault(kind, []).append(controller)
        self._bringing = {(kind.api_version, kind.kind) for controller in controllers for kind in controller.brings_back}
        self._asked: dict[tuple[str, Key], Question] = {}
        self._again: dict[tuple[str, Key], float] = {}
        self._waits: dict[tuple[str, Key], float] = {}
        self.pen = Pen(store)
        store.listen(self._hear)

    def brings_back(self, pod: Document) -> bool:
        """Tell whether a controller sees to it that a pod that was lost is made anew."""
        owner = controller_of(pod)
        return owner is not None and (owner["apiVersion"], owner["kind"]) in self._bringing

    def _hear(self, event: WatchEvent) -> None:
        for controller in self._by_kind.get(event.kind, ()):
            for key in controller.concerns(self._store, event.kind, event.object):
                self._notice(controller, key)

    def _notice(self, controller: Controller, key: Key) -> None:
        if isinstance(controller, Patient):
            self._plan(controller, key, self._time.now + controller.patience_seconds)
        else:
            self._ask(controller, key)

    def _ask(self, controller: Controller, key: Key) -> None:
        if not self._asked:
            self._time.after(0, Rank.CONTROLLER, self._work)
        self._asked[controller.name, key] = (controller, key)

    def _work(self) -> None:
        questions, self._asked = self._asked, {}
        for controller, key in questions.values():
            self._look(controller, key)

    def _look(self, controller: Controller, key: Key) -> None:
        try:
            result = controller.reconcile(self._store, key)
        except Exception as problem:  # one object that a controller cannot deal with stops nobody else
            self._problems.append(f"{controller.name}, {key.namespace}/{key.name}: {type(problem).__name__}: {problem}")
            return
        self._carry_out(controller, key, result)

    def _carry_out(self, controller: Controller, key: Key, result: Result) -> None:
        place = (controller.name, key)
        try:
            self._write_all(result.writes)
        except ClusterError as problem:
            wait = self._waits[place] = min(self._waits.get(place, FIRST_WAIT / 2) * 2, LONGEST_WAIT)
            self._problems.append(f"{controller.name}, {key.namespace}/{key.name}: {problem}; tried again in {wait:g} s")
            self._plan(controller, key, self._time.now + wait)
            return
        self._waits.pop(place, None)
        if result.again is not None:
            self._plan(controller, key, result.again)

    def _plan(self, controller: Controller, key: Key, moment: float) -> None:
        """Look again at a moment, unless that is planned for an earlier one."""
        place = (controller.name, key)
        if self._again.get(place, float("inf")) > moment:
            self._again[place] = moment
            self._time.at(moment, Rank.CONTROLLER, lambda: self._wake(controller, key, moment))

    def _wake(self, controller: Controller, key: Key, moment: float) -> None:
        place = (controller.name, key)
        if self._again.get(place) == moment:
            del self._again[place]
            self._ask(controller, key)

    def _write_all(self, writes: Sequence[Write]) -> None:
        """Write one after the other, until one is refused that was only tried."""
        for write in writes:
            if not isinstance(write, Try):
                self.pen.write(write)
            elif not self._try(write):
                return

    def _try(self, trial: Try) -> bool:
        try:
            self.pen.write(trial.write)
        except ClusterError as refusal:
            self._write_all(trial.refused(str(refusal)))
            return False
        return True
