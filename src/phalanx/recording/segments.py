"""The files of a recording: segments that are written once and only at their end, and read as far as they are sound.

A folder holds ``000001.phx``, ``000002.phx`` and so on. A segment is one line of text, then blocks: the length of the block and its
checksum, four bytes each, least significant first, then a part of one zstd stream, which holds arrays of entries, each behind its
length. A block is flushed, so whatever is before a torn or damaged one can be read. A stream over the whole segment makes it a
third of the size that single blocks would have, since pods of a gang look alike; what follows a damaged block of a segment is lost
with it, and reading goes on with the next segment.
"""

import os
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Self
from zlib import crc32

import msgspec

from phalanx import __version__
from phalanx.errors import RecordingError
from phalanx.recording.entries import DECODER, ENCODER, FORMAT, AnyEntry, Header

zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
"""The same module, which came into the standard library with Python 3.14."""
NAME = re.compile(r"(\d{6,})\.phx")
FIRST_WORDS = b"phalanx recording "
FIRST_LINE = re.compile(rb"phalanx recording (\d+) \(phalanx ([^)\n]*)\)\n")
LENGTH, BLOCK = struct.Struct("<I"), struct.Struct("<II")
BLOCK_BYTES = 1 << 20
LEVEL = 1
"""Level 3 takes half as long again for what a session decided, and makes a recording a tenth smaller."""
MOST_LINE, MOST_BLOCK = 200, 256 << 20
"""What is longer is taken for damage, not for a reason to ask for so much memory."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a recording that cannot be read."""

    path: Path
    text: str
    is_torn_tail: bool = False
    """The last block was not written to its end, as when a process is killed: nothing that was whole before is lost."""

    def __str__(self) -> str:
        return f"{self.path.name}: {self.text}"


def segment_paths(folder: Path) -> list[Path]:
    """Return the segments of a recording, the oldest first."""
    if not folder.is_dir():
        raise RecordingError(f"{folder}: no such folder; name the one that was given to --record")
    found = sorted((int(match[1]), path) for path in folder.iterdir() if (match := NAME.fullmatch(path.name)))
    return [path for _, path in found]


def number_of(path: Path) -> int:
    """Return which segment of a recording a file is."""
    match = NAME.fullmatch(path.name)
    assert match is not None, f"{path} is no segment"
    return int(match[1])


class SegmentWriter:
    """Writes one segment."""

    def __init__(self, folder: Path, number: int) -> None:
        """Make the file; one of that name is not touched."""
        self.path = folder / f"{number:06}.phx"
        self._file = self.path.open("xb", buffering=0)
        self._stream = zstd.ZstdCompressor(level=LEVEL)
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self.size = 0
        self._write_first_line()

    def _write_first_line(self) -> None:
        try:
            self._write(f"phalanx recording {FORMAT} (phalanx {__version__})\n".encode())
        except OSError:  # such as a full disk: nothing is better than a file that says nothing
            self._file.close()
            self.path.unlink(missing_ok=True)
            raise

    def add(self, entries: list[AnyEntry]) -> None:
        """Add entries to the next block; one call encodes all of them, which takes a third of the time of single calls."""
        data = ENCODER.encode(entries)
        self._pending += (self._stream.compress(LENGTH.pack(len(data))), self._stream.compress(data))
        self._pending_bytes += len(data)
        if self._pending_bytes >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write a block of what was added since the last one, at once."""
        if not self._pending:
            return
        block = b"".join((*self._pending, self._stream.flush(self._stream.FLUSH_BLOCK)))
        self._pending, self._pending_bytes = [], 0
        self._write(BLOCK.pack(len(block), crc32(block)) + block)

    def _write(self, data: bytes) -> None:
        written = 0
        while written < len(data):
            written += self._file.write(data[written:])
        self.size += len(data)

    def close(self) -> None:
        """Write the rest, and see it on the disk."""
        try:
            self.flush()
            os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class SegmentReader:
    """Reads one segment as far as it goes; `damage` says afterwards what stopped it."""

    def __init__(self, path: Path) -> None:
        """Open nothing yet."""
        self.path = path
        self.damage: Damage | None = None

    def refuse_others(self) -> None:
        """Refuse a file that somebody else wrote, or another version of this program."""
        with self.path.open("rb") as file:
            self._has_first_line(file.readline(MOST_LINE))

    def header(self) -> Header | None:
        """Return what the segment begins with; None if that cannot be read."""
        first = next(self.entries(), None)
        return first if isinstance(first, Header) else None

    def entries(self) -> Iterator[AnyEntry]:
        """Yield the entries, in the order in which they were written."""
        for number, block in enumerate(self._blocks(), 1):
            try:
                yield from (entry for array in self._arrays(block) for entry in DECODER.decode(array))
            except msgspec.MsgspecError as problem:
                self._stop(f"block {number} cannot be understood: {problem}")
                return

    def _blocks(self) -> Iterator[bytes]:
        stream = zstd.ZstdDecompressor()
        with self.path.open("rb") as file:
            if not self._has_first_line(file.readline(MOST_LINE)):
                return
            for number in range(1, sys.maxsize):
                at = file.tell()
                head = file.read(BLOCK.size)
                if not head:
                    return
                length, checksum = BLOCK.unpack(head) if len(head) == BLOCK.size else (MOST_BLOCK, 0)
                block = file.read(length) if length < MOST_BLOCK else b""
                if len(head) < BLOCK.size or (len(block) < length and length < MOST_BLOCK):
                    self._stop(f"ends within block {number}, at byte {at:,}", is_torn_tail=True)
                    return
                if crc32(block) != checksum or length >= MOST_BLOCK:
                    self._stop(f"block {number} at byte {at:,} does not match its checksum")
                    return
                yield stream.decompress(block)

    def _has_first_line(self, line: bytes) -> bool:
        """Tell whether a segment begins as it should; one that ends within its first line has nothing in it."""
        if not line.endswith(b"\n") and FIRST_WORDS.startswith(line[: len(FIRST_WORDS)]):
            self._stop("ends within its first line", is_torn_tail=True)
            return False
        match = FIRST_LINE.fullmatch(line)
        if match is None:
            raise RecordingError(
                f"{self.path}: does not begin as a recording does, or is damaged there; remove it, or name another folder"
            )
        if int(match[1]) != FORMAT:
            writer = match[2].decode(errors="replace")
            raise RecordingError(
                f"{self.path}: was written in format {int(match[1])} by phalanx {writer}, and this program reads format {FORMAT}; "
                "replay it with that version"
            )
        return True

    def _arrays(self, block: bytes) -> Iterator[memoryview]:
        at, view = 0, memoryview(block)
        while at < len(block):
            (length,) = LENGTH.unpack_from(block, at)
            yield view[at + LENGTH.size : at + LENGTH.size + length]
            at += LENGTH.size + length

    def _stop(self, text: str, *, is_torn_tail: bool = False) -> None:
        self.damage = Damage(self.path, text, is_torn_tail)
