"""Reading whole files, but never more of one than its bound: a device or a pipe may have no end."""

import sys
from pathlib import Path

from phalanx.errors import SnapshotError
from phalanx.model.bounds import INPUT_BYTES, Bound

STDIN = "-"


def read_bounded(path: str | Path, bound: Bound = INPUT_BYTES) -> bytes:
    """Return what a file holds, or stdin for "-"; raises OSError, and SnapshotError where there is more of it than allowed."""
    most = bound.most
    if str(path) == STDIN:
        text = sys.stdin.buffer.read(most + 1)
    else:
        with Path(path).open("rb") as file:
            text = file.read(most + 1)
    if len(text) > most:
        raise SnapshotError(f"{'stdin' if str(path) == STDIN else path}: too large: {bound.text}")
    return text
