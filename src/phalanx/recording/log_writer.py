"""The thread that writes a recording. Whoever records only appends to a queue: no session waits for a disk.

A recording is bounded in size and age: the oldest segments are removed. It is bounded in memory too: when the thread cannot keep
up, entries are dropped, which is counted and said in the log; then everything up to the next checkpoint is dropped as well, because
what follows a gap means nothing without one. The same happens after an error of the disk, such as a full one: it is reported once,
and tried again after a while.
"""

import errno
import fcntl
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from phalanx.errors import RecordingError
from phalanx.recording.entries import AnyEntry, Dropped, Entry
from phalanx.recording.segments import SegmentWriter, number_of, segment_paths

BETWEEN_BLOCKS_SECONDS = 0.5
AFTER_ERROR_SECONDS = 30.0
ENCODED_TOGETHER = 50
"""More entries at once take no less time, and keep so much memory that the interpreter looks for garbage, and misses its caches."""
BREATH_EVERY, BREATH_SECONDS = 10, 0.0005
"""After so many of these the thread sleeps for a moment: a checkpoint of a large cluster must not hold sessions up."""
LAST_WORDS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a recording is kept."""

    total_bytes: int = 1 << 30
    age_seconds: float = 7 * 86_400.0
    segment_bytes: int = 64 << 20
    segment_seconds: float = 3_600.0
    queued: int = 200_000
    """So many entries may wait for the writer."""

    @property
    def oldest_end_seconds(self) -> float:
        """So long ago a segment may have ended: it began one segment before, and it goes when the next one has ended."""
        return max(self.age_seconds - 2 * self.segment_seconds, 0.0)


Making = Callable[[], Iterable[AnyEntry]]
"""Makes entries of what was heard, in the thread of the writer."""
MakingMany = Callable[[], Iterable[list[AnyEntry]]]
"""Makes many entries in the same way, as many together as are best encoded at once."""
Item = AnyEntry | Making


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Makes the entries that a new segment begins with, some of them together."""

    entries: MakingMany


