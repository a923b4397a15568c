"""What controllers have to look at, and when: each key once, however often it changed, and again when its time has come."""

import heapq
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import count

from phalanx.controllers.base import Controller, Key, Patient, View
from phalanx.model.kinds import Document, Kind, object_key

FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0
Question = tuple[Controller, Key]
Place = tuple[str, Key]


class Agenda:
    """Questions that are open."""

    def __init__(self, view: View, controllers: Iterable[Controller], *, report: Callable[[str], None]) -> None:
        """Begin with nothing to look at; `report` is told of objects that a controller cannot make sense of."""
        self._view, self._report = view, report
        self._by_kind: dict[Kind, list[Controller]] = {}
        for controller in controllers:
            for kind in controller.watches:
                self._by_kind.setdefault(kind, []).append(controller)
        self._asked: dict[Place, Question] = {}
        self._again: dict[Place, float] = {}
        self._due: list[tuple[float, int, Place, Question]] = []
        self._numbers = count()
        self._waits: dict[Place, float] = {}

    @property
    def kinds(self) -> Sequence[Kind]:
        """The kinds that somebody wants to hear of."""
        return tuple(self._by_kind)

    def hear(self, kind: Kind, document: Document) -> None:
        """Note what an object that changed or has gone concerns."""
        for controller in self._by_kind.get(kind, ()):
            try:
                for key in controller.concerns(self._view, kind, document):
                    self._ask(controller, key)
            except Exception as problem:  # an object that one controller stumbles over stops no other
                place = f"{controller.name}, {kind.resource} {object_key(document)}"
                self._report(f"{place}: set aside, please report it: {type(problem).__name__}: {problem}")

    def _ask(self, controller: Controller, key: Key) -> None:
        if isinstance(controller, Patient):
            self.plan((controller, key), self._view.now + controller.patience_seconds)
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
        return self._view.now if self._asked else self._due[0][0] if self._due else None

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
