"""Many storms, on all cores."""

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

from phalanx.live.garbage import look_seldom
from phalanx.testing.storm.plan import plan_of
from phalanx.testing.storm.storm import Outcome, play

CHUNK = 8


def play_all(seeds: Iterable[int], *, processes: int) -> Iterator[Outcome]:
    """Yield what became of each storm, in the order of the seeds."""
    if processes == 1:
        yield from map(play_seed, seeds)
        return
    # Not by fork: what the parent has loaded or frozen must not change what a storm does.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=look_seldom) as pool:
        yield from pool.map(play_seed, seeds, chunksize=CHUNK)


def play_seed(seed: int) -> Outcome:
    """Play the storm of a seed."""
    return play(plan_of(seed))


def seeds_of(text: str) -> range:
    """Read seeds: ``7`` or ``1..2000``."""
    first, dots, last = text.partition("..")
    if not first.isdigit() or (dots and not last.isdigit()):
        raise ValueError(f"{text!r} are no seeds; write one as 7, or several as 1..200")
    found = range(int(first), int(last if dots else first) + 1)
    if not found:
        raise ValueError(f"{text!r}: the last seed comes before the first; write 1..200")
    return found
