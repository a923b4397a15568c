"""Helios (SenseTime, 2020): `cluster_log.csv` and, if given, `cluster_gpu_number.csv` of one cluster.

A job asks for `gpu_num` GPUs and `cpu_num` CPUs on `node_num` nodes: a task a node, the GPUs as even as can be, the CPUs
evenly and rounded up to a thousandth. The virtual cluster is the queue. If the second file is given, the GPUs of a virtual
cluster on its best day are the weight of its queue, and the best day of all, with 8 GPUs to a node, says how many nodes.
"""

from phalanx.sim.traces.draft import RecordedTrace, TraceDraft
from phalanx.sim.traces.rows import TraceRow
from phalanx.sim.traces.tasks import GPUS_PER_NODE, spread, workers
from phalanx.sim.traces.trace_files import CsvTable, Paths, TraceFiles
from phalanx.sim.workload import WorkloadGang

JOBS = CsvTable(("job_id", "vc", "gpu_num", "cpu_num", "node_num", "submit_time", "start_time", "duration"))
GPUS = CsvTable(("date", "total"))


def read(paths: Paths, *, nodes: int | None = None) -> RecordedTrace:
    """Read the trace of one cluster."""
    files, draft = TraceFiles(paths), TraceDraft(queue="vc")
    gangs = draft.each(files.rows(JOBS, is_needed=True), lambda row: gang_of_nodes(row, draft, queue="vc"))
    most = _gpus_by_cluster(draft.each(files.rows(GPUS), _gpus_of_day))
    total = most.pop("total", 0)
    weights = {draft.queues.same(name): gpus for name, gpus in most.items() if gpus}
    return draft.trace(gangs, nodes=nodes or -(-total // GPUS_PER_NODE) or None, weight_by_queue=weights)


def gang_of_nodes(row: TraceRow, draft: TraceDraft, *, queue: str, memory_mib: int = 0) -> WorkloadGang | None:
    """Return the job of a row, or nothing if it never ran; Acme has the same columns."""
    if not row.has("start_time") or not row.has("duration"):
        return None
    tasks_by_gpus = spread(row.count("gpu_num"), nodes=row.count("node_num"))
    cpu_milli = -(-row.amount("cpu_num", parts=1000) // sum(tasks_by_gpus.values()))
    parts = workers(tasks_by_gpus, cpu_milli=cpu_milli, memory_mib=memory_mib)
    duration = row.seconds("duration")
    if not duration:
        return None
    name = draft.gang_names.fresh(row.text("job_id"))
    return WorkloadGang(name, row.moment("submit_time"), duration, parts, draft.queues.same(row.text(queue)))


def _gpus_of_day(row: TraceRow) -> dict[str, int]:
    return {name: row.count(name) for name in row.columns() if name != "date"}


def _gpus_by_cluster(days: list[dict[str, int]]) -> dict[str, int]:
    most: dict[str, int] = {}
    for day in days:
        most |= {name: max(gpus, most.get(name, 0)) for name, gpus in day.items()}
    return most
