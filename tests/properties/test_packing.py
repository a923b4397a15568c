"""Packing tasks of several classes is exact: what it finds fits, and where it finds nothing, trying every way finds nothing."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.task import GangKey, Task
from phalanx.placement.packing import Budget, Load, pack
from phalanx.session.cycle import run_cycle
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import crowded_clusters as crowds
from tests.support.eviction_judge import Judge

SEEDS = st.integers(0, 2**40)
Row = tuple[int, ...]
PLENTY = 10**9


def there_is_a_way(rooms: Sequence[Row], counts: Row, requests: Sequence[Row], caps: Sequence[Row] | None = None) -> bool:
    """Try everything that each node could take, node after node."""
    loads = []
    for node, room in enumerate(rooms):
        most = [min(count, caps[kind][node] if caps else count) for kind, count in enumerate(counts)]
        loads.append([taken for taken in product(*(range(part + 1) for part in most)) if fits(room, taken, requests)])

    @cache
    def rest(node: int, left: Row) -> bool:
        if not any(left):
            return True
        choices = loads[node] if node < len(loads) else []
        return any(
            rest(node + 1, tuple(max(want - part, 0) for want, part in zip(left, taken, strict=True)))
            for taken in largest(choices, left)
        )

    return rest(0, counts)


def largest(choices: Sequence[Row], left: Row) -> Iterator[Row]:
    """Yield what a node could take of what is left, without what is less than something else it could take."""
    cut = {tuple(map(min, choice, left)) for choice in choices}
    for choice in cut:
        if not any(other != choice and all(map(int.__le__, choice, other)) for other in cut):
            yield choice


def fits(room: Row, taken: Row, requests: Sequence[Row]) -> bool:
    asked = [sum(part * request[row] for part, request in zip(taken, requests, strict=True)) for row in range(len(room))]
    return all(amount <= free or not amount for amount, free in zip(asked, room, strict=True))


@settings(deadline=None, max_examples=500)
@given(SEEDS)
def test_packing_finds_a_way_exactly_when_there_is_one(seed: int) -> None:
    chance = Random(seed)
    nodes, rows, kinds = chance.randint(1, 4), chance.randint(1, 3), chance.randint(2, 4)
    rooms = [tuple(chance.randint(-1, 7) for _ in range(rows)) for _ in range(nodes)]
    requests = [tuple(chance.randint(0, 4) for _ in range(rows)) for _ in range(kinds)]
    counts = tuple(chance.randint(1, 4) for _ in range(kinds))
    caps = [tuple(chance.randint(0, 4) for _ in range(nodes)) for _ in range(kinds)]
    load = Load(list(counts), [np.array(request) for request in requests], [np.array(cap) for cap in caps])
    found = pack(np.array(rooms).T, load, Budget(PLENTY))
    assert (found is not None) == there_is_a_way(rooms, counts, requests, caps)
    if found is not None:
        assert [int(column.sum()) for column in found] == list(counts)
        assert all((column <= cap).all() for column, cap in zip(found, load.caps, strict=True))
        assert all(fits(room, tuple(int(column[node]) for column in found), requests) for node, room in enumerate(rooms))


def test_packing_stops_when_its_budget_is_spent() -> None:
    load = Load([40, 40], [np.array([2]), np.array([3])], [np.full(20, 40), np.full(20, 40)])
    assert pack(np.full((1, 20), 10), load, Budget(PLENTY)) is not None
    assert pack(np.full((1, 20), 10), load, Budget(1000)) is None


def crowd(chance: Random, *, tasks: int) -> list[Document]:
    """Return a full cluster and a more important gang of many tasks of two or three sizes."""
    found = [*crowds.classes(), build.queue("blue")]
    sizes = [(chance.randint(1, 5), chance.randint(1, 5)) for _ in range(chance.randint(2, 3))]
    needed = [chance.choice(sizes) for _ in range(tasks)]
    nodes = chance.randint(3, 5)
    total = [sum(size[row] for size in needed) for row in (0, 1)]
    offers = [{"cpu": int(total[0] * 1.3 / nodes) + 1, "memory": int(total[1] * 1.3 / nodes) + 1} for _ in range(nodes)]
    for number, offer in enumerate(offers):
        found.append(build.node(f"node-{number}", labels={}, spec={}, **offer))
        left, pod = dict(offer), 0
        while pod < 10:
            asks = {kind: chance.randint(1, max(most // 6, 1)) for kind, most in offer.items()}
            if any(left[kind] < amount for kind, amount in asks.items()):
                break
            left = {kind: left[kind] - amount for kind, amount in asks.items()}
            name = f"old-{number}-{pod}"
            found += [build.pod_group(name, queue="blue", phase="Running", priorityClassName="low")]
            found += [build.pod(name, group=name, on=f"node-{number}", spec={}, **asks)]
            pod += 1
    group = build.pod_group("new", min_member=tasks, queue="blue", priorityClassName="high")
    return [*found, group, *(build.pod(f"new-{n}", group="new", cpu=cpu, memory=memory) for n, (cpu, memory) in enumerate(needed))]


def has_place(judge: Judge, tasks: Sequence[Task], gone: Sequence[Task]) -> bool:
    """Tell whether the tasks have a place together once others are gone; pods are packed by their sizes."""
    rows = ("cpu", "memory", "pods")
    rooms = [tuple(int(room.get(row, 0)) for row in rows) for room in judge.rooms(gone).values()]
    sizes = [tuple(int(task.shape.request.get(row, 0)) for row in rows) for task in tasks]
    kinds = sorted(set(sizes))
    return there_is_a_way(rooms, tuple(sizes.count(kind) for kind in kinds), kinds)


@pytest.mark.parametrize("tasks", [17, 24])
@settings(deadline=None, max_examples=6)
@given(seed=SEEDS)
def test_large_gangs_of_several_sizes_evict_nobody_they_could_do_without(seed: int, tasks: int) -> None:
    cluster = ObjectCluster()
    for item in crowd(Random(seed), tasks=tasks):
        assert cluster.put(item)
    snapshot = cluster.snapshot(0.0)
    decisions = run_cycle(snapshot, policy_of_profile("phalanx"), CATALOGUE)
    judge = Judge(snapshot, decisions)
    waiting = list(snapshot.members_of(GangKey("default/new")).values())
    victims = judge.victims()
    if not victims:
        assert decisions.binds or not has_place(judge, waiting, judge.running)
        return
    assert len(decisions.pipelined) + len(decisions.binds) == tasks
    for spared in victims:
        assert not has_place(judge, waiting, [task for task in victims if task is not spared])
