"""Tiresias (University of Michigan, 2019): a list of jobs such as `60_job.csv` and, if given, a cluster such as `cluster_spec.csv`.

A job asks for `num_gpu` GPUs, in tasks of at most a node each, as even as can be; nodes have 8 GPUs where no cluster is given.
The nodes of a switch have a label that names it. Memory (`mem_p_node`) is read as GiB.
"""

from phalanx.sim.traces.draft import RecordedTrace, TraceDraft
from phalanx.sim.traces.rows import LARGEST_COUNT, TraceRow
from phalanx.sim.traces.tasks import GPUS_PER_NODE, spread, workers
from phalanx.sim.traces.trace_files import CsvTable, Paths, TraceFiles
from phalanx.sim.workload import MIB_PER_GIB, Machine, WorkloadGang, machine

JOBS = CsvTable(("job_id", "num_gpu", "submit_time", "duration"))
CLUSTER = CsvTable(("num_switch", "num_node_p_switch", "num_gpu_p_node"))
SWITCH = "phalanx.dev/switch"
"""The label of a node that names its switch."""


def read(paths: Paths, *, nodes: int | None = None) -> RecordedTrace:
    """Read a list of jobs."""
    files, draft = TraceFiles(paths), TraceDraft()
    clusters = draft.each(files.rows(CLUSTER), _cluster)
    gpus_per_node = max((gpus for gpus, _ in clusters), default=GPUS_PER_NODE)
    gangs = draft.each(files.rows(JOBS, is_needed=True), lambda row: _gang(row, draft, gpus_per_node))
    return draft.trace(gangs, [node for _, cluster in clusters for node in cluster], nodes=nodes)


def _gang(row: TraceRow, draft: TraceDraft, gpus_per_node: int) -> WorkloadGang | None:
    parts = workers(spread(row.count("num_gpu"), gpus_per_node=gpus_per_node))
    duration = row.seconds("duration") if row.has("duration") else 0
    return (
        WorkloadGang(draft.gang_names.fresh(row.text("job_id")), row.moment("submit_time"), duration, parts) if duration else None
    )


def _cluster(row: TraceRow) -> tuple[int, list[Machine]]:
    gpus, switches, nodes = (
        row.count("num_gpu_p_node", least=1),
        row.count("num_switch", least=1),
        row.count("num_node_p_switch", least=1),
    )
    if switches * nodes > LARGEST_COUNT:
        raise row.problem("num_node_p_switch", f"more than {LARGEST_COUNT} nodes in all")
    cpu_milli, memory_mib = row.amount("num_cpu_p_node", parts=1000), row.amount("mem_p_node", parts=MIB_PER_GIB)
    return gpus, [
        machine(f"node-{switch}-{node}", labels={SWITCH: f"switch-{switch}"}, gpus=gpus, cpu_milli=cpu_milli, memory_mib=memory_mib)
        for switch in range(switches)
        for node in range(nodes)
    ]
