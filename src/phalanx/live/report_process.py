"""The report of a shadow, made by a process of its own: reading and simulating may take minutes, and watching goes on."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from phalanx.errors import RecordingError

NICENESS = 5
"""Whoever schedules on the same machine comes first."""


class ReportProcess:
    """Makes reports of a folder, one at a time."""

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        """Make none yet; `options` are those of `phalanx shadow report`."""
        self._words = [sys.executable, "-m", "phalanx", "shadow", "report", str(folder), "-o", "json", *options]

    async def report(self) -> dict[str, Any]:  # Any: as JSON has it
        """Return the report as plain data; the process ends with whoever waits for it."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*self._words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        try:
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
            out, problems = await process.communicate()
        except ProcessLookupError:
            out, problems = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            lines = problems.decode(errors="replace").strip().splitlines() or [f"exit status {process.returncode}"]
            raise RecordingError(f"no report: {lines[-1]}")
        found: dict[str, Any] = msgspec.json.decode(out)
        return found
