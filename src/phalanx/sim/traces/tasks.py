"""The tasks of a job whose trace says only how many GPUs it has in all, and on how many nodes."""

from collections.abc import Mapping

from phalanx.sim.workload import WorkloadPart, quantities

GPUS_PER_NODE = 8
"""Where a trace does not say it: so it was in Philly, Helios and Acme."""


def spread(gpus: int, *, nodes: int = 1, gpus_per_node: int = GPUS_PER_NODE) -> dict[int, int]:
    """Return how many tasks have how many GPUs: a task a node, as even as can be, on more nodes if these have too few GPUs."""
    tasks = max(nodes, -(-gpus // gpus_per_node), 1)
    least, more = divmod(gpus, tasks)
    return {least + 1: more, least: tasks - more} if more else {least: tasks}


def workers(
    tasks_by_gpus: Mapping[int, int], *, cpu_milli: int = 0, memory_mib: int = 0, node_labels: dict[str, str] | None = None
) -> tuple[WorkloadPart, ...]:
    """Return tasks by their number of GPUs as the parts of a gang; CPU and memory are of one task."""
    return tuple(
        WorkloadPart(
            tasks,
            quantities(gpus=gpus, cpu_milli=cpu_milli, memory_mib=memory_mib),
            "worker" if len(tasks_by_gpus) == 1 else f"worker-{gpus}gpu",
            node_labels or {},
        )
        for gpus, tasks in tasks_by_gpus.items()
    )
