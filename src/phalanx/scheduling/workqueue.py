"""What controllers have to look at, and when: each key once, however often it changed, and again when its time has come."""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from itertools import count

from phalanx.controllers.controller import Controller, Key, Patient, View
from phalanx.model.kinds import Document, Kind, object_key

FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0
Question = tuple[Controller, Key]
Place = tuple[str, Key]


class WorkQueue:
    """Keys to reconcile, each once, with back-off for those that failed."""

    def __init__(self, view: View, controllers: Iterable[Controller], *, report: Callable[[str], None]) -> None:
        """`report` is called for objects that a controller cannot make sense of."""
        self._view, self._report = view, report
        self._by_kind: dict[Kind, list[tuple[Controller, float]]] = {}
        """Controllers, each with its patience."""
        for controller in controllers:
            patience = controller.patience_seconds if isinstance(controller, Patient) else 0.0
            for kind in controller.watches:
                self._by_kind.setdefault(kind, []).append((controller, patience))
        self._changed: OrderedDict[tuple[Kind, str], Document] = OrderedDict()
        """Objects that have changed since somebody looked, by kind and uid, as they were last."""
        self._ready: OrderedDict[Place, Question] = OrderedDict()
        self._moments: dict[Place, float] = {}
        self._due: list[tuple[float, int, Place, Question]] = []
        self._numbers = count()
        self._waits: dict[Place, tuple[float, float]] = {}
        """How long keys wait that were refused, and until when."""

    def notice(self, kind: Kind, document: Document) -> bool:
        """Note an object that changed or has gone; tell whether somebody watches it. What it concerns is found out later."""
        if kind not in self._by_kind:
            return False
        self._changed[kind, str(document["metadata"].get("uid", ""))] = document
        return True

    def sort_one(self) -> bool:
        """Find out what one of the changed objects concerns; tell whether there was one."""
        if not self._changed:
            return False
        (kind, _), document = self._changed.popitem(last=False)
        for controller, patience in self._by_kind[kind]:
            try:
                for key in controller.concerns(self._view, kind, document):
                    self._add(controller, key, patience)
            except Exception as problem:  # an object that one controller stumbles over stops no other
                place = f"{controller.name}, {kind.resource} {object_key(document)}"
                self._report(f"{place}: left out, please report it: {type(problem).__name__}: {problem}")
        return True

    def _add(self, controller: Controller, key: Key, patience: float) -> None:
        if patience:
            self.add_at((controller, key), self._view.now + patience)
        else:
            self._ready[controller.name, key] = (controller, key)

    def add_at(self, question: Question, moment: float) -> None:
        """Look at something at a moment, unless that is planned for an earlier one."""
        place = _place(question)
        if self._moments.get(place, float("inf")) > moment:
            self._moments[place] = moment
            heapq.heappush(self._due, (moment, next(self._numbers), place, question))

    def get(self, busy: Container[Place]) -> Question | None:
        """Return something to look at now that nobody is busy with; None when there is nothing."""
        self._ready_due(self._view.now)
        place = next((place for place in self._ready if place not in busy), None)
        return None if place is None else self._ready.pop(place)

    def _ready_due(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            moment, _, place, question = heapq.heappop(self._due)
            if self._moments.get(place) == moment:
                del self._moments[place]
                self._ready[place] = question

    def ready(self) -> int:
        """Return how many keys there are to look at now."""
        self._ready_due(self._view.now)
        return len(self._ready)

    def next_time(self, busy: Container[Place] = ()) -> float | None:
        """Return the moment at which there is something to look at that nobody is busy with; None when nothing is planned."""
        if self._changed or any(place not in busy for place in self._ready):
            return self._view.now
        while self._due and self._moments.get(self._due[0][2]) != self._due[0][0]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    @property
    def is_only_retrying(self) -> bool:
        """Tell whether all that is planned was refused before, so that nothing comes of it unless something changes."""
        return not self._changed and all(place in self._waits for place in (*self._ready, *self._moments))

    def done(self, question: Question, again: float | None) -> None:
        """All was written; look again at a moment, if one is named."""
        self._waits.pop(_place(question), None)
        if again is not None:
            self.add_at(question, again)

    def retry(self, question: Question, *, at_least: float = 0.0) -> float:
        """Something was refused: look again after a while, or as the server asks; return the seconds.

        A wait that was over is followed by one twice as long. Whoever was asked earlier, because something changed, waits on: many
        changes in a row say nothing about how long it will be refused.
        """
        place, now = _place(question), self._view.now
        wait, until = self._waits.get(place, (FIRST_WAIT / 2, now))
        if now >= until:
            wait = min(wait * 2, LONGEST_WAIT)
            until = now + wait
        until = min(until, now + wait)  # where the clock was set back
        self._waits[place] = wait, until
        moment = max(until, now + at_least)
        self.add_at(question, moment)
        return moment - now


def _place(question: Question) -> Place:
    return question[0].name, question[1]
