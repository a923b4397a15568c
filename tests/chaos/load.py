"""The load of a storm: gangs that come, work and go, made by the real controllers of the control plane."""

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from phalanx.model.kinds import Document
from tests.chaos.gangs import ChaosGang, drawn_gang, path_of
from tests.chaos.recorder import Ledger
from tests.chaos.violations import Findings
from tests.support.http_api import Answer, Connection

PATIENCE_SECONDS = 90.0
"""For so long the server may be away."""
IMPATIENT_SECONDS = 30.0
"""An owner gives up after so long, whatever has become of the gang."""
BETWEEN_LOOKS_SECONDS = 1.0
MOST_GANGS, AT_ONCE = 70, 6
"""So many gangs are there at most, before others have ended, and so many are made and removed at the same time."""
Do = Callable[[Callable[[], None]], None]
"""Does something beside others."""
BACKGROUND = {"propagationPolicy": "Background"}
BUSY = (429, 500, 503, 504)
COLLECTIONS = (
    "/apis/batch/v1/namespaces/{}/jobs", "/apis/apps/v1/namespaces/{}/statefulsets", "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs", "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups",
    "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/podgroups", "/api/v1/namespaces/{}/pods",
)  # fmt: skip


def ask_patiently(connection: Connection, method: str, path: str, body: Document | None = None) -> Answer:
    """Send a request until the server takes or refuses it."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            answer = connection.ask(method, path, body)
            if answer.code not in BUSY:
                return answer
        except (OSError, http.client.HTTPException) as problem:
            answer = Answer(0, {"message": str(problem)})
        if time.monotonic() > end:
            raise TimeoutError(f"{method} {path}: {answer.code} {answer.body.get('message')}")
        time.sleep(0.3)


@dataclass(slots=True)
class Alive:
    """A gang that is there."""

    gang: ChaosGang
    since: float
    bound_at: float = 0.0


@dataclass(slots=True)
class Load:
    """Makes gangs at a rate, and takes those away that have had their time."""

    connection: Connection
    namespace: str
    ledger: Ledger
    findings: Findings
    chance: Random
    rate: float
    """Gangs per second, as long as not too many are there."""
    alive: dict[str, Alive] = field(default_factory=dict)
    made: int = 0

    def run(self, seconds: float, is_over: Callable[[], bool]) -> None:
        """Make gangs for a while."""
        begun, count, looked = time.monotonic(), 0, 0.0
        with self._at_once() as do:
            while (now := time.monotonic()) - begun < seconds and not is_over():
                if now - looked > BETWEEN_LOOKS_SECONDS:
                    self._take_away(now, do)
                    looked = now
                if count < (now - begun) * self.rate and len(self.alive) < MOST_GANGS:
                    self._submit(do, is_endless=False)
                    count += 1
                else:
                    time.sleep(0.05)

    @contextmanager
    def _at_once(self) -> Iterator[Do]:
        """Yield who makes and removes several gangs at the same time; the first failure is raised after the block."""
        places, found = threading.BoundedSemaphore(2 * AT_ONCE), list[Future[None]]()
        with ThreadPoolExecutor(AT_ONCE) as pool:

            def do(work: Callable[[], None]) -> None:
                places.acquire()  # on a busy machine nothing piles up
                found.append(pool.submit(work))
                found[-1].add_done_callback(lambda _: places.release())

            yield do
        for future in found:
            future.result()

    def _submit(self, do: Do, *, is_endless: bool) -> None:
        """Make one gang."""
        self.made += 1
        gang = drawn_gang(self.chance, self.namespace, f"g{self.made}", is_endless=is_endless)
        self.alive[gang.name] = Alive(gang, time.monotonic())
        do(lambda: self._create(gang))

    def _create(self, gang: ChaosGang) -> None:
        for document in gang.documents():
            answer = ask_patiently(self.connection, "POST", path_of(document), document)
            if answer.code not in (201, 409):  # it may have been taken, and the answer lost
                raise AssertionError(f"{path_of(document)}: {answer}")

    def _take_away(self, now: float, do: Do) -> None:
        for alive in list(self.alive.values()):
            if self._has_had_its_time(alive, now):
                self._remove(alive.gang, do)

    def _has_had_its_time(self, alive: Alive, now: float) -> bool:
        gang, found = alive.gang, self.ledger.gang(alive.gang.name)
        if found["bound"] >= gang.minimum and not alive.bound_at:
            alive.bound_at = now
            self.findings.count("gangs started")
        if gang.ends and found["succeeded"] >= gang.size:
            return True
        if alive.bound_at and not gang.ends:
            return now - alive.bound_at > gang.seconds
        return now - alive.since > IMPATIENT_SECONDS

    def _remove(self, gang: ChaosGang, do: Do) -> None:
        def delete() -> None:
            for document in reversed(gang.documents()):
                ask_patiently(self.connection, "DELETE", f"{path_of(document)}/{document['metadata']['name']}", BACKGROUND)

        del self.alive[gang.name]
        self.ledger.withdrawn.add(gang.name)
        do(delete)

    def fill(self, gangs: int) -> None:
        """Take away all that is to end, and make gangs that stay: more than there is room for."""
        with self._at_once() as do:
            for alive in list(self.alive.values()):
                self._remove(alive.gang, do)
            for _ in range(gangs):
                self._submit(do, is_endless=True)

    def clear(self) -> None:
        """Remove everything, and wait until it is gone."""
        self.ledger.withdrawn.update(self.alive)
        for path in COLLECTIONS:
            ask_patiently(self.connection, "DELETE", path.format(self.namespace), BACKGROUND)
        self.alive.clear()
        end = time.monotonic() + PATIENCE_SECONDS
        while self.ledger.pods and time.monotonic() < end:
            time.sleep(0.3)
        if self.ledger.pods:
            self.findings.violate("left behind", f"{len(self.ledger.pods)} pods do not go: {', '.join(self.left())}")

    def left(self) -> list[str]:
        """Return the names of some pods that are there."""
        return sorted(str(pod["metadata"]["name"]) for pod in self.ledger.pods.values())[:6]


def in_thread(work: Callable[[], None], findings: Findings) -> threading.Thread:
    """Do something in a thread; a failure of it is a violation, so that it is seen."""

    def run() -> None:
        try:
            work()
        except Exception as problem:
            findings.violate("the storm itself failed", f"{type(problem).__name__}: {problem}")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
