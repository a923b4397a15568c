"""Acme (Shanghai, 2023): `trace_seren.csv` or `trace_kalos.csv`, one cluster each.

A job asks for `gpu_num` GPUs and `cpu_num` CPUs on `node_num` nodes: a task a node, the GPUs as even as can be, the CPUs
evenly and rounded up to a thousandth; in Kalos each task asks for `mem_per_pod_GB`, read as GiB and rounded up to a MiB. The
user is the queue. The column `queue` is how long the job waited there, and is not used.
"""

from phalanx.sim.traces.draft import RecordedTrace, TraceDraft
from phalanx.sim.traces.helios import gang_of_nodes
from phalanx.sim.traces.rows import TraceRow
from phalanx.sim.traces.trace_files import CsvTable, Paths, TraceFiles
from phalanx.sim.workload import MIB_PER_GIB, WorkloadGang

JOBS = CsvTable(("job_id", "user", "node_num", "gpu_num", "cpu_num", "type", "submit_time", "start_time", "duration", "gpu_time"))


def read(paths: Paths, *, nodes: int | None = None) -> RecordedTrace:
    """Read the trace of one cluster."""
    draft = TraceDraft(queue="user")
    gangs = draft.each(TraceFiles(paths).rows(JOBS, is_needed=True), lambda row: _gang(row, draft))
    return draft.trace(gangs, nodes=nodes)


def _gang(row: TraceRow, draft: TraceDraft) -> WorkloadGang | None:
    return gang_of_nodes(row, draft, queue="user", memory_mib=row.amount("mem_per_pod_GB", parts=MIB_PER_GIB))
