"""Where somebody is in a session: at which step, which steps count, and where to stop."""

from collections.abc import Callable, Mapping, Sequence

from phalanx.stepping.answer import Change, StepView
from phalanx.stepping.breakpoints import Breakpoint
from phalanx.stepping.node_room import node_of, room_changes
from phalanx.stepping.stepped_session import Mark, Step, SteppedSession
from phalanx.stepping.watches import Value, Watch


class Cursor:
    """A step of a session; breakpoints and watches go along to the next session."""

    def __init__(self, session: SteppedSession, *, level: int, gangs: Sequence[str] = ()) -> None:
        """Begin before the first step; with `gangs`, only steps that concern these count."""
        self.level, self._gangs = level, frozenset(gangs)
        self.breaks: dict[int, Breakpoint] = {}
        self.watches: dict[str, Watch] = {}
        self.session, self.number = session, 0
        self._values: dict[str, Mapping[Mark, Value]] = {}

    def enter(self, session: SteppedSession) -> list[str]:
        """Go on to another session; return what can be watched no more, because it is not there."""
        self.session, self.number = session, 0
        gone = [text for text, watch in self.watches.items() if not watch.is_in(session.snapshot)]
        for text in gone:
            del self.watches[text]
        self._values = {text: session.read_all(watch.read) for text, watch in self.watches.items()}
        return gone

    @property
    def step(self) -> Step | None:
        """The step at which one is; None at the beginning."""
        return self.session.steps[self.number - 1] if self.number else None

    def is_shown(self, step: Step) -> bool:
        """Tell whether a step counts."""
        event = step.event
        concerns = not self._gangs or not event.gangs or not self._gangs.isdisjoint(event.gangs)
        return event.level <= self.level and concerns

    def following(self, is_wanted: Callable[[Step], bool]) -> Step | None:
        """Return the next step of some kind."""
        return next(filter(is_wanted, self.session.steps[self.number :]), None)

    def preceding(self, is_wanted: Callable[[Step], bool]) -> Step | None:
        """Return the last step of some kind before this one."""
        return next(filter(is_wanted, reversed(self.session.steps[: max(self.number - 1, 0)])), None)

    def stops(self, step: Step) -> list[str]:
        """Say why the session stops at a step."""
        is_shown = self.is_shown(step)
        broken = [number for number, each in self.breaks.items() if each.is_met(step.event) and (is_shown or not each.is_wide)]
        met = [f"breakpoint {number}: {self.breaks[number].text}" for number in broken]
        changed = [text for text in self.watches if self._change(text, step).is_one]
        return [*met, *(f"watch {text}" for text in changed)]

    def watch(self, watch: Watch) -> Value:
        """Watch something, and return its value now."""
        self._values[watch.text] = self.session.read_all(watch.read)
        self.watches[watch.text] = watch
        return self._values[watch.text][self.session.mark(self.number)]

    def unwatch(self, text: str) -> None:
        """Watch something no more."""
        del self.watches[text], self._values[text]

    def _change(self, text: str, step: Step) -> Change:
        values, session = self._values[text], self.session
        return Change(values[session.mark_before(step.number)], values[session.mark(step.number)])

    def view(self, step: Step) -> StepView:
        """Return everything that is known about a step."""
        node = node_of(step.event)
        room = room_changes(self.session, step.number, node) if node else {}
        watches = {text: self._change(text, step) for text in self.watches}
        return StepView(step, self.session.count, node, room, watches, self.stops(step))
