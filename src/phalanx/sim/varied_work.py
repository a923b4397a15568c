"""Recorded work as it might have been: denser or sparser, and a little different for each seed.

A trace is one sample, often of a cluster with much room to spare. What is better in it by more than chance is still better when
gaps between submissions and durations vary a bit, and what a scheduler is worth shows only under load.
"""

from dataclasses import replace
from random import Random

from phalanx.errors import ConfigError
from phalanx.model.resources import CPU, GPU, amount_of
from phalanx.sim.workload import Workload

FINEST_DIGITS = 3
"""Times are whole milliseconds."""


def jittered(workload: Workload, part: float, seed: int) -> Workload:
    """Return the work with every gap between submissions, and every duration, up to this part longer or shorter."""
    if not part:
        return workload
    chance, moment, before, gangs = Random(seed), 0.0, 0.0, []
    for gang in workload.gangs:
        moment, before = moment + (gang.submitted - before) * chance.uniform(1 - part, 1 + part), gang.submitted
        duration = max(gang.duration * chance.uniform(1 - part, 1 + part), 10**-FINEST_DIGITS)
        gangs.append(replace(gang, submitted=round(moment, FINEST_DIGITS), duration=round(duration, FINEST_DIGITS)))
    return replace(workload, gangs=tuple(gangs))


def at_load(workload: Workload, load: float) -> Workload:
    """Return the work with all gaps between submissions stretched or shrunk by one factor, so that the load is as asked.

    The load is the work of all gangs as a part of what the machines could do until the last submission, of GPUs if there are any.
    """
    resource = GPU if any(GPU in machine.offers for machine in workload.machines) else CPU
    offered = sum(amount_of(resource, machine.offers.get(resource, "0")) for machine in workload.machines)
    asked = sum(
        gang.duration * part.tasks * amount_of(resource, part.request.get(resource, "0"))
        for gang in workload.gangs
        for part in gang.parts
    )
    span = workload.gangs[-1].submitted if workload.gangs else 0.0
    if not (span and asked and offered):
        raise ConfigError(f"--workload: load={load:g}: the trace has one submission only, or asks for no {resource}; leave it out")
    factor = asked / (offered * load) / span
    return replace(
        workload, gangs=tuple(replace(gang, submitted=round(gang.submitted * factor, FINEST_DIGITS)) for gang in workload.gangs)
    )
