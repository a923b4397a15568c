"""Invented results of simulations, as they are written to JSON: for pages and tables about them."""

from random import Random
from statistics import mean, quantiles
from typing import Any

from phalanx.sim.report_text import Result

Gang = dict[str, Any]  # plain data, as in a result
SESSION_SECONDS = 10.0


def gang(
    name: str, queue: str = "research", submitted: float = 0.0, wait: float | None = 0.0, run: float | None = 60.0, **other: Any
) -> Gang:
    """Return a gang that waits and then runs; without a wait it never starts, without a run it never ends."""
    started = None if wait is None else submitted + wait
    finished = None if started is None or run is None else started + run
    spans = [] if started is None else [[started, finished]]
    life = {"submitted": submitted, "started": started, "finished": finished, "wait": wait, "run": run, "spans": spans}
    size = {"priority": 0, "tasks": 4, "minimum": 4, "amount": 4.0, "evicted": 0, "why": ""}
    return {"name": name, "queue": queue, **size, **life, **other}


def eviction(of: str, time: float, message: str = "room is needed for a gang of higher priority") -> dict[str, Any]:
    """Return the eviction of the first pod of a gang."""
    return {"time": time, "pod": f"{of}-0", "gang": of, "action": "preempt", "for": "research/urgent", "message": message}


def statistics(waits: list[float]) -> dict[str, float]:
    """Return the figures of some waits."""
    if not waits:
        return dict.fromkeys(("count", "mean", "p50", "p90", "p99", "max"), 0.0)
    parts = quantiles(waits, n=100, method="inclusive") if len(waits) > 1 else waits * 99
    return {"count": len(waits), "mean": mean(waits), "p50": parts[49], "p90": parts[89], "p99": parts[98], "max": max(waits)}


def result(gangs: list[Gang], seconds: float = 600.0, **other: Any) -> Result:
    """Return a result about gangs; nodes, queues, evictions and deadlocks are empty if not given."""
    whole = {
        "profile": "phalanx",
        "seed": 7,
        "start": "2026-01-01T00:00:00Z",
        "seconds": seconds,
        "ending": "done",
        "resource": "nvidia.com/gpu",
        "gangs": [gang | {"wait": seconds - gang["submitted"]} if gang["started"] is None else gang for gang in gangs],
        "evictions": [],
        "timeouts": [],
        "deadlocks": [],
        "nodes": {"names": [], "times": [], "held": []},
        "queues": {},
    } | other
    return whole | {"metrics": _metrics(whole) | other.get("metrics", {})}


def _metrics(whole: Result) -> dict[str, Any]:
    gangs, evictions = whole["gangs"], whole["evictions"]
    return {
        "allocation": 0.81,
        "occupancy": 0.78,
        "fragmentation": 0.064,
        "sessions": int(whole["seconds"] / SESSION_SECONDS),
        "gangs": len(gangs),
        "started": sum(gang["started"] is not None for gang in gangs),
        "finished": sum(gang["finished"] is not None for gang in gangs),
        "waiting": sum(gang["started"] is None for gang in gangs),
        "evictions": len(evictions),
        "evictedGangs": len({eviction["gang"] for eviction in evictions}),
        "goodput": 36000.0,
        "lostWork": 5400.0 * len(evictions),
        "goodputPart": 0.6,
        "lostPart": 0.01 * len(evictions),
        "slowdown": statistics([gang.get("slowdown", 1.0) for gang in gangs]),
        "fairness": 0.93,
        "belowDeserved": 0.12,
        "makespan": max((gang["finished"] for gang in gangs if gang["finished"] is not None), default=None),
        "wait": statistics(_waits(gangs)),
        "waitByQueue": _waits_by(gangs, "queue"),
        "waitBySize": _waits_by(gangs, "tasks"),
    }


def _waits(gangs: list[Gang]) -> list[float]:
    return [gang["wait"] for gang in gangs]


def _waits_by(gangs: list[Gang], key: str) -> dict[str, dict[str, float]]:
    return {
        str(value): statistics(_waits([gang for gang in gangs if gang[key] == value]))
        for value in sorted({gang[key] for gang in gangs})
    }


def deadlock() -> Result:
    """Return two gangs of four that hold two of four GPUs each, for ever, beside one that ran."""
    stuck = [
        gang(f"research/{name}", wait=None, run=None, why="2 of 4 tasks have a place; 2 more GPUs are needed")
        for name in ("left", "right")
    ]
    nodes = {"names": ["node-0", "node-1"], "times": [0.0, 60.0, 70.0], "held": [[1.0, 0.0, 1.0], [0.5, 0.0, 1.0]]}
    queues = {"research": {"times": [0.0, 60.0, 70.0], "held": [3.0, 0.0, 4.0], "deserved": [4.0, 4.0, 4.0]}}
    found = [{"since": 70.0, "gangs": ["research/left", "research/right"], "holds": 4.0}]
    return result([gang("research/first", tasks=3, minimum=3, amount=3.0), *stuck], deadlocks=found, nodes=nodes, queues=queues)


def crowd(count: int, seed: int = 7, queues: int = 6, nodes: int = 40, profile: str = "phalanx") -> Result:
    """Return very many gangs over a day, of which some are evicted and begin anew."""
    chance = Random(seed)
    seconds = 86400.0
    gangs = [_drawn(chance, number, queues, seconds) for number in range(count)]
    evictions = [_interrupt(gang) for gang in gangs if gang["run"] and gang["priority"] == 0 and chance.random() < 0.05]
    times = [seconds * step / 300 for step in range(300)]
    return result(
        gangs,
        seconds,
        profile=profile,
        seed=seed,
        evictions=sorted(evictions, key=lambda item: float(item["time"])),
        nodes={
            "names": [f"node-{number}" for number in range(nodes)],
            "times": times,
            "held": [_walk(chance, 300) for _ in range(nodes)],
        },
        queues={f"team-{number}": _share(chance, times) for number in range(queues)},
    )


def _drawn(chance: Random, number: int, queues: int, seconds: float) -> Gang:
    submitted, wait, run = chance.uniform(0, seconds), chance.lognormvariate(4, 2), chance.lognormvariate(7, 1.5)
    started = submitted + wait if submitted + wait < seconds else None
    is_done = started is not None and started + run < seconds
    tasks = 2 ** min(int(chance.expovariate(0.6)), 9)
    queue = f"team-{min(int(chance.expovariate(0.5)), queues - 1)}"
    drawn = gang(f"{queue}/job-{number}", queue, submitted, None if started is None else wait, run if is_done else None)
    return drawn | {"tasks": tasks, "minimum": tasks, "amount": float(tasks), "priority": chance.choice([0, 0, 0, 100])}


def _interrupt(victim: Gang) -> dict[str, Any]:
    begin, end = victim["spans"][0]
    moment = begin + (end - begin) / 2
    back = moment + (end - begin) / 4
    victim.update(spans=[[begin, moment], [back, end]], evicted=1)
    return eviction(victim["name"], moment)


def _walk(chance: Random, steps: int) -> list[float]:
    held, walk = chance.random(), []
    for _ in range(steps):
        held = min(max(held + chance.uniform(-0.15, 0.16), 0.0), 1.0)
        walk.append(held)
    return walk


def _share(chance: Random, times: list[float]) -> dict[str, list[float]]:
    deserved = [float(20 + 10 * (step // 80)) for step in range(len(times))]
    return {"times": times, "held": [value * 50 for value in _walk(chance, len(times))], "deserved": deserved}
