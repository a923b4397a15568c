"""Virtual time: what happens when, and in which order."""

from phalanx.sim.virtual_time import Precedence, VirtualTime


def test_things_happen_by_moment_then_rank_then_the_order_of_planning() -> None:
    time, heard = VirtualTime(100.0), list[str]()
    time.at(102, Precedence.WORLD, lambda: heard.append("later"))
    time.at(101, Precedence.SESSION, lambda: heard.append("session"))
    time.at(101, Precedence.WORLD, lambda: heard.append("first"))
    time.at(101, Precedence.WORLD, lambda: heard.append("second"))
    time.advance(101)
    assert (heard, time.now) == (["first", "second", "session"], 101)
    time.advance(110)
    assert (heard[-1], time.now) == ("later", 110)


def test_what_is_planned_for_the_past_happens_now() -> None:
    time, heard = VirtualTime(100.0), list[float]()
    time.at(50, Precedence.WORLD, lambda: heard.append(time.now))
    time.after(-5, Precedence.WORLD, lambda: heard.append(time.now))
    time.advance(100)
    assert heard == [100.0, 100.0]


def test_what_is_planned_by_what_happens_is_done_in_the_same_moment() -> None:
    time, heard = VirtualTime(0.0), list[str]()
    time.after(1, Precedence.SESSION, lambda: heard.append("session"))

    def begin() -> None:
        time.after(0, Precedence.WORK, lambda: heard.append("work"))

    time.after(1, Precedence.WORLD, begin)
    time.advance(1)
    assert heard == ["work", "session"]


def test_a_cancelled_timer_does_nothing_and_is_not_waited_for() -> None:
    time, heard = VirtualTime(0.0), list[str]()
    timer = time.after(5, Precedence.WORLD, lambda: heard.append("never"))
    time.after(9, Precedence.WORLD, lambda: heard.append("done"))
    timer.cancel()
    assert time.next_time() == 9
    time.advance(10)
    assert heard == ["done"]
    assert time.next_time() is None


def test_the_next_deed_is_no_session() -> None:
    time = VirtualTime(0.0)
    time.after(1, Precedence.SESSION, lambda: None)
    assert (time.next_time(), time.next_deed()) == (1, None)
    time.after(7, Precedence.KUBELET, lambda: None)
    time.after(3, Precedence.WORK, lambda: None).cancel()
    assert time.next_deed() == 7
