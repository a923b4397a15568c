"""A session step by step: the list of its steps, and everything that is known about one of them."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from phalanx.errors import SnapshotError
from phalanx.session.trace import TraceEvent
from phalanx.stepping.cursor import Cursor
from phalanx.stepping.stepped_session import Step, SteppedSession
from phalanx.ui.source import SessionInput, SessionShelf
from phalanx.ui.views import Json
from phalanx.ui.views.gangs import SharedTexts

MOST_OPEN = 3
MOST_STEPS = 20_000
"""Steps that a list has at most."""
MOST_PAIRS = 200_000
"""Where so many pairs of waiting and running gangs would be traced, one gang has to be named: every pair has votes on victims."""
SHOWN = 3
"""The level of steps that are shown at first: what happened."""
SessionKey = tuple[str, str]


class OpenSessions:
    """The sessions that somebody goes through."""

    def __init__(self) -> None:
        """Begin with none."""
        self._open: OrderedDict[SessionKey, SteppedSession] = OrderedDict()
        self._turn = asyncio.Lock()

    async def of(self, shelf: SessionShelf, key: str, gang: str) -> SteppedSession:
        """Return a session with its steps, of one gang or of all; it is decided anew for that, in a thread."""
        async with self._turn:
            if (key, gang) not in self._open:
                self._open[key, gang] = await asyncio.to_thread(_opened, shelf, key, gang)
            self._open.move_to_end((key, gang))
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
            return self._open[key, gang]


def _opened(shelf: SessionShelf, key: str, gang: str) -> SteppedSession:
    given = shelf.take(key)
    if given is None:
        raise SnapshotError(f"session {key} is not kept any more; choose one of the list")
    if gang and gang not in given.snapshot.gangs:
        raise SnapshotError(f"there is no gang {gang} in session {key}")
    if not gang and _is_large(given):
        raise SnapshotError("the trace of all gangs of this cluster would be too long; name a gang")
    return SteppedSession(given.snapshot, given.profile, given.title, gangs=[gang] if gang else ())


def _is_large(given: SessionInput) -> bool:
    snapshot = given.snapshot
    return len(snapshot.active) * max(len(snapshot.gangs) - len(snapshot.active), 1) > MOST_PAIRS


def steps_document(session: SteppedSession, level: int = SHOWN) -> Json:
    """Return the steps up to a level as columns, with what each belongs to."""
    steps = [step for step in session.steps if step.event.level <= level]
    texts, found = SharedTexts(), session.decisions
    shown = steps[:MOST_STEPS]
    return {
        "title": session.title, "count": session.count, "shown": len(steps), "left": len(steps) - len(shown),
        "decided": {"placed": len(found.binds), "pipelined": len(found.pipelined), "evicted": len(found.evictions)},
        "columns": {
            "number": [step.number for step in shown], "level": [step.event.level for step in shown],
            "event": texts.places(step.event.event for step in shown), "text": [step.event.text for step in shown],
            "action": texts.places(step.place.action for step in shown), "queue": texts.places(step.place.queue for step in shown),
            "gang": texts.places(step.place.gang for step in shown), "shard": texts.places(step.place.shard for step in shown),
            "open": [sum(step.place.undecided.values()) for step in shown],
        },
        "texts": texts.texts,
    }  # fmt: skip


def step_document(session: SteppedSession, number: int) -> Json:
    """Return a step with the room of its node before and after, votes and scores."""
    if not 0 < number <= session.count:
        raise SnapshotError(f"step {number}: write a number from 1 to {session.count}")
    step = session.steps[number - 1]
    answer = Cursor(session, level=step.event.level).view(step).answer()
    return {**answer.data, "lines": list(answer.lines), "votes": _votes(step), "scores": _scores(step.event)}


def _votes(step: Step) -> list[Json]:
    """Return who voted how."""
    votes = step.event.fields.get("votes") or step.event.fields.get("order")
    if not isinstance(votes, Mapping):
        return []
    return [{"plugin": str(plugin), "vote": _vote_text(vote)} for plugin, vote in votes.items()]


def _vote_text(vote: Any) -> str:  # Any: what plugins say is a word, a key, or names
    if vote is None:
        return "no say"
    if isinstance(vote, list | tuple):
        return ", ".join(map(str, vote)) or "nobody"
    return str(vote)


def _scores(event: TraceEvent) -> Json | None:
    """Return the scores of nodes, with the part of each plugin; None for steps that are about no scores."""
    scores, parts = event.fields.get("scores"), event.fields.get("plugins")
    if not isinstance(scores, Mapping):
        return None
    by_node: Mapping[str, Mapping[str, float]] = parts if isinstance(parts, Mapping) else {}
    plugins = list(dict.fromkeys(name for each in by_node.values() for name in each))
    ranked = sorted(scores.items(), key=lambda item: (-float(item[1]), str(item[0])))
    rows = [[str(node), float(total), *(by_node.get(node, {}).get(name) for name in plugins)] for node, total in ranked]
    return {"plugins": plugins, "rows": rows}