class LogWriter:
    """Writes items one after the other into the segments of a folder."""

    def __init__(self, folder: Path, bounds: Bounds, *, report: Callable[[str], None], is_patient: bool = False) -> None:
        """Take the folder; the first item that is written must be a checkpoint. `report` is called from the thread.

        Whoever is patient waits for the thread where too many items are queued: in virtual time nobody minds.
        """
        self._folder, self._bounds, self._report, self._is_patient = folder, bounds, report, is_patient
        self._number, self._lock = self._last_number(), _locked(folder)
        self._queue: deque[Item | Checkpoint] = deque()
        self._segment: SegmentWriter | None = None
        self._made: list[AnyEntry] = []
        """Entries that are still to be encoded."""
        self._encoded = 0
        self._begun = 0.0
        self.wants_checkpoint = True
        """Somebody should begin a new segment with a checkpoint; everything else may be dropped until then."""
        self.has_begun = False
        """There was a first checkpoint; what comes before it is in it."""
        self.dropped = 0
        """How many items were not written so far."""
        self._closed_bytes = 0
        self.cpu_seconds = 0.0
        """What the thread has used of the processor by the end of the last block."""
        self.segments = 0
        """How many segments were begun so far, also of those that were removed since."""
        self._is_writing = False
        self._unsaid = 0
        self.gaps = 0
        """How often something was lost: a checkpoint after that goes on from nothing that was written before."""
        self._marks: list[AnyEntry] = []
        """What was dropped while there was no segment to say it in; the next one does."""
        self._failed_at: float | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def _last_number(self) -> int:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not os.access(self._folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return max(map(number_of, segment_paths(self._folder)), default=0)
        except OSError as problem:
            raise RecordingError(
                f"{self._folder}: cannot be written: {problem.strerror}; name another folder with --record"
            ) from problem

    # --- from the scheduler ------------------------------------------------------------------------------------------

    def add(self, item: Item) -> None:
        """Let an item be written; it is dropped where too many wait, or where something was dropped since the last checkpoint."""
        if not self.has_begun:
            return
        while self._is_patient and len(self._queue) >= self._bounds.queued and self._failed_at is None:
            time.sleep(BREATH_SECONDS)
        if len(self._queue) < self._bounds.queued and not self._unsaid:
            self._queue.append(item)
            return
        self.gaps += not self._unsaid
        self.dropped += 1
        self._unsaid += 1
        self.wants_checkpoint = True

    def add_checkpoint(self, making: MakingMany) -> None:
        """Begin a new segment with entries that need nothing of what came before."""
        count, self._unsaid, self.wants_checkpoint = self._unsaid, 0, False
        self.has_begun = True
        if count:
            self._queue.append(Dropped(count))
        self._queue.append(Checkpoint(making))

    @property
    def is_idle(self) -> bool:
        """Everything that was added is written, or dropped."""
        return not self._queue and not self._is_writing

    @property
    def is_interrupted(self) -> bool:
        """Nothing can be written, as on a full disk; it is tried again after a while."""
        return self._failed_at is not None

    @property
    def written_bytes(self) -> int:
        """How much was written so far, also of what was removed since."""
        segment = self._segment
        return self._closed_bytes + (0 if segment is None else segment.size)

    def close(self) -> None:
        """Write what waits, and end the thread."""
        if self._unsaid:
            self._queue.append(Dropped(self._unsaid))
        self._is_over.set()
        self._thread.join(LAST_WORDS_SECONDS)
        if self._thread.is_alive():
            self._report(f"the end of the recording in {self._folder} was not written: the disk is too slow")
        elif self.dropped:
            self._report(f"the recording in {self._folder} is not complete: {self.dropped:,} changes could not be written")
        os.close(self._lock)

    # --- the thread --------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_over.wait(BETWEEN_BLOCKS_SECONDS)
            self._is_writing = True
            try:
                self._write_all()
            except Exception as problem:  # a full disk, a folder that is gone: sessions go on, and so does recording, later
                self._fail(problem)
            self.cpu_seconds = time.thread_time()
            self._is_writing = False
        self._guarded(self._end_segment)

    def _write_all(self) -> None:
        if self._failed_at is not None and time.monotonic() < self._failed_at + AFTER_ERROR_SECONDS:
            return
        while self._queue:
            item = self._queue.popleft()
            if isinstance(item, Dropped) and self._segment is None:
                self._marks.append(item)
            elif isinstance(item, Entry):
                self._made.append(item)
            elif isinstance(item, Checkpoint):
                self._encode()
                self._begin_segment()
                self._take(item.entries())
                self._made, self._marks = self._marks, []
            elif self._segment is not None:  # otherwise after an error
                self._made += item()
            if len(self._made) >= ENCODED_TOGETHER:
                self._encode()
                self._breathe()
        self._encode()
        if self._segment is not None:
            self._segment.flush()
            self._look_at_size(self._segment)

    def _take(self, made: Iterable[list[AnyEntry]]) -> None:
        for some in made:
            self._made = some
            self._encode()
            self._breathe()

    def _encode(self) -> None:
        made, self._made = self._made, []
        if made and self._segment is not None:
            self._segment.add(made)

    def _breathe(self) -> None:
        self._encoded += 1
        if self._encoded % BREATH_EVERY == 0:
            time.sleep(BREATH_SECONDS)

    def _look_at_size(self, segment: SegmentWriter) -> None:
        age = time.monotonic() - self._begun
        if segment.size >= self._bounds.segment_bytes or age >= self._bounds.segment_seconds:
            self.wants_checkpoint = True

    def _begin_segment(self) -> None:
        self._end_segment()
        self._remove_old()
        self._number += 1
        self._segment, self._begun, self._failed_at = SegmentWriter(self._folder, self._number), time.monotonic(), None
        self.segments += 1

    def _end_segment(self) -> None:
        last, self._segment = self._segment, None
        if last is not None:
            try:
                last.close()
            finally:
                self._closed_bytes += last.size

    def _remove_old(self) -> None:
        """Remove what is too old or too much, so that the next segment has its room."""
        now, paths = time.time(), segment_paths(self._folder)
        sizes = {path: path.stat() for path in paths}
        total = sum(found.st_size for found in sizes.values()) + self._bounds.segment_bytes
        for path in paths:
            is_old = now - sizes[path].st_mtime > self._bounds.oldest_end_seconds
            if not is_old and total <= self._bounds.total_bytes:
                break
            path.unlink(missing_ok=True)
            total -= sizes[path].st_size

    def _fail(self, problem: Exception) -> None:
        if self._failed_at is None:
            text = problem.strerror if isinstance(problem, OSError) and problem.strerror else f"{type(problem).__name__}: {problem}"
            self._report(f"the recording in {self._folder} is interrupted: {text}; tried again in {AFTER_ERROR_SECONDS:g} s")
        self._failed_at = time.monotonic()
        lost = len(self._queue)
        self._queue.clear()
        self._made.clear()
        self._guarded(self._end_segment)
        self.dropped, self.gaps = self.dropped + lost, self.gaps + 1
        self._unsaid, self.wants_checkpoint = max(self._unsaid + lost, 1), True

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError as problem:
            self._report(f"the end of the recording in {self._folder} was not written: {problem.strerror}")


def together(made: Iterable[AnyEntry]) -> Iterator[list[AnyEntry]]:
    """Yield as many entries at once as are best encoded together."""
    entries = iter(made)
    while some := [*islice(entries, ENCODED_TOGETHER)]:
        yield some


def _locked(folder: Path) -> int:
    """Take a folder for this process alone, until what is returned is closed: the segments of two would be mixed up."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise RecordingError(f"{folder}: another process records in it; name another folder with --record") from None
    except OSError:
        pass  # some network file systems lock no folders
    return descriptor
