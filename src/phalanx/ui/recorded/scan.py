"""All sessions of a recording in a list, read without the objects between them: where to stop, and what became of gangs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phalanx.explain.reason_text import counted
from phalanx.model.task_status import Status
from phalanx.recording.entries import Decided
from phalanx.recording.reading import Recording
from phalanx.recording.segments import SegmentReader
from phalanx.ui.source import KeptSession
from phalanx.ui.views import Json
from phalanx.ui.views.timeline import Moment

MOST_BARS = 240
MOST_SAMPLES = 2
VERBS = {
    Status.BINDING: "bound", Status.RUNNING: "running", Status.RELEASING: "leaving", Status.PIPELINED: "pipelined",
    Status.FAILED: "failed", Status.SUCCEEDED: "ended",
}  # fmt: skip
KINDS = {Status.RELEASING: "evicted", Status.SUCCEEDED: "ended", Status.BINDING: "bound"}


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """One session, as it was written down."""

    number: int
    now: float
    decisions: Mapping[str, Any]  # Any: see decision_record.py

    def count(self, part: str) -> int:
        """Return how many binds, evictions and so on it decided."""
        return sum(len(record.get(part, ())) for record in self.decisions.values())

    def row(self) -> KeptSession:
        """Return it as a row of a list."""
        return KeptSession(
            self.number, self.now, self.count("binds"), self.count("pipelined"), self.count("evictions"), tuple(self._sample())
        )

    def _sample(self) -> Iterator[str]:
        for record in self.decisions.values():
            for pod, node in list(record.get("binds", {}).items())[:MOST_SAMPLES]:
                yield f"pod {pod} is bound to {node}"
            for pod, (action, preemptor, _) in list(record.get("evictions", {}).items())[:MOST_SAMPLES]:
                yield f"pod {pod} is evicted by {action}{f' for {preemptor}' if preemptor else ''}"


@dataclass(frozen=True, slots=True)
class Scan:
    """The sessions of a recording, the oldest first."""

    sessions: Sequence[RecordedSession] = field(default_factory=list)

    def until(self, moment: float) -> list[RecordedSession]:
        """Return those that were held by then."""
        return [session for session in self.sessions if session.now <= moment]

    def bars(self, begun: float, ended: float) -> Json:
        """Return how many pods were placed and evicted over time, in parts of equal length."""
        width = max((ended - begun) / MOST_BARS, 1.0)
        bars: dict[str, list[int]] = {"placed": [0] * (MOST_BARS + 1), "evicted": [0] * (MOST_BARS + 1)}
        for session in self.sessions:
            place = min(max(int((session.now - begun) / width), 0), MOST_BARS)
            bars["placed"][place] += session.count("binds")
            bars["evicted"][place] += session.count("evictions")
        return {"width": width, **bars, "sessions": len(self.sessions)}

    def history(self, gang: str, until: float) -> list[Moment]:
        """Return what became of a gang, session by session, where that was anything new."""
        return list(_history(gang, self.until(until)))


def scan(folder: Path) -> Scan:
    """Read the sessions of a recording."""
    found: list[RecordedSession] = []
    for path in Recording(folder, tell=lambda text: None).paths:
        decided = (entry for entry in SegmentReader(path).entries() if isinstance(entry, Decided))
        found += [RecordedSession(len(found) + place, entry.now, entry.decisions) for place, entry in enumerate(decided, start=1)]
    return Scan(found)


# --- one gang ------------------------------------------------------------------------------------------------------------


def _history(gang: str, sessions: Iterable[RecordedSession]) -> Iterator[Moment]:
    phase, counts, refusals = "", dict[str, int](), list[str]()
    for session in sessions:
        for record in session.decisions.values():
            yield from _made_room(gang, session.now, record.get("evictions", {}))
            stand = record.get("gangs", {}).get(gang)
            if stand is None:
                continue
            yield from _changes(session.now, (phase, counts, refusals), stand)
            phase, counts, refusals = stand[0], dict(stand[1]), list(stand[2])


def _made_room(gang: str, now: float, evictions: Mapping[str, Sequence[str]]) -> Iterator[Moment]:
    pods = [pod for pod, (_, preemptor, _) in evictions.items() if preemptor == gang]
    if pods:
        yield Moment(now, "evicted", f"{counted(len(pods), 'pod')} of others {'is' if len(pods) == 1 else 'are'} evicted for it")


def _changes(now: float, before: tuple[str, Mapping[str, int], Sequence[str]], stand: Sequence[Any]) -> Iterator[Moment]:
    phase, counts, refusals = stand
    if phase and phase != before[0]:
        yield Moment(now, "admitted" if phase == "Inqueue" else "phase", f"phase {phase}")
    for status, verb in VERBS.items():
        more = counts.get(status.name, 0) - before[1].get(status.name, 0)
        if more > 0:
            yield Moment(now, KINDS.get(status, "running"), f"{counted(more, 'pod')} {verb}")
    if refusals and set(refusals) != set(before[2]):
        yield Moment(now, "waits", f"waits: {'; '.join(_refusal_text(name) for name in dict.fromkeys(refusals))}")


def _refusal_text(name: str) -> str:
    """Write who refuses a gang, and why: ``proportion says QueueQuotaExceeded``."""
    plugin, _, reason = name.strip("/").rpartition("/")
    return f"{plugin} says {reason}" if plugin else reason
