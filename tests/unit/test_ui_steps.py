"""Sessions as the page shows them: kept without being counted, taken again by their number, gone through step by step."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.errors import SnapshotError
from phalanx.scheduling.shards import decide
from phalanx.stepping.stepped_session import SteppedSession
from phalanx.testing import build
from phalanx.ui import steps as module
from phalanx.ui.kept_sessions import MOST_KEPT, KeptSessions
from phalanx.ui.source import KeptSession, SessionInput
from phalanx.ui.steps import MOST_OPEN, OpenSessions, step_document, steps_document
from tests.support.ui_pages import connect, seen

PROFILE = connect(policy_of_profile("phalanx"))
NODES = [build.node(f"n{number}", gpus=1) for number in range(3)]
STARTS = seen(*NODES, build.queue("default"), build.gang("train", tasks=2, gpus=1), build.gang("late", tasks=2, gpus=1)).snapshot
QUIET = seen(*NODES, build.queue("default"), build.gang("late", tasks=4, gpus=1)).snapshot


def keep(kept: KeptSessions, *snapshots: Any) -> KeptSessions:
    for snapshot in snapshots:
        kept.keep(snapshot, decide(snapshot, PROFILE), PROFILE)
    return kept


# --- kept sessions -------------------------------------------------------------------------------------------------------


def test_a_row_says_what_a_session_decided() -> None:
    row = keep(KeptSessions(), STARTS).kept()[0]
    assert (row.key, row.placed, row.pipelined, row.evicted) == ("1", 2, 0, 0)
    assert list(row.sample) == ["1 gang starts: default/late"]


def test_the_latest_session_comes_first_and_quiet_ones_take_each_others_place() -> None:
    kept = keep(KeptSessions(), STARTS, QUIET, QUIET, QUIET, STARTS)
    assert [(row.number, row.placed) for row in kept.kept()] == [(5, 2), (4, 0), (1, 2)]


def test_so_many_sessions_are_kept_and_no_more() -> None:
    kept = keep(KeptSessions(), *[STARTS] * (MOST_KEPT + 5))
    assert len(kept.kept()) == MOST_KEPT
    assert kept.take("1") is None
    assert kept.take(str(MOST_KEPT)) is not None


def test_a_session_is_taken_with_what_it_was_held_on() -> None:
    taken = keep(KeptSessions(), STARTS).take("1")
    assert taken is not None
    assert (taken.snapshot, taken.title) == (STARTS, "session 1")


# --- opened sessions -----------------------------------------------------------------------------------------------------


class Shelf:
    """Sessions on one snapshot; counts how often one was taken."""

    def __init__(self, snapshot: Any = STARTS) -> None:
        self.snapshot, self.taken = snapshot, 0

    def kept(self) -> list[KeptSession]:
        return []

    def take(self, key: str) -> SessionInput | None:
        self.taken += 1
        return SessionInput(self.snapshot, PROFILE, f"session {key}") if key.isdecimal() else None


def opened(*asked: tuple[str, str], shelf: Shelf) -> SteppedSession:
    async def run() -> SteppedSession:
        sessions = OpenSessions()
        return [await sessions.of(shelf, key, gang) for key, gang in asked][-1]

    return asyncio.run(run())


def test_a_session_is_decided_once_for_all_who_go_through_it() -> None:
    shelf = Shelf()
    opened(("1", ""), ("1", ""), ("1", "default/train"), ("1", ""), shelf=shelf)
    assert shelf.taken == 2


def test_the_session_that_nobody_went_through_for_longest_is_closed() -> None:
    shelf = Shelf()
    opened(*((str(number), "") for number in range(MOST_OPEN + 1)), ("0", ""), shelf=shelf)
    assert shelf.taken == MOST_OPEN + 2


@pytest.mark.parametrize(
    ("key", "gang", "text"),
    [("gone", "", "session gone is not kept any more"), ("1", "default/nobody", "there is no gang default/nobody in session 1")],
)
def test_what_is_not_there_is_said(key: str, gang: str, text: str) -> None:
    with pytest.raises(SnapshotError, match=text):
        opened((key, gang), shelf=Shelf())


def test_of_a_session_that_is_too_long_a_gang_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PAIRS", 1)
    with pytest.raises(SnapshotError, match="name a gang"):
        opened(("1", ""), shelf=Shelf())
    assert opened(("1", "default/train"), shelf=Shelf()).count > 0


# --- documents -----------------------------------------------------------------------------------------------------------


def rows(document: Any, name: str) -> list[Any]:
    column = document["columns"][name]
    return [document["texts"][place] for place in column] if name in ("event", "action", "queue", "gang", "shard") else column


def test_steps_are_listed_up_to_a_level_with_what_they_belong_to() -> None:
    session = SteppedSession(STARTS, PROFILE, "session 1")
    found, all_found = steps_document(session), steps_document(session, level=5)
    assert found["decided"] == {"placed": 2, "pipelined": 0, "evicted": 0}
    assert set(found["columns"]["level"]) <= {1, 2, 3}
    assert (len(all_found["columns"]["number"]), all_found["left"]) == (session.count, 0)
    assert "allocate" in rows(found, "action")
    assert "default/train" in rows(all_found, "gang")
    assert "commit" in rows(found, "event")


def test_a_list_that_is_too_long_says_how_many_steps_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 3)
    found = steps_document(SteppedSession(STARTS, PROFILE, "session 1"), level=5)
    assert len(found["columns"]["number"]) == 3
    assert found["left"] == found["shown"] - 3 > 0


def test_a_step_has_votes_scores_and_the_room_of_its_node() -> None:
    session = SteppedSession(STARTS, PROFILE, "session 1")
    steps = [step_document(session, number) for number in range(1, session.count + 1)]
    votes = [vote for step in steps for vote in step["votes"]]
    assert "priority" in [vote["plugin"] for vote in votes]
    scores = next(step["scores"] for step in steps if step["scores"])
    assert all(len(row) == 2 + len(scores["plugins"]) for row in scores["rows"])
    assert scores["rows"] == sorted(scores["rows"], key=lambda row: (-row[1], row[0])), "the best node comes first"
    assert any(step.get("room") for step in steps)


@pytest.mark.parametrize("number", [0, -1, 10_000])
def test_a_step_that_is_not_there_says_which_are(number: int) -> None:
    session = SteppedSession(STARTS, PROFILE, "session 1")
    with pytest.raises(SnapshotError, match=f"write a number from 1 to {session.count}"):
        step_document(session, number)


def test_a_quiet_session_has_no_sample() -> None:
    kept = keep(KeptSessions(), QUIET)
    assert replace(kept.kept()[0], number=0) == KeptSession(0, QUIET.now, 0, 0, 0)
