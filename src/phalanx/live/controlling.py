"""Controllers on a real cluster: asked when something that concerns them has changed, about several keys at once."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from phalanx.controllers.controller import Result, View
from phalanx.errors import ClusterError
from phalanx.live.writing import Writer
from phalanx.scheduling.workqueue import Agenda, Place, Question

WORKERS = 16
SLICE_SECONDS = 0.01
"""For so long controllers may think before sessions and answers have their turn."""
LONGEST_YIELD_SECONDS = 2.0
"""For so long they wait at a time while pods are being bound."""


class Controlling:
    """Asks controllers and sends what they say."""

    def __init__(
        self, view: View, agenda: Agenda, writer: Writer, *, is_busy: Callable[[], bool], report: Callable[[str], None]
    ) -> None:
        """Ask nobody yet; `is_busy` tells whether something goes first, `report` is told what goes wrong."""
        self._view, self._agenda, self._writer, self._is_busy, self._report = view, agenda, writer, is_busy, report
        self._busy: dict[Place, asyncio.Task[None]] = {}
        self._bell = asyncio.Event()

    def wake(self) -> None:
        """Something has changed."""
        self._bell.set()

    async def run(self) -> None:
        """Work until cancelled; what is being written then is cut off, and done anew by whoever comes next."""
        try:
            while True:
                self._bell.clear()
                await self._work()
                await self._rest()
        finally:
            for task in self._busy.values():
                task.cancel()

    async def _work(self) -> None:
        """Look at everything that is open, in slices; while binds are on their way they come first, for a while."""
        loop = asyncio.get_running_loop()
        while True:
            await self._let_pass(loop.time() + LONGEST_YIELD_SECONDS)
            until = loop.time() + SLICE_SECONDS
            while loop.time() < until:
                if not self._agenda.sort() and not self._look_at_next():
                    return
            await asyncio.sleep(0)

    async def _let_pass(self, deadline: float) -> None:
        while self._is_busy() and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(SLICE_SECONDS)

    def _look_at_next(self) -> bool:
        question = self._agenda.take(self._busy) if len(self._busy) < WORKERS else None
        if question is not None:
            self._look(question)
        return question is not None

    async def _rest(self) -> None:
        due = self._agenda.next_time() if len(self._busy) < WORKERS else None
        with suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else max(due - self._view.now, SLICE_SECONDS)):
                await self._bell.wait()

    def _look(self, question: Question) -> None:
        controller, key = question
        try:
            result = controller.reconcile(self._view, key)
        except Exception as problem:  # one object that a controller cannot deal with stops nobody else
            self._postpone(question, f"{type(problem).__name__}: {problem}")
            return
        if not result.writes:
            self._agenda.settle(question, result.again)
            return
        place = (controller.name, key)
        self._busy[place] = asyncio.get_running_loop().create_task(self._write(place, question, result))

    async def _write(self, place: Place, question: Question, result: Result) -> None:
        try:
            await self._writer.write_all(result.writes)
            self._agenda.settle(question, result.again)
        except ClusterError as problem:
            self._postpone(question, str(problem))
        finally:
            self._busy.pop(place, None)
            self.wake()

    def _postpone(self, question: Question, problem: str) -> None:
        wait, (controller, key) = self._agenda.postpone(question), question
        self._report(f"{controller.name}, {key.namespace}/{key.name}: {problem}; tried again in {wait:g} s")
