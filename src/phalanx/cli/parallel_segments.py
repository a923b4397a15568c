"""Segments of a recording replayed at the same time, each in a process of its own: none of them needs another one."""

import gc
import signal
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

from phalanx.cli.simulate_run import GARBAGE
from phalanx.recording.replayed_segment import ReplayedSegment, ReplayTally, replayed_segment

LEAST_BYTES = 256 << 10
"""What is smaller is replayed in a row before processes have begun."""
BETWEEN_LOOKS_SECONDS = 0.1


class _Shared(NamedTuple):
    """What the processes have in common."""

    held: "Synchronized[int]"
    """How many sessions all of them have replayed."""
    is_over: Event


_shared: list[_Shared] = []
"""In a process that replays segments, what it shares with the others."""


def worth_parallel(paths: Sequence[Path]) -> bool:
    """Tell whether several processes are done sooner than one."""
    return len(paths) > 1 and sum(path.stat().st_size for path in paths) >= LEAST_BYTES


def replayed_segments(paths: Sequence[Path], processes: int, tally: ReplayTally) -> list[ReplayedSegment] | None:
    """Replay segments, so many at a time; None if some session differs, or a process is lost.

    The tally counts sessions meanwhile, for whoever shows them.
    """
    context = get_context("spawn")
    shared = _Shared(context.Value("q", 0), context.Event())
    with ProcessPoolExecutor(min(processes, len(paths)), mp_context=context, initializer=_begin, initargs=shared) as pool:
        waiting = [pool.submit(_replay, path) for path in paths]
        try:
            return _taken(waiting, shared, tally)
        except BrokenProcessPool:  # such as one that was killed because it took too much memory: in a row there is one at a time
            return None
        finally:
            shared.is_over.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _taken(waiting: list[Future[ReplayedSegment]], shared: _Shared, tally: ReplayTally) -> list[ReplayedSegment] | None:
    found: list[ReplayedSegment] = []
    for future in waiting:
        while True:
            try:
                segment = future.result(BETWEEN_LOOKS_SECONDS)
                break
            except TimeoutError:
                tally.sessions = shared.held.value
        if not segment.is_same:
            return None
        found.append(segment)
        tally.ended = segment.tally.ended
    return found


def _begin(held: "Synchronized[int]", is_over: Event) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us says when it is over
    gc.set_threshold(*GARBAGE)
    _shared[:] = [_Shared(held, is_over)]


def _replay(path: Path) -> ReplayedSegment:
    (shared,) = _shared

    def held() -> bool:
        with shared.held.get_lock():
            shared.held.value += 1
        return not shared.is_over.is_set()

    return replayed_segment(path.parent, path, held=held)
