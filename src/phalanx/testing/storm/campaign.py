"""Many storms, on all cores."""

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

from phalanx.dev.worker_process import end_with_parent
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
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin_process) as pool:
        yield from pool.map(play_seed, seeds, chunksize=CHUNK)


def _begin_process() -> None:
    end_with_parent()
    look_seldom()


def play_seed(seed: int) -> Outcome:
    """Play the storm of a seed."""
    return play(plan_of(seed))
