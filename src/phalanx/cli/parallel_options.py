"""The options of simulations with several seeds: how much they vary, and where they run."""

import os

import click


def usable_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Part(click.FloatRange):
    """A number within bounds, which NaN is not, though no comparison says so."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or refuse what was typed."""
        found: float = super().convert(value, param, ctx)
        return found if found == found else self.fail(f"{value!r} is not a number.", param, ctx)


processes = click.option(
    "--processes", type=click.IntRange(1, 256), default=usable_processors, show_default="all processors", metavar="N",
    help="Simulations at a time on this machine.",
)  # fmt: skip
on = click.option(
    "--on", metavar="ADDRESS", help="Run simulations on a cluster: dask://HOST:PORT or ray://HOST:PORT. This machine by default."
)
jitter = click.option(
    "--jitter", type=Part(0, 0.9), default=0.0, metavar="PART",
    help="With seeds, vary the gaps between arrivals and the durations of manifests by up to this part.",
)  # fmt: skip


def refuse_jitter_of_work(jitter: float, workload: str | None) -> None:
    """Refuse to vary work that has a setting of its own for that."""
    if jitter and workload:
        raise click.UsageError("--jitter: is for manifests; let a trace vary by its own jitter=0.1; generated work does anyway")
