"""Logs: one line for each thing, as text or as JSON, and no more than was asked for."""

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from phalanx.live.logs import Form, Line, level_of, log_line, log_lines, logger_of, start_logging, stop_logging, verbosity_of

SCHEDULER = logger_of("scheduler")
WAITS = Line(2, "gang ml/bert waits: 3 of 4 tasks fit", {"queue": "research", "gang": "ml/bert", "cycle": 12, "tried": 3})
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@contextmanager
def logs(verbosity: int = 0, form: Form = "text") -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = start_logging(verbosity, form, stream=stream)
    try:
        yield stream
    finally:
        stop_logging(handler)


def test_a_line_of_text_has_behind_it_what_the_sentence_does_not_say() -> None:
    with logs(2) as found:
        log_line(SCHEDULER, WAITS)
    moment, rest = found.getvalue().split(" ", 1)
    assert MOMENT.fullmatch(moment)
    assert rest == "INFO  scheduler  gang ml/bert waits: 3 of 4 tasks fit  cycle=12 queue=research\n"


def test_a_name_that_is_only_part_of_a_word_is_not_said() -> None:
    with logs(2) as found:
        log_line(
            SCHEDULER,
            Line(0, "gang ml/bert-large waits in 'research', cycle 12", {"gang": "ml/bert", "queue": "research", "cycle": 12}),
        )
    assert found.getvalue().endswith("cycle 12  cycle=12 gang=ml/bert\n")


def test_json_has_its_keys_in_order() -> None:
    with logs(2, "json") as found:
        log_line(SCHEDULER, WAITS)
    document = json.loads(found.getvalue())
    assert list(document) == ["ts", "level", "v", "logger", "msg", "gang", "queue", "cycle", "tried"]
    assert MOMENT.fullmatch(document.pop("ts"))
    assert document == {
        "level": "info", "v": 2, "logger": "scheduler", "msg": "gang ml/bert waits: 3 of 4 tasks fit",
        "gang": "ml/bert", "queue": "research", "cycle": 12, "tried": 3,
    }  # fmt: skip


@pytest.mark.parametrize(("verbosity", "written"), [(0, 1), (1, 2), (2, 3), (5, 6), (9, 6)])
def test_lines_are_written_up_to_the_verbosity(verbosity: int, written: int) -> None:
    with logs(verbosity) as found:
        for level in range(6):
            log_line(SCHEDULER, Line(level, "something"))
    assert len(found.getvalue().splitlines()) == written


def test_nobody_is_asked_for_lines_that_would_not_be_written() -> None:
    asked = []

    def lines(verbosity: int) -> list[Line]:
        asked.append(verbosity)
        return [WAITS]

    SCHEDULER.setLevel(logging.WARNING)
    try:
        log_lines(SCHEDULER, lines)
    finally:
        SCHEDULER.setLevel(logging.NOTSET)
    assert asked == []
    with logs(4) as found:
        log_lines(SCHEDULER, lines)
    assert asked == [4]
    assert "gang ml/bert waits" in found.getvalue()


def test_warnings_and_errors_are_written_whatever_the_verbosity() -> None:
    with logs(0, "json") as found:
        SCHEDULER.warning("the watch has ended")
        SCHEDULER.error("a bind failed", extra={"fields": {"pod": "ml/bert-0", "err": "409 Conflict"}})
    first, second = map(json.loads, found.getvalue().splitlines())
    assert (first["level"], "v" in first) == ("warn", False)
    assert list(second) == ["ts", "level", "logger", "msg", "err", "pod"]
    assert (second["level"], second["err"]) == ("error", "409 Conflict")


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_exception_comes_with_where_it_happened(form: Form) -> None:
    with logs(0, form) as found:
        try:
            raise ValueError("no such node")
        except ValueError:
            SCHEDULER.exception("a session failed")
    text = found.getvalue()
    assert "ValueError: no such node" in text
    assert "test_live_logs.py" in text
    if form == "json":
        assert len(text.splitlines()) == 1
    else:
        assert text.splitlines()[0].endswith('ERROR scheduler  a session failed  err="ValueError: no such node"')


def test_nothing_from_outside_begins_a_line_of_its_own() -> None:
    with logs() as found:
        log_line(SCHEDULER, Line(0, "queue a\n2026 INFO scheduler all is well", {"gang": "b\nc"}))
    assert len(found.getvalue().splitlines()) == 1


def test_libraries_say_what_is_wrong_and_not_what_they_do() -> None:
    with logs(5) as found:
        logging.getLogger("aiohttp.client").info("request sent")
        logging.getLogger("aiohttp.client").warning("connection lost")
    assert [line.split(" ", 1)[1] for line in found.getvalue().splitlines()] == ["WARN  aiohttp.client  connection lost"]


def test_levels_are_those_of_the_standard_library_turned_round() -> None:
    assert [level_of(0), level_of(5), level_of(99)] == [logging.INFO, logging.INFO - 5, logging.INFO - 9]
    with logs(3):
        assert verbosity_of(SCHEDULER) == 3
    assert verbosity_of(SCHEDULER) == -1
