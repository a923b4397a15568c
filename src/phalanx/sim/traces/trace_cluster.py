"""A cluster for a trace that names no machines.

Its nodes have 8 GPUs, 128 CPUs and 1 TiB, and more of one if a single task asks for more. There are enough of them

- for the largest gang, and
- for the average load to be 90 % of what they offer, in the resource that is shortest: the load as it would be if every
  gang started when it was submitted, averaged from the first submission to the last.

A trace with all submissions at once is averaged over its longest duration instead.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil

from phalanx.model.resources import CPU, GPU, MEMORY, PODS, Resources, amount_of, scale_of
from phalanx.sim.traces.tasks import GPUS_PER_NODE
from phalanx.sim.workload import MIB_PER_GIB, Machine, WorkloadGang, WorkloadPart, machine

CPU_MILLI = 128_000
MEMORY_MIB = 1024 * MIB_PER_GIB
AVERAGE_LOAD = 0.9
BYTES_PER_MIB = 1 << 20


def made_cluster(gangs: Sequence[WorkloadGang], nodes: int | None = None) -> tuple[Machine, ...]:
    """Return machines for gangs in the order of their arrival; as many as asked for, or as the rule says."""
    model = _machine(gangs)
    offers = {name: _amount(name, quantity) for name, quantity in model.offers.items()}
    count = nodes or max(_for_the_load(gangs, offers), max(_for_the_gang(gang, offers) for gang in gangs))
    return tuple(replace(model, name=f"node-{number:05}") for number in range(count))


def _machine(gangs: Sequence[WorkloadGang]) -> Machine:
    gpus, memory_mib = ceil(_most(gangs, GPU) / scale_of(GPU)), ceil(_most(gangs, MEMORY) / BYTES_PER_MIB)
    return machine(
        "", gpus=max(GPUS_PER_NODE, gpus), cpu_milli=max(CPU_MILLI, _most(gangs, CPU)), memory_mib=max(MEMORY_MIB, memory_mib)
    )


def _most(gangs: Sequence[WorkloadGang], name: str) -> int:
    return max(_amount(name, part.request.get(name, "0")) for gang in gangs for part in gang.parts)


def _for_the_load(gangs: Sequence[WorkloadGang], offers: Resources) -> int:
    span = gangs[-1].submitted or max(gang.duration for gang in gangs)
    work: Counter[str] = Counter()
    for gang in gangs:
        seconds = min(gang.duration, span - gang.submitted)
        for part in gang.parts:
            for name, quantity in part.request.items():
                work[name] += ceil(part.tasks * _amount(name, quantity) * seconds)
    return max((ceil(amount / span / AVERAGE_LOAD / offers[name]) for name, amount in work.items()), default=1)


def _for_the_gang(gang: WorkloadGang, offers: Resources) -> int:
    return sum(-(-part.tasks // _tasks_per_node(part, offers)) for part in gang.parts)


def _tasks_per_node(part: WorkloadPart, offers: Resources) -> int:
    return min([offers[PODS], *(offers[name] // _amount(name, quantity) for name, quantity in part.request.items())])


@lru_cache(maxsize=65536)
def _amount(name: str, quantity: str) -> int:
    return amount_of(name, quantity)
