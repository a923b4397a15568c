"""Made-up work is always work that the cluster could do: valid, repeatable, of the load that was asked for."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.model.resources import PODS, amount_of
from phalanx.sim.generate import generate
from phalanx.sim.workload import Machine, Workload, WorkloadGang

GPU = "nvidia.com/gpu"
SETTINGS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**40),
        "jobs": st.integers(1, 300),
        "nodes": st.one_of(st.integers(1, 5), st.integers(1, 600)),
        "gpus": st.integers(1, 16),
        "days": st.floats(0.5, 30),
        "load": st.floats(0.1, 3),
        "queues": st.integers(1, 9),
        "sweeps": st.floats(0, 1),
        "rhythm": st.floats(0, 1),
    }
)


def gpu_seconds(gang: WorkloadGang) -> float:
    return gang.duration * sum(part.tasks * int(part.request[GPU]) for part in gang.parts)


def tasks_per_node(machine: Machine, request: dict[str, str]) -> int:
    return min(amount_of(name, machine.offers[name]) // amount_of(name, asked) for name, asked in request.items())


def fits(gang: WorkloadGang, workload: Workload) -> bool:
    """Tell whether the empty cluster holds the gang, whose tasks are all alike, on nodes that are all alike."""
    (part,) = gang.parts
    return part.tasks <= len(workload.machines) * tasks_per_node(workload.machines[0], {**part.request, PODS: "1"})


@settings(deadline=None, max_examples=150)
@given(SETTINGS)
def test_generated_work_is_valid(wanted: dict[str, float]) -> None:
    workload = generate(**wanted)
    times = [gang.submitted for gang in workload.gangs]
    assert len(times) == wanted["jobs"]
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] <= wanted["days"] * 86400
    assert len({gang.name for gang in workload.gangs}) == len(times)
    assert len({machine.name for machine in workload.machines}) == wanted["nodes"]
    assert len(workload.weight_by_queue) == wanted["queues"]
    assert {gang.queue for gang in workload.gangs} <= set(workload.weight_by_queue)
    assert all(gang.duration > 0 and 1 <= gang.tasks <= 512 for gang in workload.gangs)


@settings(deadline=None, max_examples=150)
@given(SETTINGS)
def test_the_empty_cluster_holds_every_generated_gang(wanted: dict[str, float]) -> None:
    workload = generate(**wanted)
    assert len({tuple(machine.offers.items()) for machine in workload.machines}) == 1
    assert all(fits(gang, workload) for gang in workload.gangs)


@settings(deadline=None, max_examples=50)
@given(SETTINGS)
def test_equal_settings_generate_equal_work_byte_for_byte(wanted: dict[str, float]) -> None:
    assert pickle.dumps(generate(**wanted)) == pickle.dumps(generate(**wanted))


@settings(deadline=None, max_examples=150)
@given(SETTINGS)
def test_the_generated_load_is_the_one_asked_for(wanted: dict[str, float]) -> None:
    workload = generate(**wanted)
    possible = wanted["nodes"] * wanted["gpus"] * wanted["days"] * 86400
    assert sum(map(gpu_seconds, workload.gangs)) / possible == pytest.approx(wanted["load"], rel=0.001)
