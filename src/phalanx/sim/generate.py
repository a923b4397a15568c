"""Made-up work of a cluster for machine learning, alike to what public traces of such clusters show.

- Most gangs are a single task; the rest are powers of two up to 512 tasks, the large ones rare. A task has 1, 2, 4 or 8 GPUs;
  tasks of large gangs mostly a whole node's worth. What does not fit into the empty cluster is not drawn.
- Submissions are a Poisson process with the rhythm of a day, most at three in the afternoon, fewest at three in the morning. Some
  gangs come in sweeps: 8 to 40 small ones at once, alike, from one queue.
- Durations are log-normal, a median of half an hour with a long tail, cut below at a minute and above at five days. Then all of
  them are stretched or shrunk by one factor, so that the GPU seconds of all gangs are `load` times what the GPUs of the
  cluster could give in `days`: the shape stays, the load is as asked.
- Queues have weights from 1 to 4; the earlier ones get more gangs, whatever their weight. One gang in twelve has a high
  priority, a third a low one.

Equal settings give equal work, to the last byte.
"""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from math import cos, log, pi
from random import Random
from typing import Generic, NamedTuple, TypeVar

from phalanx.sim.demand import GeneratorSettings, read_settings, settings_of
from phalanx.sim.machine_types import MIB_PER_GIB, machine, quantities
from phalanx.sim.priorities import HIGH, LOW, NORMAL
from phalanx.sim.workload import Machine, Workload, WorkloadGang, WorkloadPart

__all__ = ["generate", "read_settings"]

Item = TypeVar("Item")
HOUR, DAY = 3600.0, 86400.0
BUSIEST = 15 * HOUR
MEDIAN, SIGMA = HOUR / 2, 1.9
SHORTEST, LONGEST = 60.0, 5 * DAY
SWEEP = (8, 40)
SWEEP_SIZES = ((1, 1), (1, 2))
"""Tasks, and GPUs of a task, of the gangs of a sweep."""
WEIGHTS = (1, 2, 3, 4)
CHANCE_BY_PRIORITY = {LOW: 4, NORMAL: 7, HIGH: 1}
CHANCE_BY_TASKS = {1: 700, 2: 100, 4: 70, 8: 55, 16: 35, 32: 20, 64: 11, 128: 5, 256: 3, 512: 1}
CHANCE_BY_GPUS = {1: 55, 2: 15, 4: 15, 8: 15}
"""Of the task of a gang that has one only."""
CHANCE_BY_GPUS_OF_MANY = {1: 10, 2: 8, 4: 12, 8: 70}
CPU_MILLI, MEMORY_MIB = 12_000, 96 * MIB_PER_GIB
"""What a task asks for with each GPU; nodes have a third more."""
FINEST = 0.001
"""Times are whole milliseconds."""


class _Draw(NamedTuple):
    """A gang whose duration has its shape, but not yet its length."""

    submitted: float
    duration: float
    tasks: int
    gpus: int
    queue: str
    priority: int


def generate(seed: float = 0, **settings: float) -> Workload:
    """Return made-up work; `GeneratorSettings` says what may be set, and what stands where nothing is said."""
    wanted = settings_of({"seed": seed, **settings})
    draws = sorted(_Chance(wanted).draws(), key=lambda draw: draw.submitted)
    work = sum(draw.duration * draw.tasks * draw.gpus for draw in draws)
    factor = wanted.load * wanted.nodes * wanted.gpus * wanted.days * DAY / work
    digits = len(str(wanted.jobs))
    gangs = tuple(_gang(f"job-{number:0{digits}}", draw, factor) for number, draw in enumerate(draws, start=1))
    return Workload(gangs, _machines(wanted), _weight_by_queue(wanted))


def _gang(name: str, draw: _Draw, factor: float) -> WorkloadGang:
    request = quantities(gpus=draw.gpus, cpu_milli=draw.gpus * CPU_MILLI, memory_mib=draw.gpus * MEMORY_MIB)
    duration = max(round(draw.duration * factor, 3), FINEST)
    return WorkloadGang(name, draw.submitted, duration, (WorkloadPart(draw.tasks, request),), draw.queue, draw.priority)


