"""The options that say where simulations run that are independent of each other."""

import os

import click


def _usable_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


processes = click.option(
    "--processes", type=click.IntRange(1, 256), default=_usable_processors, show_default="all processors", metavar="N",
    help="Simulations at a time on this machine.",
)  # fmt: skip
on = click.option(
    "--on", metavar="ADDRESS", help="Run simulations on a cluster: dask://HOST:PORT or ray://HOST:PORT. This machine by default."
)
