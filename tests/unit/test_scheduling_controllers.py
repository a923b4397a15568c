"""Controllers on a real cluster: what they are asked, when, and what becomes of what they say."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

import pytest

from phalanx.controllers.controller import NOTHING, Create, Key, Patch, Result, Try, View
from phalanx.errors import Invalid, ServerError
from phalanx.live.api_port import ApiPort
from phalanx.live.clock import LoopClock
from phalanx.live.outbox import Outbox
from phalanx.model.kinds import POD, Document, Kind, kind_at
from phalanx.scheduling import refusals
from phalanx.scheduling import workqueue as module
from phalanx.scheduling.controllers import SLICE_SECONDS, ControllerRunner
from phalanx.scheduling.workqueue import WorkQueue
from phalanx.store.kube.client import Client
from phalanx.store.kube.mirror import Mirror
from phalanx.testing.build import pod
from tests.support.embedded_server import Server, until

CONFIG = kind_at("", "configmaps")
A, B = Key("default", "a"), Key("default", "b")


class Echo:
    """A controller of pods that says what a test wants, and notes what it was asked."""

    name = "echo"
    watches: Sequence[Kind] = (POD,)
    brings_back: Sequence[Kind] = ()

    def __init__(self, say: Callable[[View, Key], Result] = lambda view, key: NOTHING) -> None:
        self.asked: list[Key] = []
        self._say = say

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        yield Key(document["metadata"].get("namespace", "default"), document["metadata"]["name"])

    def reconcile(self, view: View, key: Key) -> Result:
        self.asked.append(key)
        return self._say(view, key)


class PatientEcho(Echo):
    """One that wants to look at many changes at once."""

    patience_seconds = 5.0


class Clock:
    """The time that a test says it is."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def queue_of(*controllers: Echo) -> tuple[WorkQueue, Clock]:
    clock = Clock()
    return WorkQueue(Mirror(clock), controllers, report=lambda text: None), clock


def keys(queue: WorkQueue) -> list[Key]:
    """Return what there is to look at now."""
    while queue.sort_one():
        pass
    return sorted((question[1] for question in iter(lambda: queue.get({}), None)), key=lambda key: key.name)


# --- the work queue-------------------------------------------------------------------------------------------------------


def test_a_key_is_asked_about_once_however_often_it_changed() -> None:
    queue, _ = queue_of(Echo())
    for name in "abaa":
        queue.notice(POD, pod(name))
    queue.notice(CONFIG, pod("nobody wants to know"))
    assert keys(queue) == [A, B]
    assert queue.next_time() is None


def test_a_key_that_somebody_is_busy_with_waits() -> None:
    queue, _ = queue_of(Echo())
    for name in "ab":
        queue.notice(POD, pod(name))
    while queue.sort_one():
        pass
    assert queue.get({("echo", A)}) is not None
    assert queue.get({("echo", A)}) is None
    assert keys(queue) == [A]


def test_a_key_is_asked_about_again_at_the_earliest_moment_that_was_named() -> None:
    echo = Echo()
    queue, clock = queue_of(echo)
    for moment in (1030.0, 1010.0, 1020.0):
        queue.done((echo, A), moment)
    assert (queue.next_time(), keys(queue)) == (1010.0, [])
    clock.now = 1010.0
    assert keys(queue) == [A]
    clock.now = 1040.0
    assert keys(queue) == []


def test_who_is_patient_is_asked_a_while_after_the_first_change() -> None:
    queue, clock = queue_of(PatientEcho())
    queue.notice(POD, pod("a"))
    assert keys(queue) == []
    clock.now += 4.0
    queue.notice(POD, pod("a"))
    assert keys(queue) == []
    clock.now += 1.0
    assert keys(queue) == [A]


def refused_after_its_wait(queue: WorkQueue, clock: Clock, echo: Echo) -> float:
    """Let a key be refused, and its wait pass; return the wait."""
    begun, wait = clock.now, queue.retry((echo, A))
    clock.now += wait
    assert keys(queue) == [A]
    return round(clock.now - begun, 2)


