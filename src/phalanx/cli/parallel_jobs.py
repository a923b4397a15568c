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
        packages = {"dask": "distributed", "ray": "ray"}
        for package in ("joblib", packages[self.scheme]):
            if find_spec(package) is None:
                install = f"pip install '{EXTRA}' {packages[self.scheme]}"
                raise ConfigError(f"--on: Python package {package!r} is needed for {self.cluster!r}; run: {install}")


class Workers:
    """Who does jobs."""

    def __init__(self, count: int | None = None) -> None:
        """Use so many workers of joblib's backend that was chosen; None for this process alone."""
        self._count = count

    def all_done(self, jobs: Sequence[Job], do: Callable[[Job], Outcome]) -> Iterator[tuple[int, Outcome]]:
        """Do all jobs, and yield the outcome of each with its number, as they end."""
        if self._count is None or not jobs:
            yield from ((number, do(job)) for number, job in enumerate(jobs))
            return
        joblib, doing = import_module("joblib"), _Doing(do)
        parallel = joblib.Parallel(n_jobs=self._count, return_as=_return_as(), batch_size=1)
        yield from parallel(joblib.delayed(doing)(number, job) for number, job in enumerate(jobs))


def _return_as() -> str:
    """Return how outcomes come: as they end where the backend can, otherwise all at the end."""
    backend, _ = import_module("joblib.parallel").get_active_backend()
    return "generator_unordered" if backend.supports_return_generator else "list"


@contextmanager
def workers_at(place: Place) -> Iterator[Workers]:
    """Give the workers of a place, as long as they are needed."""
    if place.is_here_alone:
        yield Workers()
        return
    with _reached(place) as count:
        yield Workers(count)


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
        with _ray_cluster(place.cluster), joblib.parallel_config(backend="ray"):
            yield -1


@contextmanager
def _dask_client(address: str) -> Iterator[Any]:  # Any: dask has no types
    distributed = import_module("distributed")
    try:
        client = distributed.Client(f"tcp://{address.partition('://')[2]}", timeout="10s", set_as_default=True)
    except OSError as problem:
        raise ConfigError(f"--on: nobody answers at {address!r}: {problem}") from problem
    with client:
        yield client


@contextmanager
def _ray_cluster(address: str) -> Iterator[None]:
    ray = import_module("ray")
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError) as problem:
        raise ConfigError(f"--on: nobody answers at {address!r}: {problem}") from problem
    import_module("ray.util.joblib").register_ray()
    try:
        yield
    finally:
        ray.shutdown()
