"""Recorded work of real clusters: seven public formats, each read by a module of its own.

    trace = read_trace("helios", ["data/Venus"])
    trace.workload, trace.notes, trace.left_out

What is mapped to what, and what is rounded, says the docstring of each module. All of them share this: times begin with the
first submission, a broken row is refused alone and noted, jobs that never ran are left out and counted, and a trace without
machines gets a cluster (`trace_cluster.py`).
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from phalanx.errors import ConfigError, TraceError
from phalanx.sim.traces import acme, helios, openb, pai, philly, spot_gpu, tiresias
from phalanx.sim.traces.draft import NoJobs, RecordedTrace
from phalanx.sim.traces.trace_files import FileKind, Paths, TraceFiles

__all__ = ["FORMATS", "RecordedTrace", "detect_format", "read_trace"]


class TraceReader(Protocol):
    """Reads one format."""

    def __call__(self, paths: Paths, *, nodes: int | None = None) -> RecordedTrace:
        """Read a trace; `nodes` is the number of nodes if the trace names no machines."""


class TraceFormat(NamedTuple):
    """A format: what its file with the jobs holds, and how it is read."""

    jobs: FileKind
    read: TraceReader


FORMATS: Mapping[str, TraceFormat] = {
    "acme": TraceFormat(acme.JOBS, acme.read),
    "helios": TraceFormat(helios.JOBS, helios.read),
    "openb": TraceFormat(openb.JOBS, openb.read),
    "pai": TraceFormat(pai.JOBS, pai.read),
    "philly": TraceFormat(philly.JOBS, philly.read),
    "spot-gpu": TraceFormat(spot_gpu.JOBS, spot_gpu.read),
    "tiresias": TraceFormat(tiresias.JOBS, tiresias.read),
}


def read_trace(name: str, paths: Paths, *, nodes: int | None = None) -> RecordedTrace:
    """Read files, or the files of a folder, in the format of this name; `nodes` is the size of a cluster that is made up."""
    if name not in FORMATS:
        raise ConfigError(f"trace format {name!r}: unknown; write one of: {', '.join(FORMATS)}")
    if nodes is not None and nodes < 1:
        raise ConfigError(f"nodes: {nodes} is too few; write 1 or more")
    try:
        return FORMATS[name].read(paths, nodes=nodes)
    except NoJobs as problem:
        raise TraceError(f"{TraceFiles(paths)}: {problem}") from problem


def detect_format(paths: Paths) -> str:
    """Return the name of the format of these files, which their columns show."""
    files = TraceFiles(paths)
    found = next((name for name, known in FORMATS.items() if files.holds(known.jobs)), None)
    if found is None:
        raise TraceError(f"{files}: no trace that we know; expected jobs in one of the formats: {', '.join(FORMATS)}")
    return found
