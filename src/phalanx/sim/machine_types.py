"""What simulated machines offer and what tasks ask for, written as Kubernetes writes it."""

from collections.abc import Mapping
from functools import lru_cache

from phalanx.model.resources import CPU, GPU, MEMORY, PODS
from phalanx.sim.workload import Machine

GPU_MODEL = "nvidia.com/gpu.product"
"""The label of a node that names the model of its GPUs."""
PODS_PER_NODE = 110
"""As many as a kubelet takes unless told otherwise."""
MIB_PER_GIB = 1024


@lru_cache(maxsize=65536)  # a trace has millions of tasks, but few sizes
def quantities(*, gpus: int = 0, cpu_milli: int = 0, memory_mib: int = 0) -> Mapping[str, str]:
    """Return amounts as quantities; what is 0 is left out."""
    found = {CPU: _cpu(cpu_milli), MEMORY: _memory(memory_mib), GPU: str(gpus)}
    return {name: quantity for name, quantity in found.items() if quantity != "0"}


def machine(name: str, *, labels: dict[str, str] | None = None, gpus: int = 0, cpu_milli: int = 0, memory_mib: int = 0) -> Machine:
    """Return a machine that offers this, and room for as many pods as usual."""
    offers = quantities(gpus=gpus, cpu_milli=cpu_milli, memory_mib=memory_mib)
    return Machine(name, {**offers, PODS: str(PODS_PER_NODE)}, labels or {})


def _cpu(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _memory(mib: int) -> str:
    if not mib:
        return "0"
    return f"{mib}Mi" if mib % MIB_PER_GIB else f"{mib // MIB_PER_GIB}Gi"
