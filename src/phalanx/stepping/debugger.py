"""The stepping debugger: a line comes in and an answer goes out. Whoever reads lines holds it (`cli/step.py`)."""

from collections.abc import Callable, Iterator, Sequence

from phalanx.explain.reason_text import counted
from phalanx.session.session import Session
from phalanx.stepping.answer import Answer
from phalanx.stepping.breakpoints import Known, breakpoint_of, event_names
from phalanx.stepping.commands import COMMANDS, WORDS
from phalanx.stepping.complaint import Complaint
from phalanx.stepping.cursor import Cursor
from phalanx.stepping.stepped_session import Step, SteppedSession
from phalanx.stepping.views import View, gang_order_view, gang_view, node_view, queue_order_view, queue_view
from phalanx.stepping.watches import value_text, watch_of

AROUND = 4
"""`list` shows so many steps before and after."""
LEVELS = ("3", "4", "5")
Words = Sequence[str]


class Debugger:
    """Carries out commands on sessions, one after the other."""

    def __init__(self, sessions: Iterator[SteppedSession], *, level: int = 3, gangs: Sequence[str] = ()) -> None:
        """Begin with the first session; with `gangs`, only steps that concern these count."""
        self._sessions = sessions
        self._cursor = Cursor(next(sessions), level=level, gangs=gangs)
        self._breaks_made = 0
        self._commands: dict[str, Callable[[Words], Answer]] = {
            "step": self._step, "back": self._back, "continue": self._continue, "goto": self._goto, "restart": self._restart,
            "next": self._next, "break": self._break, "breaks": self._breaks, "delete": self._delete, "watch": self._watch,
            "unwatch": self._unwatch, "level": self._level, "show": self._show, "order": self._order, "where": self._where,
            "list": self._list, "help": self._help, "quit": self._quit,
        }  # fmt: skip

    @property
    def session(self) -> SteppedSession:
        """The session that is stepped through."""
        return self._cursor.session

    def opening(self) -> Answer:
        """Return what is shown before the first step."""
        session, snapshot = self.session, self.session.snapshot
        held = {"node": len(snapshot.nodes), "queue": len(snapshot.queues), "gang": len(snapshot.gangs), "step": session.count}
        counts = ", ".join(counted(number, noun) for noun, number in held.items())
        return Answer([f"{session.title}: {counts}"], {"session": session.title, "steps": session.count})

    def do(self, line: str) -> Answer:
        """Carry out one line; an empty one is a step."""
        words = line.split() or ["step"]
        try:
            if words[0] not in WORDS:
                raise Complaint(f"{words[0]!r} is no command", (command.form for command in COMMANDS))
            return self._commands[WORDS[words[0]]](words[1:])
        except Complaint as problem:
            return Answer([str(problem)], {"error": str(problem)})

    # --- going -------------------------------------------------------------------------------------------------------

    def _step(self, words: Words) -> Answer:
        _only("step", words)
        return self._forward(self._cursor.following(self._cursor.is_shown))

    def _continue(self, words: Words) -> Answer:
        _only("continue", words)
        return self._forward(self._cursor.following(lambda step: bool(self._cursor.stops(step))))

    def _forward(self, step: Step | None) -> Answer:
        if step is not None:
            return self._go_to(step)
        self._cursor.number = self.session.count
        return self._end()

    def _back(self, words: Words) -> Answer:
        _only("back", words)
        step = self._cursor.preceding(self._cursor.is_shown)
        return self._restart(()) if step is None else self._go_to(step)

    def _goto(self, words: Words) -> Answer:
        number = int(words[0]) if len(words) == 1 and words[0].isdecimal() else -1
        if not 0 <= number <= self.session.count:
            raise Complaint(f"goto {' '.join(words)}: write a number from 0, the beginning, to {self.session.count}")
        return self._go_to(self.session.steps[number - 1]) if number else self._restart(())

    def _restart(self, words: Words) -> Answer:
        _only("restart", words)
        self._cursor.number = 0
        return self.opening()

    def _next(self, words: Words) -> Answer:
        if list(words) != ["session"]:
            raise Complaint(f"next {' '.join(words)}".rstrip(), ("next session", "step", "continue"), hint="write")
        session = next(self._sessions, None)
        if session is None:
            raise Complaint("there is no session after this one", ("restart", "goto N", "quit"), hint="write")
        gone = self._cursor.enter(session)
        opening = self.opening()
        return Answer([*opening.lines, *(f"not watched any more, it is gone: {text}" for text in gone)], opening.data)

    def _go_to(self, step: Step) -> Answer:
        self._cursor.number = step.number
        return self._cursor.view(step).answer()

    def _end(self) -> Answer:
        decisions, count = self.session.decisions, self.session.count
        found = {"placed": len(decisions.binds), "pipelined": len(decisions.pipelined), "evicted": len(decisions.evictions)}
        text = ", ".join(f"{amount} {word}" for word, amount in found.items())
        return Answer([f"the session is over after {count} steps; tasks: {text}"], {"over": True, "steps": count, **found})

    # --- stopping ----------------------------------------------------------------------------------------------------

    def _break(self, words: Words) -> Answer:
        found = breakpoint_of(words, self._known())
        self._breaks_made += 1
        self._cursor.breaks[self._breaks_made] = found
        return Answer(
            [f"breakpoint {self._breaks_made}: {found.text}{found.note}"], {"breakpoint": self._breaks_made, "text": found.text}
        )

    def _breaks(self, words: Words) -> Answer:
        _only("breaks", words)
        found = {str(number): each.text for number, each in self._cursor.breaks.items()}
        return Answer([f"{number}: {text}" for number, text in found.items()] or ["no breakpoints"], {"breakpoints": found})

    def _delete(self, words: Words) -> Answer:
        number = int(words[0]) if len(words) == 1 and words[0].isdecimal() else 0
        if number not in self._cursor.breaks:
            raise Complaint(f"delete {' '.join(words)}: no such breakpoint", map(str, self._cursor.breaks))
        gone = self._cursor.breaks.pop(number)
        return Answer([f"removed breakpoint {number}: {gone.text}"], {"removed": number, "text": gone.text})

    def _known(self) -> Known:
        snapshot, policies = self.session.snapshot, self.session.policies
        actions = dict.fromkeys(name for policy in policies for name in policy.actions)
        plugins = {plugin.name for policy in policies for plugin in policy.plugins()}
        return Known(sorted(snapshot.gangs), sorted(snapshot.queues), list(actions), sorted(plugins), events=event_names())

    # --- watching ----------------------------------------------------------------------------------------------------

    def _watch(self, words: Words) -> Answer:
        found = watch_of(" ".join(words), self.session.snapshot, self.session.decisions.queues)
        now = self._cursor.watch(found)
        return Answer([f"watch {found.text}: {value_text(now)}"], {"watch": found.text, "value": now})

    def _unwatch(self, words: Words) -> Answer:
        gone = [" ".join(words)] if words else list(self._cursor.watches)
        for text in gone:
            if text not in self._cursor.watches:
                raise Complaint(f"{text!r} is not watched", self._cursor.watches)
            self._cursor.unwatch(text)
        return Answer([f"not watched any more: {text}" for text in gone] or ["nothing is watched"], {"unwatched": gone})

    def _level(self, words: Words) -> Answer:
        if len(words) != 1 or words[0] not in LEVELS:
            raise Complaint(f"level {' '.join(words)}".rstrip(), (f"level {each}" for each in LEVELS), hint="write")
        self._cursor.level = int(words[0])
        count = sum(map(self._cursor.is_shown, self.session.steps))
        text = f"level {self._cursor.level}: {count} of {self.session.count} steps count"
        return Answer([text], {"level": self._cursor.level, "steps": count})

    # --- showing -----------------------------------------------------------------------------------------------------

    def _show(self, words: Words) -> Answer:
        snapshot = self.session.snapshot
        views: dict[str, tuple[Sequence[str], Callable[[Session, str], View]]] = {
            "node": (snapshot.nodes.names, node_view), "queue": (sorted(snapshot.queues), queue_view),
            "gang": (sorted(snapshot.gangs), gang_view),
        }  # fmt: skip
        kind, name = (words[0], " ".join(words[1:])) if len(words) > 1 else ("", "")
        if kind not in views:
            forms = ("show node NAME", "show queue NAME", "show gang NAMESPACE/NAME")
            raise Complaint(f"show {' '.join(words)}".rstrip(), forms, hint="write")
        names, view = views[kind]
        if name not in names:
            raise Complaint(f"{name!r} is no {kind}", names)
        return self._read(lambda session: view(session, name))

    def _order(self, words: Words) -> Answer:
        if list(words) == ["gangs"]:
            return self._read(gang_order_view)
        if list(words) == ["queues"]:
            turns = [step.place.queue for step in self.session.steps[self._cursor.number :] if step.place.queue]
            return self._read(lambda session: queue_order_view(session, turns))
        raise Complaint(f"order {' '.join(words)}".rstrip(), ("order queues", "order gangs"), hint="write")

    def _read(self, reader: Callable[[Session], View]) -> Answer:
        mark = self.session.mark(self._cursor.number)
        view = self.session.read([mark], reader)[mark]
        return Answer(view.lines, {"step": self._cursor.number, **view.data})

    def _where(self, words: Words) -> Answer:
        _only("where", words)
        step = self._cursor.step
        if step is None:
            return self.opening()
        whole = self._cursor.view(step).answer()
        head = f"{self.session.title}, step {step.number} of {self.session.count}"
        return Answer([head, *whole.lines], {"session": self.session.title, **whole.data})

    def _list(self, words: Words) -> Answer:
        _only("list", words)
        here = self._cursor.number
        shown = [step for step in self.session.steps if self._cursor.is_shown(step) or step.number == here]
        place = sum(step.number < here for step in shown)
        around = shown[max(place - AROUND, 0) : place + AROUND + 1]
        lines = [f"{'>' if step.number == here else ' '} {step}" for step in around]
        data = [{"step": step.number, "level": step.event.level, "text": step.event.text} for step in around]
        return Answer(lines, {"step": here, "steps": data})

    # --- the rest ----------------------------------------------------------------------------------------------------

    def _help(self, words: Words) -> Answer:
        _only("help", words)
        rows = [(", ".join((command.form, *command.short)), command.meaning) for command in COMMANDS]
        width = max(len(form) for form, _ in rows)
        return Answer([f"{form:{width}}  {meaning}" for form, meaning in rows], {"commands": dict(rows)})

    def _quit(self, words: Words) -> Answer:
        _only("quit", words)
        return Answer([], is_last=True)


def _only(command: str, words: Words) -> None:
    if words:
        raise Complaint(f"{command} {' '.join(words)}: nothing follows the word {command}")
