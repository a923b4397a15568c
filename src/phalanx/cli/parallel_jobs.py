"""Work of the same kind in parallel, by joblib: in processes of this machine, or on a Dask or Ray cluster that somebody else
runs.

Who is where has no influence on what comes out: a job is a function of what it is given, and outcomes are put back into the
order of the jobs. Without joblib, jobs are done one after the other in this process.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from phalanx.errors import ConfigError

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")
EXTRA = "phalanx[tune]"
SCHEMES = ("dask", "ray")
JOBS_PER_WORKER = 2
"""So many are given to each worker of a Ray cluster at a time."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where jobs are done."""

    processes: int
    cluster: str | None = None
    """The address of a Dask or Ray cluster, as it was typed; None for this machine."""

    @property
    def scheme(self) -> str:
        """What kind of cluster it is."""
        return (self.cluster or "").partition("://")[0]

    @property
    def is_here_alone(self) -> bool:
        """Tell whether jobs are done in this process."""
        return self.cluster is None and (self.processes == 1 or find_spec("joblib") is None)

    def refuse(self) -> None:
        """Refuse a cluster that cannot be used, before anything is simulated."""
        if self.cluster is None:
            return
        if self.scheme not in SCHEMES or "://" not in self.cluster:
            raise ConfigError(f"--on: {self.cluster!r} is no cluster; write dask://HOST:PORT or ray://HOST:PORT")
        needed = ("joblib", "distributed") if self.scheme == "dask" else ("joblib", "ray", "grpc")
        missing = [package for package in needed if find_spec(package) is None]
        if missing:
            install = f"pip install '{EXTRA}' '{'distributed' if self.scheme == 'dask' else 'ray[client]'}'"
            raise ConfigError(f"--on: {self.cluster!r} needs packages that are not installed: {', '.join(missing)}; run: {install}")


class Workers:
    """Who does jobs."""

    def __init__(self, parallel: Any = None, at_a_time: int | None = None) -> None:  # Any: joblib has no types
        """Use joblib's `Parallel`, or None for this process alone; outcomes come one by one, or of so many jobs together."""
        self._parallel, self._at_a_time = parallel, at_a_time

    def all_done(self, jobs: Sequence[Job], do: Callable[[Job], Outcome]) -> Iterator[tuple[int, Outcome]]:
        """Do all jobs, and yield the outcome of each with its number, as they end."""
        if self._parallel is None or not jobs:
            yield from ((number, do(job)) for number, job in enumerate(jobs))
            return
        delayed, size = import_module("joblib").delayed(_Doing(do)), self._at_a_time or len(jobs)
        for first in range(0, len(jobs), size):
            yield from self._parallel(delayed(first + place, job) for place, job in enumerate(jobs[first : first + size]))


@contextmanager
def workers_at(place: Place) -> Iterator[Workers]:
    """Give the workers of a place, as long as they are needed."""
    if place.is_here_alone:
        yield Workers()
        return
    with _reached(place) as count:
        # Outcomes of Ray come when all jobs are done, which are few at a time so that Ctrl-C loses little.
        is_ray = place.scheme == "ray"
        settings = {"n_jobs": count, "batch_size": 1, "return_as": "list" if is_ray else "generator_unordered"}
        # One Parallel for all calls: to start the workers of a Ray cluster takes some seconds.
        with import_module("joblib").Parallel(**settings) as parallel:
            yield Workers(parallel, JOBS_PER_WORKER * count if is_ray else None)


@dataclass(frozen=True, slots=True)
class _Doing(Generic[Job, Outcome]):
    """Does a job in a process of its own, and says which it was."""

    do: Callable[[Job], Outcome]

    def __call__(self, number: int, job: Job) -> tuple[int, Outcome]:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which ends its workers
        return number, self.do(job)


@contextmanager
def _reached(place: Place) -> Iterator[int]:
    """Let joblib use a place; gives the number of its workers."""
    joblib = import_module("joblib")
    if place.cluster is None:
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            yield place.processes
    elif place.scheme == "dask":
        with _dask_client(place.cluster) as client, joblib.parallel_config(backend="dask"):
            yield max(sum(client.nthreads().values()), 1)
    else:
        with _ray_cluster(place.cluster) as count, joblib.parallel_config(backend="ray"):
            yield count


@contextmanager
def _dask_client(address: str) -> Iterator[Any]:  # Any: dask has no types
    distributed = import_module("distributed")
    try:
        client = distributed.Client(f"tcp://{address.partition('://')[2]}", timeout="10s", set_as_default=True)
    except OSError as problem:
        raise ConfigError(f"--on: nobody answers at {address!r}: {_last_line(problem)}") from problem
    with client:
        yield client


@contextmanager
def _ray_cluster(address: str) -> Iterator[int]:
    ray = import_module("ray")
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as problem:
        raise ConfigError(f"--on: nobody answers at {address!r}: {_last_line(problem)}") from problem
    import_module("ray.util.joblib").register_ray()
    try:
        yield max(int(ray.cluster_resources().get("CPU", 1)), 1)
    finally:
        ray.shutdown()


def _last_line(problem: Exception) -> str:
    """Return the end of a message, without the traceback of another process that some have."""
    return next((line.strip() for line in reversed(str(problem).splitlines()) if line.strip()), type(problem).__name__)
