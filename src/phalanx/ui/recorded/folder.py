"""The folder of a recording: the cluster at a moment, and the sessions around it, each replayed when somebody goes through it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from phalanx.config.schedulers import our_schedulers
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import RecordingError, SnapshotError
from phalanx.model.kinds import object_key
from phalanx.recording.entries import Decided
from phalanx.recording.moment import ClusterThen, Span, cluster_when, span_of, time_text
from phalanx.recording.reading import Recording
from phalanx.recording.replay import Replay, policy_of_config
from phalanx.session.policy import Policy
from phalanx.ui.moments import RecordedSpan
from phalanx.ui.recorded.scan import RecordedSession, Scan, scan
from phalanx.ui.showing import Showing, ShowingSetup
from phalanx.ui.source import KeptSession, SessionInput, SessionShelf
from phalanx.ui.still import StillObjects, StillSource
from phalanx.ui.views import Json

FRESH_SECONDS = 5.0
"""A recording may grow: after so long its end is looked for again."""
MOST_LISTED = 50


@dataclass(frozen=True, slots=True)
class RecordedRules:
    """By which rules a recording is looked at."""

    policy: Policy | None = None
    """None: by those that were in force."""
    schedulers: tuple[str, ...] = ()
    """Empty: those of the process that was recorded."""


class RecordedFolder:
    """A recording that can be looked at."""

    def __init__(self, folder: Path, setup: ShowingSetup, rules: RecordedRules | None = None) -> None:
        """Read nothing before somebody asks."""
        self._folder, self._setup, self._rules = folder, setup, rules or RecordedRules()
        self._span: tuple[float, Span] | None = None
        self._scan: tuple[float, Scan] | None = None
        self._turn = asyncio.Lock()

    async def span(self) -> RecordedSpan:
        """Return from when to when it is."""
        found = await self._spanned()
        return RecordedSpan(found.begun, found.ended)

    async def _spanned(self) -> Span:
        if self._span is None or monotonic() - self._span[0] > FRESH_SECONDS:
            self._span = monotonic(), await asyncio.to_thread(_span_of, self._folder)
        return self._span[1]

    async def moment(self, text: str) -> float:
        """Return the moment that a text means: seconds since 1970, a time, or a time of day; its end if it is empty."""
        span = await self._spanned()
        if not text:
            return span.ended
        try:
            seconds = float(text)
        except ValueError:
            return span.moment(text)
        if not span.begun - 1 <= seconds <= span.ended + 1:
            raise RecordingError(f"{text} is not in the recording, which is from {span}")
        return min(max(seconds, span.begun), span.ended)

    async def showing(self, moment: float) -> Showing:
        """Return the cluster as it was."""
        source = await asyncio.to_thread(self._source, moment)
        return Showing(source, self._setup)

    def _source(self, moment: float) -> "RecordedSource":
        problems: list[str] = []
        then = cluster_when(self._folder, moment, tell=problems.append)
        policy = self._rules.policy or policy_of_config(then.config)
        schedulers = self._rules.schedulers or then.schedulers
        given = _objects(then, f"{self._folder.name} at {time_text(moment)}", schedulers, problems)
        return RecordedSource(given, policy, schedulers, self._setup, RecordedShelf(self._folder, self.scanned, moment))

    def scanned(self) -> Scan:
        """Return the sessions of the recording; called in a thread."""
        if self._scan is None or monotonic() - self._scan[0] > FRESH_SECONDS:
            self._scan = monotonic(), scan(self._folder)
        return self._scan[1]

    async def happenings(self) -> Json:
        """Return what happened over time."""
        span = await self._spanned()
        found = await asyncio.to_thread(self.scanned)
        return {"bars": found.bars(span.begun, span.ended)}

    async def history(self, gang: str, until: float) -> list[Json]:
        """Return what became of a gang in the sessions until a moment."""
        found = await asyncio.to_thread(self.scanned)
        return [moment.document() for moment in found.history(gang, until)]


def _span_of(folder: Path) -> Span:
    return span_of(Recording(folder, tell=lambda text: None))


def _objects(then: ClusterThen, title: str, schedulers: tuple[str, ...], problems: list[str]) -> StillObjects:
    cluster, refused = ObjectCluster(schedulers=our_schedulers(schedulers)), dict[str, str]()
    for document in then.documents:
        try:
            cluster.put(document)
        except SnapshotError as problem:
            problems.append(str(problem))
            if document.get("kind") == "PodGroup":
                refused[object_key(document)] = str(problem)
    return StillObjects(title, then.documents, cluster, then.now, refused, problems)


class RecordedSource(StillSource):
    """The cluster of a recording at a moment, with the sessions that were held until then."""

    kind = "recording"

    def __init__(
        self, given: StillObjects, policy: Policy, schedulers: tuple[str, ...], setup: ShowingSetup, shelf: "RecordedShelf"
    ) -> None:  # fmt: skip
        """Take the objects of the moment."""
        super().__init__(given, setup.connect(policy), setup.connect, schedulers)
        self._shelf = shelf

    @property
    def sessions(self) -> SessionShelf:
        """Those of the recording."""
        return self._shelf


class RecordedShelf:
    """The sessions of a recording until a moment."""

    def __init__(self, folder: Path, scanned: Callable[[], Scan], moment: float) -> None:
        """Read nothing before somebody asks."""
        self._folder, self._scanned, self._moment = folder, scanned, moment

    def kept(self) -> list[KeptSession]:
        """Return the last of them, the latest first."""
        return [session.row() for session in reversed(self._scanned().until(self._moment)[-MOST_LISTED:])]

    def take(self, key: str) -> SessionInput | None:
        """Decide again from the last checkpoint before a session on, and return what that one was held on."""
        known = self._scanned().until(self._moment)
        wanted = next((session for session in known if str(session.number) == key), None)
        if wanted is None:
            return None
        earlier = sum(session.now == wanted.now and session.number < wanted.number for session in known)
        return _replayed(self._folder, wanted, earlier)


def _replayed(folder: Path, wanted: RecordedSession, earlier: int) -> SessionInput | None:
    """Return what a session was held on; so many others were held before it at the same moment."""
    player = Replay()
    for _, entry in Recording(folder, tell=lambda text: None).entries(since=wanted.now):
        found = player.enter(entry)
        if found is None or not isinstance(entry, Decided) or found.now < wanted.now:
            continue
        earlier -= 1
        if earlier < 0:
            title = f"session {wanted.number} at {time_text(found.now)}"
            return SessionInput(found.session.snapshot, found.profile, title)
    return None
