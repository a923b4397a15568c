"""OpenB (Alibaba, 2023): a list of pods such as `openb_pod_list_default.csv` and, if given, one of nodes.

Every pod is a gang of one task. A share of a GPU (`gpu_milli` below 1000) is rounded up to a whole one. A pod runs from
`scheduled_time` to `deletion_time`. Latency-sensitive and guaranteed pods have a high priority, best-effort ones a low one. A
pod that names models of GPU (`gpu_spec`) goes to nodes that have one of them: a node has a label for its model, and one for
each choice of several models that some pod names and that its own is among.
"""

from phalanx.sim.traces.draft import RecordedTrace, TraceDraft, UniqueNames
from phalanx.sim.traces.rows import TraceRow
from phalanx.sim.traces.tasks import workers
from phalanx.sim.traces.trace_files import CsvTable, Paths, TraceFiles
from phalanx.sim.workload import GPU_MODEL, HIGH, LOW, NORMAL, Machine, WorkloadGang, machine

JOBS = CsvTable(("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"))
NODES = CsvTable(("sn", "cpu_milli", "memory_mib", "gpu", "model"))
PRIORITY_BY_QOS = {"LS": HIGH, "Guaranteed": HIGH, "Burstable": NORMAL, "BE": LOW}
BETWEEN = "|"
"""Separates the models that a pod may have."""
CHOICE = "gpu-choice.phalanx.dev/"
"""Begins the label of a node whose model of GPU is among several that a pod may have."""


def read(paths: Paths, *, nodes: int | None = None) -> RecordedTrace:
    """Read a list of pods."""
    files, draft, choices = TraceFiles(paths), TraceDraft(), UniqueNames("gpu")
    gangs = draft.each(files.rows(JOBS, is_needed=True), lambda row: _gang(row, draft, choices))
    machines = draft.each(files.rows(NODES), lambda row: _machine(row, draft, choices))
    return draft.trace(gangs, machines, nodes=nodes)


def _gang(row: TraceRow, draft: TraceDraft, choices: UniqueNames) -> WorkloadGang | None:
    duration = row.between("scheduled_time", "deletion_time") if row.has("scheduled_time") and row.has("deletion_time") else 0
    if not duration:
        return None
    parts = workers(
        {row.count("num_gpu"): 1},
        cpu_milli=row.amount("cpu_milli"), memory_mib=row.amount("memory_mib"), node_labels=_node_labels(row, choices),
    )  # fmt: skip
    name = draft.gang_names.fresh(row.text("name"))
    return WorkloadGang(name, row.moment("creation_time"), duration, parts, priority=_priority(row))


def _node_labels(row: TraceRow, choices: UniqueNames) -> dict[str, str]:
    models = row.text("gpu_spec").split(BETWEEN) if row.has("gpu_spec") else []
    if len(models) > 1:
        return {CHOICE + choices.same(BETWEEN.join(models)): "true"}
    return {GPU_MODEL: models[0]} if models else {}


def _priority(row: TraceRow) -> int:
    return PRIORITY_BY_QOS.get(row.text("qos"), NORMAL) if row.has("qos") else NORMAL


def _machine(row: TraceRow, draft: TraceDraft, choices: UniqueNames) -> Machine:
    labels = {}
    if row.has("model"):
        model = row.text("model")
        labels = {GPU_MODEL: model} | {CHOICE + name: "true" for text, name in choices if model in text.split(BETWEEN)}
    return machine(
        draft.machine_names.fresh(row.text("sn")), labels=labels,
        gpus=row.count("gpu"), cpu_milli=row.amount("cpu_milli"), memory_mib=row.amount("memory_mib"),
    )  # fmt: skip
