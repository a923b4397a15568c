"""Runs controllers: each is asked about the keys that changes concern, and what it says is written, one write after the other.

Several keys are worked on at once, but never one key twice. A controller that raises, or whose write is refused, is asked again
after a while, twice as long each time. On a real cluster the work is done in short slices: answers and sessions have their turn in
between, and while pods are being bound controllers wait for a moment.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from phalanx.controllers.controller import Controller, Create, Patch, Result, Try, Write
from phalanx.errors import ClusterError, Unreachable
from phalanx.model.kinds import Document, Kind
from phalanx.scheduling.port import ClusterPort, Done, Report, SingleWrite, Timer
from phalanx.scheduling.refusals import SharedWrites
from phalanx.scheduling.workqueue import Place, Question, WorkQueue

MOST_AT_ONCE = 16
SLICE_SECONDS = 0.01
"""For so long controllers may think before sessions and answers have their turn."""
LONGEST_YIELD_SECONDS = 2.0
"""For so long they wait at a time while pods are being bound."""


class ControllerRunner:
    """Asks controllers and writes what they say, from `start` to `stop`."""

    def __init__(
        self, port: ClusterPort, controllers: Iterable[Controller], *, report: Report, is_busy: Callable[[], bool] = lambda: False
    ) -> None:
        """`is_busy` says whether something goes first; `report` is called with what goes wrong."""
        self._port, self._clock, self._is_busy, self._report = port, port.clock, is_busy, report
        self._queue = WorkQueue(port.view, controllers, report=report)
        self._busy: dict[Place, WriteSequence] = {}
        self._shared = SharedWrites()
        self._timer: Timer | None = None
        self._due = float("inf")
        self._is_running = False
        self._yields_until: float | None = None

    def start(self) -> None:
        """Begin to work off what has changed, and what changes from now on."""
        self._is_running, self._shared = True, SharedWrites()
        self._wake()

    @property
    def is_only_retrying(self) -> bool:
        """Tell whether nothing is left but what was refused before."""
        return not self._busy and self._queue.is_only_retrying

    def stop(self) -> None:
        """Work no more; what is being written is finished or dropped by the port."""
        self._is_running = False
        if self._timer is not None:
            self._timer.cancel()

    def notice(self, kind: Kind, document: Document) -> None:
        """Note an object that changed or has gone."""
        if self._queue.notice(kind, document):
            self._wake()

    # --- turns -------------------------------------------------------------------------------------------------------

    def _wake(self, seconds: float = 0.0) -> None:
        """Take a turn after some seconds, unless one is planned before."""
        moment = self._clock.elapsed + seconds
        if not self._is_running or self._due <= moment:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due, self._timer = moment, self._clock.after(seconds, self._turn)

    def _turn(self) -> None:
        """Look at everything that is open, for a slice of time."""
        self._due, self._timer = float("inf"), None
        if self._lets_pass():
            self._wake(SLICE_SECONDS)
            return
        self._work_until(self._clock.elapsed + SLICE_SECONDS)
        if len(self._busy) >= MOST_AT_ONCE:
            return  # whoever is through wakes us
        due = self._queue.next_time(self._busy)
        if due is not None:
            self._wake(max(due - self._clock.now, 0.0))

    def _work_until(self, moment: float) -> None:
        """Look at what is open now; what that changes is looked at in the next turn, after others have had theirs."""
        while self._queue.sort_one():
            if self._clock.elapsed >= moment:
                return
        for _ in range(self._queue.ready()):
            if not self._look_at_next() or self._clock.elapsed >= moment:
                return

    def _lets_pass(self) -> bool:
        """Tell whether binds go first; after a while controllers have their slice all the same."""
        if not self._is_busy():
            self._yields_until = None
            return False
        if self._yields_until is None:
            self._yields_until = self._clock.elapsed + LONGEST_YIELD_SECONDS
        if self._clock.elapsed < self._yields_until:
            return True
        self._yields_until = None
        return False

    # --- one key -----------------------------------------------------------------------------------------------------

    def _look_at_next(self) -> bool:
        question = self._queue.get(self._busy) if len(self._busy) < MOST_AT_ONCE else None
        if question is not None:
            self._reconcile(question)
        return question is not None

    def _reconcile(self, question: Question) -> None:
        controller, key = question
        try:
            result = controller.reconcile(self._port.view, key)
        except Exception as problem:  # one object that a controller cannot deal with stops nobody else
            self._retry(question, f"{type(problem).__name__}: {problem}")
            return
        if not result.writes:
            self._queue.done(question, result.again)
            return
        writes = self._busy[controller.name, key] = WriteSequence(
            self._port, result.writes, partial(self._written, question, result), self._shared
        )
        writes.go()

    def _written(self, question: Question, result: Result, problem: ClusterError | None) -> None:
        self._busy.pop((question[0].name, question[1]), None)
        if problem is None:
            self._queue.done(question, result.again)
        else:
            self._retry(question, str(problem), at_least=problem.retry_after)
        self._wake()

    def _retry(self, question: Question, problem: str, *, at_least: float = 0.0) -> None:
        if not self._is_running:
            return
        wait, (controller, key) = self._queue.retry(question, at_least=at_least), question
        self._report(f"{controller.name}, {key.namespace}/{key.name}: {problem}; tried again in {wait:.3g} s")


class WriteSequence:
    """The writes of one look: each is sent when the one before is through, and after a refusal the rest is left out.

    A loop and not a chain of calls: where answers come at once, a thousand writes would be a thousand frames deep.
    """

    def __init__(
        self, port: ClusterPort, writes: Sequence[Write], done: Done, shared: SharedWrites | None = None
    ) -> None:  # fmt: skip
        """`done` is called once, with the refusal or None; `shared` knows what others write at the same time."""
        self._port, self._left, self._done, self._shared = (
            port,
            deque(writes),
            done,
            shared if shared is not None else SharedWrites(),
        )
        self._is_waiting = self._is_going = self._is_over = False

    def go(self) -> None:
        """Send what can be sent."""
        if self._is_going:
            return
        self._is_going = True
        while self._left and not self._is_waiting:
            self._send(self._left.popleft())
        self._is_going = False
        if not self._left and not self._is_waiting:
            self._end(None)

    def _send(self, write: Write) -> None:
        self._is_waiting = True
        if isinstance(write, Create | Patch):
            send = partial(self._port.send, write)
            self._shared.send(write, lambda: self._port.clock.now, send, partial(self._answered, write))
            return
        single: SingleWrite = write.write if isinstance(write, Try) else write
        self._port.send(single, partial(self._answered, write))

    def _answered(self, write: Write, problem: ClusterError | None) -> None:
        self._is_waiting = False
        # Dropped is not refused: somebody else leads now, and nothing may be written instead.
        if problem is not None and (not isinstance(write, Try) or isinstance(problem, Unreachable)):
            self._left.clear()
            self._end(problem)
            return
        if problem is not None and isinstance(write, Try):
            self._left = deque(write.refused(str(problem)))
        self.go()

    def _end(self, problem: ClusterError | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._done(problem)