def _machines(wanted: GeneratorSettings) -> tuple[Machine, ...]:
    cpu_milli, memory_mib = (wanted.gpus * amount * 4 // 3 for amount in (CPU_MILLI, MEMORY_MIB))
    return tuple(
        machine(f"node-{number:05}", gpus=wanted.gpus, cpu_milli=cpu_milli, memory_mib=memory_mib) for number in range(wanted.nodes)
    )


def _weight_by_queue(wanted: GeneratorSettings) -> dict[str, int]:
    return {f"team-{number + 1}": WEIGHTS[number % len(WEIGHTS)] for number in range(wanted.queues)}


class _Chance:
    """Draws gangs: one after the other, or a sweep of them."""

    def __init__(self, wanted: GeneratorSettings) -> None:
        self._wanted = wanted
        self._random = Random(wanted.seed)
        self._sizes = _Lot(_chance_by_size(wanted))
        self._sweep_sizes = [(tasks, gpus) for tasks, gpus in SWEEP_SIZES if gpus <= wanted.gpus]
        self._queues = _Lot({name: 1 / place for place, name in enumerate(_weight_by_queue(wanted), start=1)})
        self._priorities = _Lot(CHANCE_BY_PRIORITY)

    def draws(self) -> Iterator[_Draw]:
        """Yield as many gangs as are wanted."""
        left, sweeps = self._wanted.jobs, _chance_of_sweep(self._wanted.sweeps)
        while left:
            is_sweep = self._random.random() < sweeps
            drawn = list(self._sweep(min(left, self._random.randint(*SWEEP)))) if is_sweep else [self._draw()]
            yield from drawn
            left -= len(drawn)

    def _draw(self) -> _Draw:
        tasks, gpus = self._sizes.pick(self._random)
        return _Draw(
            self._moment(), self._duration(), tasks, gpus, self._queues.pick(self._random), self._priorities.pick(self._random)
        )

    def _sweep(self, count: int) -> Iterator[_Draw]:
        tasks, gpus = self._random.choice(self._sweep_sizes)
        first = self._draw()._replace(tasks=tasks, gpus=gpus)
        for _ in range(count):
            yield first._replace(duration=first.duration * self._random.uniform(0.8, 1.25))

    def _moment(self) -> float:
        """Return when something is submitted: any time is tried, and taken the more often the busier it is."""
        span, rhythm = self._wanted.days * DAY, self._wanted.rhythm
        while True:
            moment = self._random.random() * span
            if self._random.random() * (1 + rhythm) <= 1 + rhythm * cos(2 * pi * (moment - BUSIEST) / DAY):
                return round(moment, 3)

    def _duration(self) -> float:
        return min(max(self._random.lognormvariate(log(MEDIAN), SIGMA), SHORTEST), LONGEST)


class _Lot(Generic[Item]):
    """Things that are drawn with unequal chances."""

    def __init__(self, chance_by_item: Mapping[Item, float]) -> None:
        self._items = list(chance_by_item)
        self._sums = list(accumulate(chance_by_item.values()))

    def pick(self, random: Random) -> Item:
        """Draw one."""
        return random.choices(self._items, cum_weights=self._sums)[0]


def _chance_of_sweep(part: float) -> float:
    """Return how often a sweep must be drawn instead of one gang, so that this part of all gangs comes in sweeps."""
    usual = sum(SWEEP) / 2
    return part / (usual * (1 - part) + part)


def _chance_by_size(wanted: GeneratorSettings) -> dict[tuple[int, int], float]:
    """Return the sizes that the empty cluster can hold, as tasks and GPUs of a task, with their chances."""
    found: dict[tuple[int, int], float] = {}
    for tasks, chance in CHANCE_BY_TASKS.items():
        by_gpus = CHANCE_BY_GPUS if tasks == 1 else CHANCE_BY_GPUS_OF_MANY
        fitting = {gpus: share for gpus, share in by_gpus.items() if tasks <= wanted.nodes * (wanted.gpus // gpus)}
        found |= {(tasks, gpus): chance * share / sum(fitting.values()) for gpus, share in fitting.items()}
    return found