def test_each_refusal_waits_twice_as_long_until_all_goes_well() -> None:
    echo = Echo()
    queue, clock = queue_of(echo)
    waits = [refused_after_its_wait(queue, clock, echo) for _ in range(17)]
    assert waits == [0.01 * 2**number for number in range(15)] + [300.0, 300.0]
    assert queue.retry((echo, B)) == pytest.approx(0.01)
    queue.done((echo, A), None)
    assert queue.retry((echo, A)) == pytest.approx(0.01)


def test_what_is_refused_again_before_its_wait_is_over_waits_on_and_no_longer() -> None:
    echo = Echo()
    queue, clock = queue_of(echo)
    refused_after_its_wait(queue, clock, echo)
    assert queue.retry((echo, A)) == pytest.approx(0.02)
    clock.now += 0.015
    assert [queue.retry((echo, A)) for _ in range(9)] == [pytest.approx(0.005)] * 9
    assert queue.next_time() == pytest.approx(clock.now + 0.005)


def test_a_wait_ends_although_the_clock_was_set_back() -> None:
    echo = Echo()
    queue, clock = queue_of(echo)
    queue.retry((echo, A))
    clock.now -= 600.0
    assert queue.retry((echo, A)) == pytest.approx(0.01)


def test_a_refusal_waits_for_as_long_as_the_server_asks() -> None:
    echo = Echo()
    queue, clock = queue_of(echo)
    first = queue.retry((echo, B))
    assert queue.retry((echo, A), at_least=5.0) == pytest.approx(5.0)
    clock.now += 5.0
    assert queue.retry((echo, A)) == pytest.approx(2 * first)


def test_a_change_is_looked_at_without_waiting_for_the_end_of_a_back_off() -> None:
    echo = Echo()
    queue, _ = queue_of(echo)
    queue.retry((echo, A))
    queue.notice(POD, pod("a"))
    assert keys(queue) == [A]


def test_an_object_that_one_controller_stumbles_over_is_told_of_and_the_others_hear_of_it() -> None:
    class Stumbling(Echo):
        name = "stumbling"

        def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
            raise AttributeError("no such field")

    complaints: list[str] = []
    queue = WorkQueue(Mirror(Clock()), [Stumbling(), Echo()], report=complaints.append)
    queue.notice(POD, pod("a"))
    assert keys(queue) == [A]
    assert complaints == ["stumbling, pods default/a: left out, please report it: AttributeError: no such field"]


# --- at work -------------------------------------------------------------------------------------------------------------


class Office:
    """Controllers at work on an embedded cluster."""

    def __init__(self, server: Server, client: Client, *controllers: Echo) -> None:
        self.server, self.complaints = server, list[str]()
        self.mirror = Mirror(lambda: server.store.now)
        self.outbox = Outbox(report=self.complaints.append)
        port = ApiPort(client, self.outbox, self.mirror, LoopClock(lambda: server.store.now), instance="test")
        self.binds_under_way = 0
        self.runner = ControllerRunner(port, controllers, is_busy=self.is_binding, report=self.complaints.append)

    def is_binding(self) -> bool:
        """Tell whether binds are under way: so often as a test says, and then they have come through."""
        self.binds_under_way -= 1
        return self.binds_under_way >= 0

    def change(self, *names: str) -> None:
        for name in names:
            self.runner.notice(POD, pod(name))

    def config_maps(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.server.store.items(CONFIG)]


def run(question: Callable[[Office], Awaitable[None]], *controllers: Echo) -> None:
    async def asked() -> None:
        server = Server()
        async with server.opened() as client:
            office = Office(server, client, *controllers)
            office.runner.start()
            try:
                await question(office)
            finally:
                office.runner.stop()

    asyncio.run(asked())


def make(name: str) -> Create:
    return Create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})


