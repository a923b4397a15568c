"""Pages for tests: clusters as views see them, and pages that are really served, in a thread of their own."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document, object_key
from phalanx.scheduling.shards import decide
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.sim.report_text import Result
from phalanx.sim.served_results import ResultFolder
from phalanx.ui.board import LookPace
from phalanx.ui.gang_facts import KnownFacts
from phalanx.ui.seen import DrySession, SeenCluster, seen_by_session
from phalanx.ui.serving.access import Access, Open
from phalanx.ui.serving.answers import served
from phalanx.ui.serving.mounted import with_page
from phalanx.ui.serving.page import Page
from phalanx.ui.serving.reader import PageSetup
from phalanx.ui.showing import Showing, ShowingSetup
from phalanx.ui.still import StillObjects, StillSource
from phalanx.web.server import serving
from tests.support.ui_clusters import NOW

Made = Callable[[], "asyncio.Future[PageSetup] | PageSetup"]
QUICK = LookPace(least=0.02, factor=0.0, linger=60.0)


def connect(policy: Policy) -> Profile:
    """Return who decides by a policy."""
    return Profile(policy, catalogue_of(policy.catalogue))


def started() -> None:
    """Begin a process that answers questions; the test ends it."""


def fail(text: str) -> None:
    raise AssertionError(text)


SETUP = ShowingSetup(connect, started, fail, QUICK)


class SlowSource(StillSource):
    """Objects that are not looked at before somebody lets that happen."""

    def __init__(self, given: StillObjects, profile: Profile, connect: Callable[[Policy], Profile]) -> None:
        super().__init__(given, profile, connect)
        self.go_on = threading.Event()

    async def look(self, version: str) -> SeenCluster:
        """Wait, and look."""
        await asyncio.to_thread(self.go_on.wait, 60)
        return await super().look(version)


def still(documents: Iterable[Document], *, profile: str = "phalanx", now: float = NOW) -> StillSource:
    """Return objects as a source of a page; those that cannot be read are told among its problems."""
    return StillSource(_objects(documents, now), connect(policy_of_profile(profile)), connect)


def slow(documents: Iterable[Document]) -> SlowSource:
    """Return objects as a source of a page that takes its time."""
    return SlowSource(_objects(documents, NOW), connect(policy_of_profile("phalanx")), connect)


def _objects(documents: Iterable[Document], now: float) -> StillObjects:
    cluster, found, refused, problems = ObjectCluster(), list(documents), dict[str, str](), list[str]()
    for document in found:
        try:
            cluster.put(document)
        except SnapshotError as problem:
            problems.append(str(problem))
            if document["kind"] == "PodGroup":
                refused[object_key(document)] = str(problem)
    return StillObjects("test", found, cluster, now, refused, problems)


def seen(
    *parts: Document | Sequence[Document], profile: str = "phalanx", now: float = NOW, schedulers: frozenset[str] = frozenset()
) -> SeenCluster:
    """Return a cluster of objects and lists of objects after a session, as views see it."""
    cluster = ObjectCluster(schedulers=schedulers)
    for part in parts:
        for document in [part] if isinstance(part, Mapping) else part:
            if document["kind"] != "Event":
                cluster.put(document)
    snapshot = cluster.snapshot(now)
    parts_of_session = decide(snapshot, connect(policy_of_profile(profile)))
    return seen_by_session("1", DrySession(snapshot, parts_of_session), KnownFacts())


def setup_of(source: Any, *, title: str = "test", access: Access | None = None, **more: Any) -> PageSetup:
    """Return a page that shows a source."""
    return PageSetup(title, access or Open(), Showing(source, SETUP), **more)


def simulations_setup(folder: Path, **results: Result) -> PageSetup:
    """Return a page that shows results of simulations, each under its name."""
    for name, found in results.items():
        (folder / f"{name}.json").write_bytes(msgspec.json.encode(found))
    return PageSetup("simulations", Open(), simulations=ResultFolder(folder))


@asynccontextmanager
async def served_page(setup: PageSetup, names: tuple[str, ...] = ()) -> AsyncIterator[str]:
    """Serve a page in the loop of a test; yields the address of the server."""
    async with serving(with_page(Page(lambda: served(setup), names))) as address:
        yield address


@contextmanager
def in_thread(begin: Callable[[asyncio.Event], AsyncIterator[str]]) -> Iterator[str]:
    """Serve in a thread; `begin` yields the address and goes on until the event is set."""
    ready, address, over, loops = threading.Event(), list[str](), list[asyncio.Event](), list[asyncio.AbstractEventLoop]()

    async def run() -> None:
        over.append(asyncio.Event())
        loops.append(asyncio.get_running_loop())
        async for found in begin(over[0]):
            address.append(found)
            ready.set()
            await over[0].wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    try:
        assert ready.wait(60), "the page is not served"
        yield address[0]
    finally:
        loops[0].call_soon_threadsafe(over[0].set)
        thread.join(30)


@contextmanager
def open_page(make: Callable[[], PageSetup]) -> Iterator[str]:
    """Serve a page in a thread; yields its address."""

    async def begin(over: asyncio.Event) -> AsyncIterator[str]:
        async with served_page(make()) as address:
            yield f"{address}/ui/"

    with in_thread(begin) as address:
        yield address


def lines_of(document: Any, key: str) -> Iterator[Any]:
    """Yield what a document holds under a key, at any depth."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name == key:
                yield value
            yield from lines_of(value, key)
    elif isinstance(document, list | tuple):
        for value in document:
            yield from lines_of(value, key)


def page_files() -> dict[str, str]:
    """Return the files of the page."""
    folder = Path(__file__).resolve().parents[2] / "src" / "phalanx" / "ui" / "static"
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
