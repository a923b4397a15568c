"""Virtual time: what happens when, and in which order."""

from phalanx.sim.event_queue import Kernel, Rank


def test_things_happen_by_moment_then_rank_then_the_order_of_planning() -> None:
    kernel, heard = Kernel(100.0), list[str]()
    kernel.at(102, Rank.WORLD, lambda: heard.append("later"))
    kernel.at(101, Rank.SESSION, lambda: heard.append("session"))
    kernel.at(101, Rank.WORLD, lambda: heard.append("first"))
    kernel.at(101, Rank.WORLD, lambda: heard.append("second"))
    kernel.advance(101)
    assert (heard, kernel.now) == (["first", "second", "session"], 101)
    kernel.advance(110)
    assert (heard[-1], kernel.now) == ("later", 110)


def test_what_is_planned_for_the_past_happens_now() -> None:
    kernel, heard = Kernel(100.0), list[float]()
    kernel.at(50, Rank.WORLD, lambda: heard.append(kernel.now))
    kernel.after(-5, Rank.WORLD, lambda: heard.append(kernel.now))
    kernel.advance(100)
    assert heard == [100.0, 100.0]


def test_what_is_planned_by_what_happens_is_done_in_the_same_moment() -> None:
    kernel, heard = Kernel(0.0), list[str]()
    kernel.after(1, Rank.SESSION, lambda: heard.append("session"))

    def begin() -> None:
        kernel.after(0, Rank.WORK, lambda: heard.append("work"))

    kernel.after(1, Rank.WORLD, begin)
    kernel.advance(1)
    assert heard == ["work", "session"]


def test_a_cancelled_timer_does_nothing_and_is_not_waited_for() -> None:
    kernel, heard = Kernel(0.0), list[str]()
    timer = kernel.after(5, Rank.WORLD, lambda: heard.append("never"))
    kernel.after(9, Rank.WORLD, lambda: heard.append("done"))
    timer.cancel()
    assert kernel.next_time() == 9
    kernel.advance(10)
    assert heard == ["done"]
    assert kernel.next_time() is None


def test_the_next_deed_is_no_session() -> None:
    kernel = Kernel(0.0)
    kernel.after(1, Rank.SESSION, lambda: None)
    assert (kernel.next_time(), kernel.next_deed()) == (1, None)
    kernel.after(7, Rank.KUBELET, lambda: None)
    kernel.after(3, Rank.WORK, lambda: None).cancel()
    assert kernel.next_deed() == 7
