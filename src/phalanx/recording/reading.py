"""A recording as it is read: its segments in order, what is missing of it, and the entries of one life of one process at a time."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from phalanx.errors import RecordingError
from phalanx.recording.entries import AnyEntry, Carried, Checkpoint, Dropped, Header
from phalanx.recording.object_changes import KnownObjects
from phalanx.recording.segments import SegmentReader, number_of, segment_paths


class Recording:
    """The segments of a folder; what cannot be read is told and skipped."""

    def __init__(self, folder: Path, *, tell: Callable[[str], None]) -> None:
        """Look which segments there are; `tell` is called with what is missing or damaged."""
        self.tell = tell
        self.paths = self._readable(segment_paths(folder))
        if not self.paths:
            raise RecordingError(f"{folder}: no recording in it; one is written by 'phalanx run --record {folder}'")
        for before, after in pairwise(self.paths):
            lost = range(number_of(before) + 1, number_of(after))
            if lost:
                names = f"segment {lost[0]}" if len(lost) == 1 else f"segments {lost[0]} to {lost[-1]}"
                tell(f"{folder}: {names} missing; reading goes on with the checkpoint of {after.name}")

    def _readable(self, paths: list[Path]) -> list[Path]:
        """Return the segments without those of other versions, as after an update; if all are, that is an error."""
        problems = {path: problem for path in paths if (problem := _problem(path)) is not None}
        if problems and len(problems) == len(paths):
            raise problems[paths[0]]
        for problem in problems.values():
            self.tell(f"left out: {problem}")
        return [path for path in paths if path not in problems]

    def headers(self) -> list[tuple[Path, Header]]:
        """Return what each segment begins with; those that cannot be read so far are left out."""
        found = [(path, SegmentReader(path).header()) for path in self.paths]
        return [(path, header) for path, header in found if header is not None]

    def first_damage(self) -> str:
        """Say why not even the beginning of the first segment can be read."""
        reader = SegmentReader(self.paths[0])
        reader.header()
        return f"{self.paths[0].name}: nothing but its first line was written" if reader.damage is None else str(reader.damage)

    def entries(self, *, since: float | None = None, only: Path | None = None) -> Iterator[tuple[Path, AnyEntry]]:
        """Yield all entries; with `since`, from the last checkpoint before that moment on; with `only`, those of one segment.

        A segment that goes on where the last one ended does not begin anew: its header and checkpoint are left out. Objects
        are whole, also where only what has changed of them was written.
        """
        expected: tuple[str, int] | None = None
        objects = KnownObjects()
        for path in self._paths_since(since) if only is None else [only]:
            reader, is_known = SegmentReader(path), False
            for entry in reader.entries():
                if isinstance(entry, Header):
                    is_known = expected == (entry.process, entry.segment)
                    expected = (entry.process, entry.segment + 1)
                if isinstance(entry, Dropped):
                    expected = None
                if (not is_known or isinstance(entry, Checkpoint)) and (whole := objects.whole(entry)) is not None:
                    yield path, whole
                is_known = is_known and not isinstance(entry, Carried)
            if reader.damage is not None:
                expected = None
                self.tell(self._damage_text(reader, path))

    def _paths_since(self, since: float | None) -> list[Path]:
        if since is None:
            return self.paths
        begun = [path for path, header in self.headers() if header.now <= since]
        return self.paths if not begun else self.paths[self.paths.index(begun[-1]) :]

    def _damage_text(self, reader: SegmentReader, path: Path) -> str:
        assert reader.damage is not None, "only what is damaged is told"
        if reader.damage.is_torn_tail:
            return f"{reader.damage}: what was written before is whole"
        following = [other.name for other in self.paths if number_of(other) > number_of(path)]
        rest = f"reading goes on with {following[0]}" if following else "nothing follows it"
        return f"{reader.damage}: what follows in this segment is lost; {rest}"


def _problem(path: Path) -> RecordingError | None:
    try:
        SegmentReader(path).refuse_others()
    except RecordingError as problem:
        return problem
    return None
