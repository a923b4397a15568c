"""Workers of a pool are gone when whoever started the pool was killed."""

import subprocess
import sys
from pathlib import Path

from phalanx.dev.processes import launch, wait_until

SECONDS = 20.0
POOL = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from phalanx.dev.worker_process import end_with_parent

if __name__ == "__main__":
    with ProcessPoolExecutor(2, initializer=end_with_parent) as pool:
        for found in [pool.submit(os.getpid) for _ in range(2)]:
            found.result()
        print("ready", flush=True)
        time.sleep(600)
"""


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_workers_end_with_a_pool_that_is_killed() -> None:
    with launch([sys.executable, "-c", POOL], stdout=subprocess.PIPE) as pool:
        assert pool.stdout is not None
        pool.stdout.readline()
        workers = children(pool.pid)
        assert workers
        pool.kill()
    assert wait_until(lambda: not any(map(is_running, workers)), SECONDS)
