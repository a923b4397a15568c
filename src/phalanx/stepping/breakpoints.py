"""Where a session stops, in the words of scheduling: a gang, a queue, an action, a plugin, a hook, a verdict, a statement's end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from phalanx.model.listing import listed
from phalanx.session.hooks import HOOKS
from phalanx.session.trace import TraceEvent
from phalanx.session.trace_events import ActionEntered, GangPipelined, GangReady, GangStarving
from phalanx.session.trace_operations import (
    EvictionTried,
    EvictionUndone,
    StatementCommitted,
    StatementDiscarded,
    StatementRolledBack,
    TaskEvicted,
)
from phalanx.session.trace_searches import VictimsVoted
from phalanx.stepping.complaint import Complaint

HOOKS_BY_EVENT: Mapping[str, tuple[str, ...]] = {
    "queues": ("queue_order",), "queue next": ("queue_order",), "overused": ("queue_overused",),
    "enqueued": ("gang_enqueueable", "gang_enqueued"), "enqueue refused": ("gang_enqueueable",),
    "added": ("gang_order",), "ahead": ("gang_order",), "starving": ("gang_starving",),
    "ready": ("gang_ready",), "not ready": ("gang_ready",), "prefilter": ("prefilter",), "no quota": ("queue_room",),
    "filters": ("screen", "task_screen", "coupled_filters", "node_room"),
    "refused": ("screen", "task_screen", "coupled_filters", "node_room"),
    "no node": ("screen", "task_screen", "coupled_filters", "node_room"),
    "scores": ("node_scores", "batch_scores", "task_scores", "coupled_scores", "placement_scores"),
    "domains": ("hypernode_gradients",), "domain works": ("hypernode_scores",), "may not evict": ("queue_preemptive",),
    "victims refused": ("preemptable", "reclaimable", "evictable"),
}  # fmt: skip
"""The hooks whose answers an event shows, by its name; `victims` says itself which one was asked."""

SAYS_YES = (GangReady, GangPipelined, GangStarving)
"""Verdicts without a reason."""
EVICTIONS = (EvictionTried, EvictionUndone, TaskEvicted)

Test = Callable[[TraceEvent], bool]


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A condition on events, and how it is written."""

    text: str
    is_met: Test
    is_wide: bool = False
    """Much of a session is about it, so only steps that count at the level are meant."""
    note: str = ""
    """What may surprise: gangs and queues come and go, and a later session may have them."""


def breakpoint_of(words: Sequence[str], known: "Known") -> Breakpoint:
    """Return the breakpoint of what follows the word `break`."""
    kind, rest = (words[0], " ".join(words[1:])) if words else ("", "")
    if kind in PLAIN and not rest:
        return Breakpoint(kind, PLAIN[kind])
    if kind == "verdict":
        return Breakpoint(f"verdict {rest}".strip(), _verdict(rest))
    if kind in NAMED and rest:
        names = getattr(known, f"{kind}s")
        if rest not in names and kind not in WIDE:
            raise Complaint(f"no {kind} {rest!r}", names)
        absent = "" if rest in names else f"; none in this session, there are: {listed(names)}"
        return Breakpoint(f"{kind} {rest}", NAMED[kind](rest), is_wide=kind in WIDE, note=absent)
    raise Complaint(f"break {' '.join(words)}".rstrip(), FORMS, hint="write")


@dataclass(frozen=True, slots=True)
class Known:
    """The names that breakpoints may have in a session."""

    gangs: Sequence[str] = ()
    queues: Sequence[str] = ()
    actions: Sequence[str] = ()
    plugins: Sequence[str] = ()
    hooks: Sequence[str] = tuple(sorted(HOOKS))
    events: Sequence[str] = ()


def event_names() -> list[str]:
    """Return the names of all kinds of events."""
    return sorted({kind.event for kind in _kinds(TraceEvent) if hasattr(kind, "event")})


def _kinds(kind: type[TraceEvent]) -> Iterator[type[TraceEvent]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _gang(name: str) -> Test:
    return lambda event: name in event.gangs


def _queue(name: str) -> Test:
    return lambda event: getattr(event, "queue", "") == name or name in getattr(event, "queues", ())


def _action(name: str) -> Test:
    return lambda event: isinstance(event, ActionEntered) and event.action == name


def _plugin(name: str) -> Test:
    return lambda event: name in plugins_of(event)


def plugins_of(event: TraceEvent) -> set[str]:
    """Return the plugins whose answer an event shows."""
    fields = event.fields
    named = {str(fields[key]) for key in ("plugin",) if fields.get(key)}
    for key in ("votes", "order"):
        answers = fields.get(key)
        named.update(answers if isinstance(answers, Mapping) else ())
    scores = fields.get("plugins")
    for parts in scores.values() if isinstance(scores, Mapping) else ():
        named.update(parts)
    return named


def _hook(name: str) -> Test:
    return lambda event: name in hooks_of_event(event)


def hooks_of_event(event: TraceEvent) -> tuple[str, ...]:
    """Return the hooks whose answers an event shows."""
    if isinstance(event, VictimsVoted):
        return (event.hook,)
    return HOOKS_BY_EVENT.get(event.event, ())


def _event(name: str) -> Test:
    return lambda event: event.event == name


def verdict_of(event: TraceEvent) -> str:
    """Return what an event says about whether something may be done; empty if it is no verdict."""
    if isinstance(event, SAYS_YES):
        return event.text
    return " ".join(str(getattr(event, name)) for name in ("code", "reason", "error") if getattr(event, name, ""))


def _verdict(reason: str) -> Test:
    wanted = reason.casefold()
    return lambda event: bool(verdict_of(event)) and wanted in verdict_of(event).casefold()


NAMED: Mapping[str, Callable[[str], Test]] = {
    "gang": _gang, "queue": _queue, "action": _action, "plugin": _plugin, "hook": _hook, "event": _event,
}  # fmt: skip
PLAIN: Mapping[str, Test] = {
    "commit": lambda event: isinstance(event, StatementCommitted),
    "discard": lambda event: isinstance(event, StatementDiscarded | StatementRolledBack),
    "eviction": lambda event: isinstance(event, EVICTIONS),
}
WIDE = ("gang", "queue")
FORMS = (
    "break gang NAMESPACE/NAME", "break queue NAME", "break action NAME", "break plugin NAME", "break hook NAME",
    "break verdict [REASON]", "break commit", "break discard", "break eviction", "break event NAME",
)  # fmt: skip
