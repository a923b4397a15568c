"""What a process has used so far, as the system tells."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Use:
    """Processor time, and the most memory it ever held."""

    cpu_seconds: float
    memory_mib: float


def use_of(pid: int) -> Use:
    """Look at a process that runs.

    `wait4` would tell as well, but counts as memory of a child what its parent held when it was started.
    """
    place = Path("/proc") / str(pid)
    fields = (place / "stat").read_text().rpartition(")")[2].split()
    peak = next(line for line in (place / "status").read_text().splitlines() if line.startswith("VmHWM:"))
    return Use((int(fields[11]) + int(fields[12])) / TICKS, int(peak.split()[1]) / 1024)
