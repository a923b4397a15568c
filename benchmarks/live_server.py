"""What benchmarks on a real API server share: many requests at once, and nodes that nobody plays kubelet for."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from phalanx.dev.layout import CONTROLLERS

AT_ONCE = 32
WITHOUT_KUBELETS = {CONTROLLERS: ("--node-monitor-grace-period=24h",)}
"""Nobody renews the leases of nodes; they are to be taken for alive all the same."""


async def each(jobs: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Do everything, so many at once."""
    left = iter(jobs)

    async def work() -> None:
        for action in left:
            await action()

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
