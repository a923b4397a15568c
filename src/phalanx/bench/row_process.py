"""Rows are measured in processes of their own, so that the peak memory of a row is the row's.

`run_apart` starts a module as a program and reads the row that it prints; the program prints it with `print_row`.
"""

import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar

import msgspec

from phalanx.errors import PhalanxError

Row = TypeVar("Row")


def run_apart(module: str, *arguments: str, name: str, row: type[Row], most_seconds: float) -> Row:
    """Run a module in a new process and return the row that it prints; errors begin with the `name` of the row."""
    command = [sys.executable, "-m", module, *arguments]
    try:
        finished = subprocess.run(command, capture_output=True, check=False, timeout=most_seconds)
    except subprocess.TimeoutExpired:
        raise PhalanxError(f"{name}: took longer than {most_seconds:.0f} s") from None
    if finished.returncode != 0:
        raise PhalanxError(f"{name}: {_last_line(finished.stderr) or f'ended with {finished.returncode}'}")
    return msgspec.json.decode(finished.stdout, type=row)


def _last_line(output: bytes) -> str:
    return (output.decode(errors="replace").strip().splitlines() or [""])[-1]


def print_row(measure: Callable[[], object]) -> None:
    """Measure a row and print it as JSON; one that cannot be measured ends the process with a sentence."""
    try:
        row = measure()
    except PhalanxError as problem:
        sys.exit(str(problem))
    sys.stdout.buffer.write(msgspec.json.encode(row) + b"\n")
