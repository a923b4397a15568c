"""Generates a workload like those that public traces of machine learning clusters show.

- Most gangs are a single task; the rest are powers of two up to 512 tasks, the large ones rare. A task has 1, 2, 4 or 8 GPUs;
  tasks of large gangs mostly a whole node's worth. What does not fit into the empty cluster is not drawn.
- Submissions are a Poisson process with the rhythm of a day, most at three in the afternoon, fewest at three in the morning. Some
  gangs come in sweeps: 8 to 40 small ones at once, alike, from one queue.
- Durations are log-normal, a median of half an hour with a long tail, cut below at a minute and above at five days. Then all of
  them are stretched or shrunk by one factor, so that the GPU seconds of all gangs are `load` times what the GPUs of the
  cluster could give in `days`: the shape stays, the load is as asked.
- On request, some gangs come in bursts, more of them are large, or the tail of the durations is heavier.
- Queues have weights from 1 to 4; the earlier ones get more gangs, whatever their weight. One gang in twelve has a high
  priority, a third a low one.

Equal settings give equal work, to the last byte.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import accumulate
from math import ceil, cos, log, pi
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from phalanx.errors import ConfigError
from phalanx.sim.workload import HIGH, LOW, MIB_PER_GIB, NORMAL, Machine, Workload, WorkloadGang, WorkloadPart, machine, quantities

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
LARGEST_USUAL = 32
"""A gang of more tasks is large."""
LARGE = sum(chance for tasks, chance in CHANCE_BY_TASKS.items() if tasks > LARGEST_USUAL) / sum(CHANCE_BY_TASKS.values())
BURST_EVERY, BURST_SECONDS = DAY / 2, 300.0
"""There is a burst in each of these spans, and its submissions are on average so long after its beginning."""
CPU_MILLI, MEMORY_MIB = 12_000, 96 * MIB_PER_GIB
"""What a task asks for with each GPU; nodes have a third more."""
FINEST = 0.001
"""Times are whole milliseconds."""
PLACE = "generated"
"""Begins every message, as it begins the work on the command line: `generated:jobs=10000`."""
MINUTES_PER_WEEK = 10_080
LIMITS: Mapping[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1), "jobs": (1, 1_000_000), "nodes": (1, 100_000), "gpus": (1, 64), "days": (0.01, 366),
    "load": (0.01, 10), "queues": (1, 1000), "sweeps": (0, 1), "rhythm": (0, 1),
    "tail": (0, 4), "bursts": (0, 1), "large": (0, 0.9), "checkpoints": (0, MINUTES_PER_WEEK),
}  # fmt: skip


# --- settings ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GeneratorSettings:
    """What to generate."""

    seed: int = 0
    """The same seed gives the same work."""
    jobs: int = 1000
    """Gangs."""
    nodes: int = 100
    gpus: int = 8
    """Of one node."""
    days: float = 7.0
    """In which gangs are submitted; the first begins at midnight."""
    load: float = 0.9
    """The work of all gangs, in GPU seconds, as a part of what the GPUs could do in these days."""
    queues: int = 4
    sweeps: float = 0.2
    """The part of the gangs that come many at once: small, alike, from one queue."""
    rhythm: float = 0.6
    """How much more than on average is submitted in the afternoon, and less at night; 0 is the same all day."""
    tail: float = SIGMA
    """The sigma of the log-normal durations; with more, fewer gangs have most of the work."""
    bursts: float = 0.0
    """The part of all submissions, gangs or sweeps, that come in bursts: one at some time of each half day, within some minutes."""
    large: float = LARGE
    """The part of the gangs outside of sweeps that have more than 32 tasks, of the sizes that fit into the cluster."""
    checkpoints: float = 0.0
    """The minutes from one checkpoint of a gang to the next; 0: gangs save nothing."""


_WHOLE = frozenset(field.name for field in fields(GeneratorSettings) if field.type is int)


def read_settings(text: str) -> dict[str, float]:
    """Return the settings in a text such as ``jobs=10000,nodes=1000,seed=7``; an empty text has none."""
    found: dict[str, float] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, sign, value = map(str.strip, entry.partition("="))
        if name in found:
            raise ConfigError(f"{PLACE}: {name}: is given twice; write it once")
        if not sign:
            raise ConfigError(f"{PLACE}: {entry!r} has no value; write for example jobs=10000")
        found[name] = _checked(name, value)
    return found


def settings_of(given: Mapping[str, float]) -> GeneratorSettings:
    """Return the settings with these values; the others have their defaults."""
    found: dict[str, Any] = {name: _checked(name, value) for name, value in given.items()}  # int or float, as the field is
    return GeneratorSettings(**found)


def _checked(name: str, value: str | float) -> float:
    if name not in LIMITS:
        raise ConfigError(f"{PLACE}: {name}: unknown setting; write one of: {', '.join(LIMITS)}")
    least, most = LIMITS[name]
    number = _number(value, is_whole=name in _WHOLE)
    if number is None or not least <= number <= most:
        kind = "a whole number" if name in _WHOLE else "a number"
        raise ConfigError(f"{PLACE}: {name}: {value!r} is not possible; write {kind} from {least} to {most}")
    return number


def _number(value: str | float, *, is_whole: bool) -> float | None:
    try:
        number = int(value) if is_whole else float(value)
    except (ValueError, OverflowError):
        return None
    return None if isinstance(value, float) and number != value else number


# --- gangs ---------------------------------------------------------------------------------------------------------------


class _Draw(NamedTuple):
    """A gang whose duration has its shape, but not yet its length."""

    submitted: float
    duration: float
    tasks: int
    gpus: int
    queue: str
    priority: int


def generate(seed: float = 0, **settings: float) -> Workload:
    """Return made-up work; `GeneratorSettings` has the settings and their defaults."""
    wanted = settings_of({"seed": seed, **settings})
    draws = sorted(_Chance(wanted).draws(), key=lambda draw: draw.submitted)
    work = sum(draw.duration * draw.tasks * draw.gpus for draw in draws)
    factor = wanted.load * wanted.nodes * wanted.gpus * wanted.days * DAY / work
    digits = len(str(wanted.jobs))
    gangs = tuple(_gang(f"job-{number:0{digits}}", draw, factor) for number, draw in enumerate(draws, start=1))
    return Workload(gangs, _machines(wanted), _weight_by_queue(wanted)).with_checkpoints(wanted.checkpoints)


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
        spans = ceil(wanted.days * DAY / BURST_EVERY) if wanted.bursts else 0
        self._bursts = [(number + self._random.random()) * BURST_EVERY for number in range(spans)]

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
        if self._bursts and self._random.random() < self._wanted.bursts:
            return round(min(self._random.choice(self._bursts) + self._random.expovariate(1 / BURST_SECONDS), span), 3)
        while True:
            moment = self._random.random() * span
            if self._random.random() * (1 + rhythm) <= 1 + rhythm * cos(2 * pi * (moment - BUSIEST) / DAY):
                return round(moment, 3)

    def _duration(self) -> float:
        longest: float = MEDIAN * (LONGEST / MEDIAN) ** (self._wanted.tail / SIGMA)  # a heavier tail is cut where it is as thin
        return min(max(self._random.lognormvariate(log(MEDIAN), self._wanted.tail), SHORTEST), max(longest, SHORTEST))


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
    return found if wanted.large == LARGE else _with_large(found, wanted.large)


def _with_large(chance_by_size: Mapping[tuple[int, int], float], part: float) -> dict[tuple[int, int], float]:
    """Return the chances with another part of large gangs."""
    of_large = sum(chance for (tasks, _), chance in chance_by_size.items() if tasks > LARGEST_USUAL)
    if not of_large:
        raise ConfigError(f"{PLACE}: large: no gang of more than {LARGEST_USUAL} tasks fits into the cluster; give it more nodes")
    others = sum(chance_by_size.values()) - of_large
    factor = part / (1 - part) * others / of_large
    return {size: chance * (factor if size[0] > LARGEST_USUAL else 1) for size, chance in chance_by_size.items()}
