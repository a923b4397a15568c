"""What time it is: that of the API server, as far as its answers tell."""

import asyncio

import pytest

from phalanx.live.clock import LoopClock
from phalanx.store.kube.client import Client
from tests.support.embedded_server import Server

SERVER = 1_800_000_000.0


class Machine:
    """A clock that is wrong, and one that counts the seconds since the machine was started."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.ahead, self.boot = ahead, 100.0
        self.clock = LoopClock(wall=lambda: SERVER + self.ahead + self.boot - 100.0, boot=lambda: self.boot)

    def ask(self, *, at: float, seconds: float = 0.1, read_after: float = 0.0) -> None:
        """Ask the server at a second of its clock, and read the answer late."""
        self.boot = 100.0 + at + seconds + read_after
        self.clock.hear(float(int(SERVER + at + seconds / 2)), seconds + read_after)

    @property
    def error(self) -> float:
        return self.clock.now - (SERVER + self.boot - 100.0)


def test_before_the_first_answer_the_clock_of_the_machine_counts() -> None:
    assert Machine(ahead=600.0).error == 600.0


@pytest.mark.parametrize("ahead", [-600.0, 600.0])
def test_after_an_answer_it_is_the_time_of_the_server_to_a_second(ahead: float) -> None:
    machine = Machine(ahead)
    machine.ask(at=5.3)
    assert abs(machine.error) <= 1.2


def test_a_clock_that_agrees_with_the_server_is_left_as_it_is() -> None:
    machine = Machine(ahead=0.01)
    for second in range(20):
        machine.ask(at=second * 1.37)
    assert machine.error == pytest.approx(0.01)


def test_whoever_sets_the_clock_of_the_machine_changes_nothing() -> None:
    machine = Machine()
    machine.ask(at=1.0)
    machine.ahead = 3600.0
    assert machine.error == pytest.approx(0.0)


def test_an_answer_that_was_read_late_does_not_set_the_time_back() -> None:
    machine = Machine()
    machine.ask(at=1.0)
    machine.ask(at=2.0, read_after=30.0)
    assert machine.error == pytest.approx(0.0)


def test_the_client_tells_the_date_of_every_answer() -> None:
    async def question() -> None:
        server, heard = Server(), list[tuple[float, float]]()
        async with server.opened() as client:
            assert isinstance(client, Client)
            client.heard = lambda date, seconds: heard.append((date, seconds))
            await client.version()
            assert [date for date, _ in heard] == [float(int(server.store.now))]
            assert 0.0 <= heard[0][1] < 10.0

    asyncio.run(question())
