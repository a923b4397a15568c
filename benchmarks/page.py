"""What the live page takes: to paint a large cluster, to answer a hand, to bear changes; and what a scheduler pays for it.

    python -m benchmarks.page                                 # printed only
    python -m benchmarks.page --write benchmarks/RESULTS.md

An embedded API server holds 10,000 nodes and 5,000 gangs, of which half run; `phalanx ui` and `phalanx run --http` serve the page
from it, and Chromium opens it without a window. Paints, interactions and frames are measured by the browser: a paint from the
moment at which the data was there to the frame after the view was made, an interaction from the input to the next frame, as the
Event Timing API has it, in steps of 8 ms. Pods are changed by a client of its own, so many each second. The scheduler's processor
time is that of its process, in turns without and with a page that is open. The exit status is 1 if one is beyond its bound.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from threading import Event, Thread
from urllib.request import urlopen

from benchmarks.race.process_use import use_of

from phalanx.bench.report import machine
from phalanx.bench.results_page import write_section
from phalanx.dev.processes import free_ports, launch, wait_until
from phalanx.model.kinds import POD
from phalanx.store.kube.client import Client
from phalanx.store.memory import MemoryStore
from phalanx.web.api import Api
from phalanx.web.server import serving
from tests.support import ui_clusters
from tests.support.browser import Browser, Tab, browser_of, chromium_command
from tests.support.ui_programs import PHALANX

PAINT_MS, INTERACTION_MS, SCHEDULER_PERCENT = 1000.0, 100.0, 2.0
RATE, CALM_RATE = 100, 5
TURN_SECONDS, TURNS, READY_SECONDS = 20.0, 3, 300.0
FIRST_SECONDS, MOST_SETTLING = 10.0, 12
"""The first look is taken at once, and so is a session; and for so many turns the scheduler may do what it does after its start."""
LEFT_SECONDS = 35.0
"""A cluster is followed for half a minute after its last page was closed."""
READY = {"overview": ".figures", "queues": "table.queues", "gangs": ".virtual[data-shown]", "nodes": "canvas[data-drawn]"}
WATCH = """(() => {
    window.measured = {events: [], frames: 0, last: performance.now()};
    new PerformanceObserver(list => list.getEntries().forEach(each => measured.events.push(each.duration)))
        .observe({type: 'event', durationThreshold: 16});
    const frame = now => {
        measured.frames = Math.max(measured.frames, now - measured.last);
        measured.last = now;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
})()"""
PAINT = """new Promise(done => {
    document.querySelector('#content').replaceChildren();
    performance.clearResourceTimings();
    const look = () => {
        const data = performance.getEntriesByType('resource').find(each => each.name.includes('api/VIEW'));
        if (!data || !document.querySelector('READY')) return requestAnimationFrame(look);
        requestAnimationFrame(now => done(now - data.responseEnd));
    };
    location.hash = '#/VIEW?' + Math.random();
    look();
})"""


@dataclass
class Found:
    """What was measured: milliseconds, and percent of a processor."""

    paints: dict[str, float] = field(default_factory=dict)
    quiet: dict[str, float] = field(default_factory=dict)
    """The slowest answer to each kind of input."""
    changing: dict[str, float] = field(default_factory=dict)
    """The same while pods change."""
    longest_frame: float = 0.0
    looks: int = 0
    updates: float = 0.0
    """Pods that were really changed each second."""
    without: list[float] = field(default_factory=list)
    open: list[float] = field(default_factory=list)

    @property
    def scheduler(self) -> float:
        """Percent of a processor that the open page costs the scheduler."""
        return median(self.open) - median(self.without)

    @property
    def is_within(self) -> bool:
        """Tell whether everything is within its bound."""
        slowest = max(*self.quiet.values(), *self.changing.values())
        return max(self.paints.values()) < PAINT_MS and slowest < INTERACTION_MS and self.scheduler < SCHEDULER_PERCENT


# --- the cluster ---------------------------------------------------------------------------------------------------------


@contextmanager
def served(*command: str) -> Iterator[tuple[int, str]]:
    """Run a program until the block ends; yields its process and the end of its first line."""
    with launch(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            yield process.pid, process.stdout.readline().split()[-1]
        finally:
            process.terminate()


async def serve(file: Path) -> None:
    """Be the API server of these objects: they stay as they are written, and nobody schedules."""
    store = MemoryStore(time.time)
    for document in json.loads(file.read_text()):
        store.load(document)
    async with serving(Api(store).application()) as address:
        print(f"serving at {address}", flush=True)
        await asyncio.Event().wait()


@contextmanager
def scheduler(folder: Path, server: str) -> Iterator[tuple[int, str]]:
    """Run a scheduler without controllers; yields its process and where it serves."""
    config, port = folder / "kubeconfig", free_ports(1)[0]
    config.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }))  # fmt: skip
    command = [PHALANX, "run", "--kubeconfig", str(config), "--no-leader-elect", "--controllers", "", f"--http=127.0.0.1:{port}"]
    with launch(command, stdout=subprocess.DEVNULL, stderr=(folder / "run.log").open("w")) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            assert wait_until(lambda: _is_ready(address), READY_SECONDS), (folder / "run.log").read_text()
            yield process.pid, address
        finally:
            process.terminate()


def _is_ready(address: str) -> bool:
    try:
        with urlopen(f"{address}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


class Changes:
    """Changes pods that run, so many each second, in a thread of its own."""

    def __init__(self, server: str, pods: Sequence[str], rate: int) -> None:
        """Do nothing yet."""
        self._server, self._pods, self._rate, self._over, self.count = server, pods, rate, Event(), 0

    @contextmanager
    def going_on(self) -> Iterator["Changes"]:
        """Change them inside the block."""
        thread = Thread(target=lambda: asyncio.run(self._run()))
        self._over.clear()
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    async def _run(self) -> None:
        async with Client(self._server) as client:
            begun = time.monotonic() - self.count / self._rate
            while not self._over.is_set():
                name = self._pods[self.count % len(self._pods)]
                beat = {"metadata": {"annotations": {"example.com/beat": str(self.count)}}}
                await client.patch(POD, "default", name, beat)
                self.count += 1
                await asyncio.sleep(max(begun + self.count / self._rate - time.monotonic(), 0))


# --- the browser ---------------------------------------------------------------------------------------------------------


def opened(browser: Browser, address: str) -> Tab:
    """Open the page and begin to measure."""
    tab = browser.open(address)
    tab.wait("document.querySelector('.figures')")
    tab.value(WATCH)
    return tab


def paint(tab: Tab, view: str) -> float:
    """Return the milliseconds from the data of a view to its paint."""
    return float(tab.value(PAINT.replace("VIEW", view).replace("READY", READY[view])))


def interactions(tab: Tab) -> dict[str, float]:
    """Use the page with keys and the pointer; return the slowest answer to each."""
    steps: dict[str, Callable[[], None]] = {
        "typing into the filter of 5,000 gangs": lambda: _type(tab, "[data-filter]", "job-04711"),
        "sorting them": lambda: tab.click(".virtual thead th:nth-child(6) button"),
        "going from row to row": lambda: _press(tab, ".scroll.tall", "j", 30),
        "going from node to node on the map": lambda: _press(tab, "canvas", "ArrowDown", 20),
        "a click on the map": lambda: tab.click("canvas"),
    }
    found: dict[str, float] = {}
    for name, act in steps.items():
        if name.startswith(("typing", "going from node")):
            paint(tab, "gangs" if name.startswith("typing") else "nodes")
        if name == "sorting them":
            paint(tab, "gangs")
        tab.value("measured.events.length = 0")
        act()
        tab.settle()
        found[name] = float(tab.value("Math.max(0, ...measured.events)"))
    return found


def _type(tab: Tab, field: str, text: str) -> None:
    tab.focus(field)
    for letter in text:
        tab.call("Input.dispatchKeyEvent", type="keyDown", key=letter, text=letter)
        tab.call("Input.dispatchKeyEvent", type="keyUp", key=letter)


def _press(tab: Tab, place: str, key: str, times: int) -> None:
    tab.focus(place)
    for _ in range(times):
        tab.press(key)


# --- measures ------------------------------------------------------------------------------------------------------------


def measure_page(browser: Browser, address: str, changes: Changes, found: Found) -> None:
    """Measure paints, and interactions while nothing and while much changes."""
    tab = opened(browser, address)
    found.paints = {view: max(paint(tab, view) for _ in range(3)) for view in READY}
    found.quiet = interactions(tab)
    with changes.going_on():
        begun, count = time.monotonic(), changes.count
        tab.value("measured.frames = 0; measured.last = performance.now()")
        found.changing = interactions(tab)
        paint(tab, "overview")
        tab.value(f"new Promise(done => setTimeout(done, {TURN_SECONDS / 2 * 1000}))")
        found.longest_frame = float(tab.value("measured.frames"))
        found.looks = sum("api/overview" in asked for asked in tab.requests)
        found.updates = (changes.count - count) / (time.monotonic() - begun)
    tab.close()


def measure_scheduler(browser: Browser, pid: int, address: str, changes: Changes, found: Found) -> None:
    """Measure the processor time of a scheduler without and with an open page, in turns."""
    with changes.going_on():
        _settle(pid)
        for _ in range(TURNS):
            found.without.append(_used(pid))
            tab = opened(browser, f"{address}/ui/")
            time.sleep(FIRST_SECONDS)
            found.open.append(_used(pid))
            tab.close()
            time.sleep(LEFT_SECONDS)


def _settle(pid: int) -> None:
    """Wait until the scheduler takes about as much as a moment before."""
    before = 0.0
    for _ in range(MOST_SETTLING):
        used = _used(pid)
        if 0.0 < used < before * 1.1 and used > before * 0.9:
            return
        before = used


def _used(pid: int) -> float:
    before = use_of(pid).cpu_seconds
    time.sleep(TURN_SECONDS)
    return (use_of(pid).cpu_seconds - before) / TURN_SECONDS * 100


def measure(nodes: int, gangs: int, size: int) -> Found:
    """Measure everything on one cluster."""
    found, documents = Found(), ui_clusters.vast(nodes, gangs, size)
    pods = [item["metadata"]["name"] for item in documents if item["kind"] == "Pod" and "nodeName" in item["spec"]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluster.json").write_text(json.dumps(documents))
        serve = (sys.executable, "-m", "benchmarks.page", "--serve", str(folder / "cluster.json"))
        browsing = launch(chromium_command(folder / "chromium"), stderr=subprocess.PIPE)
        with (
            browser_of(browsing) as browser,
            served(*serve) as (_, server),
        ):
            with served(PHALANX, "ui", "--server", server) as (_, address):
                measure_page(browser, address, Changes(server, pods, RATE), found)
            with scheduler(folder, server) as (pid, address):
                measure_scheduler(browser, pid, address, Changes(server, pods, CALM_RATE), found)
    return found


# --- words ---------------------------------------------------------------------------------------------------------------


def section(found: Found, nodes: int, gangs: int, size: int) -> str:
    """Return the results as Markdown."""
    return "\n".join([
        f"Written by `python -m benchmarks.page` on {datetime.now(UTC):%Y-%m-%d}. Machine: {machine()}.", "",
        f"{nodes:,} nodes, {gangs:,} gangs of {size} pods.", "",
        f"| paint after the data was there (bound: {PAINT_MS:.0f} ms) | ms |", "| --- | --: |",
        *(f"| {view} | {took:.0f} |" for view, took in found.paints.items()), "",
        f"| slowest answer (bound: {INTERACTION_MS:.0f} ms; 0 is below 16) | ms | ms at {found.updates:.0f} pods/s |",
        "| --- | --: | --: |",
        *(f"| {name} | {took:.0f} | {found.changing[name]:.0f} |" for name, took in found.quiet.items()), "",
        f"With {found.updates:.0f} pods changed each second the longest pause between two frames was "
        f"{found.longest_frame:.0f} ms, while the page showed {found.looks} looks at the cluster.", "",
        f"| processor of `phalanx run` at {CALM_RATE} pods/s (bound: {SCHEDULER_PERCENT:.0f} % more) | % of a core, each turn |",
        "| --- | --: |",
        f"| nobody looks | {_turns(found.without)} |", f"| the page is open | {_turns(found.open)} |",
        f"| difference of the medians | {found.scheduler:+.2f} |",
    ])  # fmt: skip


def _turns(percents: Sequence[float]) -> str:
    return ", ".join(f"{percent:.2f}" for percent in percents)


def main() -> int:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--gangs", type=int, default=5_000)
    parser.add_argument("--size", type=int, default=4, help="pods of a gang")
    parser.add_argument("--write", type=Path, help="write the result as a section of this file as well")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        asyncio.run(serve(asked.serve))
    found = measure(asked.nodes, asked.gangs, asked.size)
    text = section(found, asked.nodes, asked.gangs, asked.size)
    print(text)
    if asked.write:
        write_section(asked.write, "page", text)
    return 0 if found.is_within else 1


if __name__ == "__main__":
    sys.exit(main())
