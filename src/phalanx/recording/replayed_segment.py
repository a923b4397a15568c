"""One segment of a recording decided again by itself, and what came out of several put together as if they came in a row.

A segment begins with a checkpoint, so it needs none of those before it: segments can be replayed at the same time, by processes
that know nothing of each other. What comes out is the same as in a row, except where a session differs: that is for whoever
replays in a row, since only then the session itself is at hand.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.recording.entries import AnyEntry, Carried, CarriedOut, Checkpoint, Dropped, Ended, Header
from phalanx.recording.reading import Recording
from phalanx.recording.replay import Replay, ReplayedSession


@dataclass(slots=True)
class ReplayTally:
    """What is counted while a recording is replayed."""

    sessions: int = 0
    entries: int = 0
    dropped: int = 0
    source: str = ""
    version: str = ""
    begun: float | None = None
    ended: float = 0.0
    carried_out: Counter[str] = field(default_factory=Counter)

    def enter(self, entry: AnyEntry, player: Replay) -> ReplayedSession | None:
        """Let a replay take in an entry, and count it."""
        self.entries += 1
        if isinstance(entry, Header):
            self.begun = entry.now if self.begun is None else self.begun
            self.source, self.version = entry.source, entry.version
        if isinstance(entry, Dropped):
            self.dropped += entry.count
        if isinstance(entry, CarriedOut):
            self.carried_out[entry.what] += 1
        session = player.enter(entry)
        self.ended = max(self.ended, entry.now if isinstance(entry, Ended) else player.cluster.now)
        self.sessions += session is not None
        return session

    def add(self, other: "ReplayTally") -> None:
        """Count what another one has counted after this one."""
        self.sessions, self.entries = self.sessions + other.sessions, self.entries + other.entries
        self.dropped += other.dropped
        self.begun = other.begun if self.begun is None else self.begun
        self.source, self.version = other.source or self.source, other.version or self.version
        self.ended = max(self.ended, other.ended)
        self.carried_out.update(other.carried_out)


@dataclass(slots=True)
class ReplayedSegment:
    """What came out of one segment."""

    tally: ReplayTally = field(default_factory=ReplayTally)
    header: Header | None = None
    beginning: int = 0
    """So many entries, up to the end of the checkpoint, say nothing new to whoever comes from the segment before."""
    is_same: bool = True
    goes_on: bool = True
    """The next segment may go on where this one ended: nothing is missing at its end."""
    problems: list[str] = field(default_factory=list)

    def follows(self, other: "ReplayedSegment") -> bool:
        """Tell whether this segment goes on where another one ended."""
        mine, before = self.header, other.header
        is_next = mine is not None and before is not None and (mine.process, mine.segment) == (before.process, before.segment + 1)
        return is_next and other.goes_on


def replayed_segment(folder: Path, path: Path, *, held: Callable[[], bool] = lambda: True) -> ReplayedSegment:
    """Decide a segment again, up to the first session that differs; `held` is called after each, and says whether to go on."""
    found, player = ReplayedSegment(), Replay()
    recording = Recording(folder, tell=found.problems.append)
    found.problems.clear()  # those of the whole recording are told by whoever asks for all segments
    is_beginning = True
    for _, entry in recording.entries(only=path):
        session = found.tally.enter(entry, player)
        if isinstance(entry, Header):
            found.header = entry
        found.beginning += is_beginning and not isinstance(entry, Checkpoint)
        is_beginning = is_beginning and not isinstance(entry, Carried)
        found.goes_on = found.goes_on and not isinstance(entry, Dropped)
        if session is not None:
            found.is_same = session.is_same
            if not found.is_same or not held():
                return found
    found.goes_on = found.goes_on and not found.problems
    return found


def all_together(segments: list[ReplayedSegment]) -> ReplayTally:
    """Return what is counted where segments are read one after the other: what a checkpoint repeats is not read again."""
    tally = ReplayTally()
    for place, segment in enumerate(segments):
        tally.add(segment.tally)
        if place and segment.follows(segments[place - 1]):
            tally.entries -= segment.beginning
    return tally
