"""Spot GPU (Alibaba, 2026): `job_info_df.csv` and, if given, `node_info_df.csv`.

A job is `worker_num` tasks of `gpu_request` GPUs and `cpu_request` CPUs each; a share of a GPU is rounded up to a whole one,
CPUs to a thousandth. A worker with more GPUs than any node of its model becomes several tasks. Tasks go to nodes with the
`gpu_model` of their job. The organization is the queue; jobs of type HP have a high priority, Spot jobs a low one.
"""

from phalanx.model.resources import GPU
from phalanx.sim.traces.draft import RecordedTrace, TraceDraft
from phalanx.sim.traces.rows import LARGEST_COUNT, TraceRow
from phalanx.sim.traces.tasks import GPUS_PER_NODE, spread, workers
from phalanx.sim.traces.trace_files import CsvTable, Paths, TraceFiles
from phalanx.sim.workload import GPU_MODEL, HIGH, LOW, NORMAL, Machine, WorkloadGang, WorkloadPart, machine

JOBS = CsvTable(
    ("job_name", "organization", "gpu_model", "cpu_request", "gpu_request", "worker_num", "submit_time", "duration", "job_type")
)
NODES = CsvTable(("gpu_model", "gpu_capacity_num", "cpu_num", "node_name"))
PRIORITY_BY_TYPE = {"hp": HIGH, "spot": LOW}


def read(paths: Paths, *, nodes: int | None = None) -> RecordedTrace:
    """Read a list of jobs."""
    files, draft = TraceFiles(paths), TraceDraft(queue="organization")
    machines = draft.each(files.rows(NODES), lambda row: _machine(row, draft))
    gpus_by_model = _gpus_by_model(machines)
    gangs = draft.each(files.rows(JOBS, is_needed=True), lambda row: _gang(row, draft, gpus_by_model))
    return draft.trace(gangs, machines, nodes=nodes)


def _gang(row: TraceRow, draft: TraceDraft, gpus_by_model: dict[str, int]) -> WorkloadGang | None:
    duration = row.seconds("duration") if row.has("duration") else 0
    if not duration:
        return None
    name = draft.gang_names.fresh(row.text("job_name"))
    priority = PRIORITY_BY_TYPE.get(row.text("job_type").lower(), NORMAL)
    queue = draft.queues.same(row.text("organization"))
    return WorkloadGang(name, row.moment("submit_time"), duration, _parts(row, gpus_by_model), queue, priority)


def _parts(row: TraceRow, gpus_by_model: dict[str, int]) -> tuple[WorkloadPart, ...]:
    model = row.text("gpu_model") if row.has("gpu_model") else ""
    of_worker = spread(row.amount("gpu_request"), gpus_per_node=gpus_by_model.get(model, GPUS_PER_NODE))
    tasks_by_gpus = {gpus: tasks * row.count("worker_num", least=1) for gpus, tasks in of_worker.items()}
    if sum(tasks_by_gpus.values()) > LARGEST_COUNT:
        raise row.problem("gpu_request", f"with {row.text('worker_num')} workers that makes more than {LARGEST_COUNT} tasks")
    cpu_milli = -(-row.amount("cpu_request", parts=1000) // sum(of_worker.values()))
    return workers(tasks_by_gpus, cpu_milli=cpu_milli, node_labels={GPU_MODEL: model} if model else {})


def _machine(row: TraceRow, draft: TraceDraft) -> Machine:
    return machine(
        draft.machine_names.fresh(row.text("node_name")), labels={GPU_MODEL: row.text("gpu_model")},
        gpus=row.count("gpu_capacity_num", least=1), cpu_milli=row.amount("cpu_num", parts=1000),
    )  # fmt: skip


def _gpus_by_model(machines: list[Machine]) -> dict[str, int]:
    most: dict[str, int] = {}
    for node in machines:
        model = node.labels[GPU_MODEL]
        most[model] = max(int(node.offers[GPU]), most.get(model, 0))
    return most
