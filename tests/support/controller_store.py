"""Controllers on a store of their own, in virtual time, for tests.

stage = Stage(QueueController())
stage.make(build.queue("research"))
stage.run(1)
assert stage.unsettled() == []
"""

from typing import Any

from phalanx.controllers.controller import Controller, Key, Patient, RecordEvent, Write
from phalanx.model.kinds import Document, Kind
from phalanx.scheduling.controllers import ControllerRunner
from phalanx.sim.store_port import StorePort
from phalanx.sim.virtual_time import Precedence, VirtualTime
from phalanx.store.memory import MemoryStore

START = 1_767_225_600.0
"""The first of January 2026, in UTC."""


class Stage:
    """A store, its time, and some controllers."""

    def __init__(self, *controllers: Controller, start: float = START) -> None:
        """Begin with an empty cluster."""
        self.time, self.start, self._asked = VirtualTime(start), start, controllers
        self.store = MemoryStore(lambda: self.time.now)
        self.problems: list[str] = []
        self.told: list[RecordEvent] = []
        port = StorePort(self.store, self.time, Precedence.CONTROLLER)
        port.recorded.append(self.told.append)
        runner = ControllerRunner(port, controllers, report=self.problems.append)
        self.store.listen(lambda event: runner.notice(event.kind, event.object))
        runner.start()

    def make(self, *documents: Document) -> Document:
        """Load objects as they are; return the last."""
        return [self.store.load(document) for document in documents][-1]

    def set_status(self, kind: Kind, name: str, status: Document, *, namespace: str = "default") -> None:
        """Write a status, as another controller would."""
        self.store.patch(kind, namespace if kind.is_namespaced else "", name, {"status": status}, is_status=True)

    def run(self, seconds: float) -> None:
        """Let time pass until so many seconds after the start."""
        self.time.advance(self.start + seconds)

    def names(self, kind: Kind) -> list[str]:
        """Return the names of the objects of a kind."""
        return [item["metadata"]["name"] for item in self.store.items(kind)]

    def find(self, kind: Kind, name: str, *, namespace: str = "default") -> dict[str, Any]:
        """Return an object that must be there."""
        return dict(self.store.get(kind, namespace if kind.is_namespaced else "", name))

    def unsettled(self) -> list[Write]:
        """Return what controllers would write if they were asked once more about everything; nothing, if they are done."""
        return [write for controller in self._asked for key in self._keys(controller) for write in self._writes(controller, key)]

    def _keys(self, controller: Controller) -> list[Key]:
        found = {
            key: None
            for kind in controller.watches for document in self.store.items(kind)
            for key in controller.concerns(self.store, kind, document)
        }  # fmt: skip
        return [*found, *([Key("", "")] if isinstance(controller, Patient) else [])]

    def _writes(self, controller: Controller, key: Key) -> list[Write]:
        return list(controller.reconcile(self.store, key).writes)
