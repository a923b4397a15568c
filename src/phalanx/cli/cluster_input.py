"""The cluster that a session is held on: from files, from an API server, or from both.

--log DIR                        a recording, at the moment --at TIME; the objects of files are added or replaced
-f PATH...                       the files, and nothing else
--context, --server ...          that cluster; only lists are requested, and nothing is changed
both                             the cluster, with the objects of the files added or replaced
neither                          the cluster that `phalanx get` would ask
"""

import gc
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from phalanx.cli.connection import Reach, ask
from phalanx.cli.progress import clear_progress, show_progress

if TYPE_CHECKING:
    from phalanx.dialects.cluster import ObjectCluster
    from phalanx.model.kinds import Kind
    from phalanx.recording.moment import ClusterThen
    from phalanx.store.input_files import Intake
    from phalanx.store.kube.client import Client
    from phalanx.store.listed_cluster import ListedCluster

PATIENCE_SECONDS = 1.0
"""Reading that takes longer is shown on a terminal."""


def read_cluster(
    paths: Sequence[str], source: "Reach | RecordedSource", cluster: "ObjectCluster | None" = None, *, is_frugal: bool = True
) -> "Intake":
    """Return everything that was named; objects that cannot be understood are left out of the cluster, and named in it.

    What no session needs of live objects is left out, by default.
    """
    from phalanx.store.input_files import take_in

    with _no_garbage():
        if isinstance(source, RecordedSource):
            return take_in(paths, cluster, goes_on=True, live=_recorded(source))
        live = list_live(source, is_frugal=is_frugal) if source.is_named or not paths else None
        return take_in(paths, cluster, goes_on=True, live=live)


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """A moment of a recording."""

    folder: str
    at: str | None


@cache
def cluster_then(folder: str, at: str | None) -> "ClusterThen":
    """Return the cluster of a recording, which is read once; what cannot be read of it is told."""
    from phalanx.cli import output
    from phalanx.recording.moment import cluster_at

    return cluster_at(Path(folder), at, tell=output.note)


def _recorded(source: RecordedSource) -> "ListedCluster":
    from phalanx.recording.moment import time_text
    from phalanx.store.listed_cluster import ListedCluster

    then = cluster_then(source.folder, source.at)
    return ListedCluster(f"{source.folder} at {time_text(then.now)}", then.now, then.documents)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Look for no garbage while objects are read: they form no circles, and looking through 50,000 pods takes half of the time.

    What was read stays until the command ends, so nobody looks through it later either; traced sessions take half of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def list_live(reach: Reach, *, is_frugal: bool) -> "ListedCluster":
    """Return the objects of a live cluster."""

    async def listed(client: "Client", namespace: str) -> "ListedCluster":
        from phalanx.store.kube.cluster_objects import list_cluster

        client.may_write = lambda: False
        line = ReadingLine()
        try:
            found = await list_cluster(client, line.show)
        finally:
            line.clear()
        found.namespace = namespace
        return found

    return ask(reach, listed, is_frugal=is_frugal)


class ReadingLine:
    """One line on a terminal that says how far reading has got."""

    def __init__(self) -> None:
        """Begin now; nothing is shown where stderr is no terminal."""
        self._begun, self._is_empty = time.monotonic(), True
        self._is_shown = sys.stderr.isatty()

    def show(self, kind: "Kind", read: int, total: int) -> None:
        """Show how many objects of a large kind were read."""
        if not self._is_shown or total == read or time.monotonic() - self._begun < PATIENCE_SECONDS:
            return
        show_progress(f"read {read:,} of {total:,} {kind.plural}")
        self._is_empty = False

    def clear(self) -> None:
        """Leave the line empty for what follows."""
        if not self._is_empty:
            clear_progress()
