"""Sessions that tests step through."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from phalanx.config.builtin import catalogue_of
from phalanx.session.cycle import Profile
from phalanx.stepping.debugger import Debugger
from phalanx.stepping.stepped_session import SteppedSession
from phalanx.testing.build import Cluster

ROOT = Path(__file__).resolve().parents[2]


def stepped(cluster: Cluster, title: str = "session") -> SteppedSession:
    """Return the session on a cluster."""
    return SteppedSession(cluster.objects.snapshot(0.0), Profile(cluster.policy, catalogue_of(cluster.policy.catalogue)), title)


def debugger(*clusters: Cluster, level: int = 3, gangs: tuple[str, ...] = ()) -> Debugger:
    """Return a debugger at the beginning of the first session of several."""
    return Debugger(
        iter([stepped(cluster, f"session {number}") for number, cluster in enumerate(clusters, 1)]), level=level, gangs=gangs
    )


def data(held: Debugger, *lines: str) -> dict[str, Any]:
    """Type lines, and return what the last one answers."""
    return dict([held.do(line) for line in lines][-1].data)


def answers_until_over(held: Debugger, line: str) -> Iterator[dict[str, Any]]:
    """Type the same line until the session is over, and yield the answers."""
    while "over" not in (answer := held.do(line).data):
        yield dict(answer)