WRONG = Patch(CONFIG, "default", "missing", {"data": {"x": "y"}})


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(refusals, "SHORTEST_PAUSE", 0.01)


def test_what_a_controller_says_is_written_and_known_at_once() -> None:
    echo = Echo(lambda view, key: NOTHING if view.find(CONFIG, "default", key.name) else Result([make(key.name)]))

    async def question(office: Office) -> None:
        office.change("a", "b")
        await until(lambda: office.config_maps() == ["a", "b"])
        office.change("a")
        await until(lambda: len(echo.asked) == 3)
        assert office.complaints == []

    run(question, echo)


def test_while_something_is_written_for_a_key_nobody_looks_at_it_again() -> None:
    echo = Echo(lambda view, key: NOTHING if view.find(CONFIG, "default", "y") else Result([make("x"), make("y")]))

    async def question(office: Office) -> None:
        office.change("a")
        await until(lambda: echo.asked)
        office.change("a")
        await until(lambda: len(echo.asked) == 2)
        assert office.config_maps() == ["x", "y"]

    run(question, echo)


def test_a_refusal_leaves_out_the_rest_and_is_tried_again() -> None:
    echo = Echo(lambda view, key: Result([make("x"), WRONG, make("y")]))

    async def question(office: Office) -> None:
        office.change("a")
        await until(lambda: len(echo.asked) >= 3)
        assert office.config_maps() == ["x"]
        assert office.complaints[0] == 'echo, default/a: configmaps "missing" not found; tried again in 0.01 s'
        assert office.complaints[1].endswith("tried again in 0.02 s")

    run(question, echo)


def test_a_controller_that_raises_stops_nobody_and_is_asked_again() -> None:
    def say(view: View, key: Key) -> Result:
        if key == A and len(echo.asked) < 4:
            raise KeyError("spec")
        return Result([make(key.name)])

    echo = Echo(say)

    async def question(office: Office) -> None:
        office.change("a", "b")
        await until(lambda: office.config_maps() == ["a", "b"])
        assert office.complaints[0] == "echo, default/a: KeyError: 'spec'; tried again in 0.01 s"

    run(question, echo)


def test_a_controller_is_asked_again_when_it_wants_to_be() -> None:
    def say(view: View, key: Key) -> Result:
        return Result((), view.now + 0.01) if len(echo.asked) < 3 else NOTHING

    echo = Echo(say)

    async def question(office: Office) -> None:
        office.change("a")
        await until(lambda: len(echo.asked) == 3)

    run(question, echo)


def test_binds_go_first() -> None:
    echo = Echo()

    async def question(office: Office) -> None:
        office.binds_under_way = 3
        begun = asyncio.get_running_loop().time()
        office.change("a")
        await until(lambda: echo.asked)
        assert office.binds_under_way < 0
        assert asyncio.get_running_loop().time() - begun >= 2 * SLICE_SECONDS

    run(question, echo)


def test_many_keys_are_worked_off_beside_each_other() -> None:
    echo = Echo(lambda view, key: Result([make(key.name)]))

    async def question(office: Office) -> None:
        office.server.refusals.extend([Invalid("no")] * 2)
        office.change(*(f"p{number}" for number in range(40)))
        await until(lambda: len(office.config_maps()) == 40)
        assert len(office.complaints) == 2

    run(question, echo)


def test_what_is_dropped_when_another_takes_over_is_not_answered_by_other_writes() -> None:
    def say(view: View, key: Key) -> Result:
        return Result([Try(make("tried"), lambda reason: [make("instead")]), make("rest")])

    async def question(office: Office) -> None:
        office.server.refusals.append(ServerError("etcd is away"))
        office.change("a")
        await until(lambda: office.outbox.waiting())
        office.runner.stop()
        office.outbox.drop()
        await asyncio.sleep(0.05)
        assert (office.config_maps(), office.outbox.waiting(), office.complaints) == ([], 0, [])

    run(question, Echo(say))
