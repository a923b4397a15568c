"""What controllers have to look at, and when: each key once, however often it changed, and again when its time has come."""

import heapq
from collections.abc import Callable, Container, Iterable
from itertools import count

from phalanx.controllers.controller import Controller, Key, Patient, View
from phalanx.model.kinds import Document, Kind, object_key

FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0
Question = tuple[Controller, Key]
Place = tuple[str, Key]


class Agenda:
    """Questions that are open."""

    def __init__(self, view: View, controllers: Iterable[Controller], *, report: Callable[[str], None]) -> None:
        """Begin with nothing to look at; `report` is told of objects that a controller cannot make sense of."""
        self._view, self._report = view, report
        self._by_kind: dict[Kind, list[tuple[Controller, float]]] = {}
        """Controllers, each with its patience."""
        for controller in controllers:
            patience = controller.patience_seconds if isinstance(controller, Patient) else 0.0
            for kind in controller.watches:
                self._by_kind.setdefault(kind, []).append((controller, patience))
        self._changed: dict[tuple[Kind, str], Document] = {}
        """Objects that have changed since somebody looked, by kind and uid, as they were last."""
        self._asked: dict[Place, Question] = {}
        self._again: dict[Place, float] = {}
        self._due: list[tuple[float, int, Place, Question]] = []
        self._numbers = count()
        self._waits: dict[Place, float] = {}

    def hear(self, kind: Kind, document: Document) -> None:
        """Note an object that changed or has gone; what it concerns is found out when there is time for it."""
        if kind in self._by_kind:
            self._changed[kind, str(document["metadata"].get("uid", ""))] = document

    def sort(self) -> bool:
        """Find out what one of the changed objects concerns; tell whether there was one."""
        if not self._changed:
            return False
        (kind, _), document = self._changed.popitem()
        for controller, patience in self._by_kind[kind]:
            try:
                for key in controller.concerns(self._view, kind, document):
                    self._ask(controller, key, patience)
            except Exception as problem:  # an object that one controller stumbles over stops no other
                place = f"{controller.name}, {kind.resource} {object_key(document)}"
                self._report(f"{place}: set aside, please report it: {type(problem).__name__}: {problem}")
        return True

    def _ask(self, controller: Controller, key: Key, patience: float) -> None:
        if patience:
            self.plan((controller, key), self._view.now + patience)
        else:
            self._asked[controller.name, key] = (controller, key)

    def plan(self, question: Question, moment: float) -> None:
        """Look at something at a moment, unless that is planned for an earlier one."""
        place = _place(question)
        if self._again.get(place, float("inf")) > moment:
            self._again[place] = moment
            heapq.heappush(self._due, (moment, next(self._numbers), place, question))

    def take(self, busy: Container[Place]) -> Question | None:
        """Return something to look at now that nobody is busy with; None when there is nothing."""
        self._wake(self._view.now)
        place = next((place for place in self._asked if place not in busy), None)
        return None if place is None else self._asked.pop(place)

    def _wake(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            moment, _, place, question = heapq.heappop(self._due)
            if self._again.get(place) == moment:
                del self._again[place]
                self._asked[place] = question

    def next_time(self) -> float | None:
        """Return when something is due, if nothing changes before."""
        return self._view.now if self._asked or self._changed else self._due[0][0] if self._due else None

    def settle(self, question: Question, again: float | None) -> None:
        """All was written; look again at a moment, if one is named."""
        self._waits.pop(_place(question), None)
        if again is not None:
            self.plan(question, again)

    def postpone(self, question: Question) -> float:
        """Something was refused: look again after a while, twice as long each time; return the seconds."""
        place = _place(question)
        wait = self._waits[place] = min(self._waits.get(place, FIRST_WAIT / 2) * 2, LONGEST_WAIT)
        self.plan(question, self._view.now + wait)
        return wait


def _place(question: Question) -> Place:
    return question[0].name, question[1]
