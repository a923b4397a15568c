"""A recording looked at as it goes: the work that it shows, and what a shadow would have seen of the cluster at each moment.

Looks take a session each. They are taken when something has changed, and once more when that has lasted; in a long recording they
are farther apart, so that there are never many more than `MOST_LOOKS`.
"""

from phalanx.recording import entries
from phalanx.recording.cluster_watch import ClusterWatch
from phalanx.recording.entries import AnyEntry
from phalanx.recording.half_starts import GRACE_SECONDS
from phalanx.recording.observed_work import ObservedWork

BETWEEN_LOOKS_SECONDS = 1.0
MOST_LOOKS = 3_000
TIMED = (entries.Header, entries.Moment, entries.Decided, entries.Checkpoint, entries.Ended)


class ObservedCluster:
    """Follows a recording entry by entry."""

    def __init__(self, watch: ClusterWatch, seconds: float) -> None:
        """Begin with nothing; the recording is so long."""
        self.work, self.watch = ObservedWork(), watch
        self.between = max(BETWEEN_LOOKS_SECONDS, seconds / MOST_LOOKS)
        """How many seconds lie between two looks, at least."""
        self._looked: float | None = None
        self._changed: float | None = None
        """Since when something is different from the last look; None if nothing is."""

    def enter(self, entry: AnyEntry) -> None:
        """Take in an entry; before another moment comes, the last one is looked at if it is time for that."""
        if isinstance(entry, TIMED):
            self._pass(entry.now)
        self.work.enter(entry)
        if isinstance(entry, entries.Put | entries.Gone):
            self._changed = self.work.cluster.now

    def finish(self) -> None:
        """Look at the end."""
        self.work.finish()
        if self.work.header is not None and self._looked != self.work.ended:
            self._look(self.work.ended)

    def _pass(self, until: float) -> None:
        """Look at what is so until another moment, when it is time for that and when it has lasted."""
        if self._changed is None:
            return
        first = self._changed if self._looked is None else max(self._changed, self._looked + self.between)
        lasting = self._changed + GRACE_SECONDS + BETWEEN_LOOKS_SECONDS
        for moment in (first, lasting):
            if moment < until and (self._looked is None or moment > self._looked):
                self._look(moment)
                if moment == lasting:
                    self._changed = None

    def _look(self, now: float) -> None:
        self._looked = now
        self.watch.look(self.work.cluster.cache, self.work.cluster.mirror, now)
