"""The line to an extender over HTTP."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from phalanx.live.catalogue import connected
from phalanx.live.extender import HttpLine
from phalanx.plugins.extender import Endpoint, Question
from phalanx.session.cycle import open_session
from phalanx.testing import build


class _Process(HTTPServer):
    answer: bytes = b"{}"
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.heard: list[tuple[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Process

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append((self.path, json.loads(body)))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def process() -> Iterator[_Process]:
    with _Process() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def line_to(process: _Process) -> HttpLine:
    paths = {"predicate": "filter", "allocateFunc": "/told"}
    return HttpLine(Endpoint(f"http://127.0.0.1:{process.server_address[1]}/v1/", 1.0, paths))


def question(verb: str = "predicate", node: int = 0) -> Question:
    found = build.cluster(nodes=2).submit(build.gang("train", cpu=1))
    session = open_session(found.objects.snapshot(0.0), found.policy, connected(found.policy).catalogue)
    return Question(verb, session, next(iter(session.gangs.values())).tasks[0], (node,))


def test_a_question_is_posted_and_its_answer_read(process: _Process) -> None:
    process.answer = b'{"status": "no"}'
    assert line_to(process)(question()).message == "no"
    ((path, body),) = process.heard
    assert path == "/v1/filter"
    assert body["node"]["Name"] == "node-0"


def test_the_same_question_is_asked_once(process: _Process) -> None:
    line, same = line_to(process), question()
    assert line(same) == line(same)
    line(question(node=1))
    assert len(process.heard) == 2


def test_what_it_is_told_is_told_every_time(process: _Process) -> None:
    line, event = line_to(process), question("allocateFunc")
    line(event)
    line(event)
    assert [path for path, _ in process.heard] == ["/v1/told", "/v1/told"]


def test_a_process_that_failed_is_not_asked_again(process: _Process) -> None:
    process.status = 500
    line = line_to(process)
    assert line(question()).problem.endswith("/v1/filter answered with status 500")
    assert line(question(node=1)).problem.endswith("answered with status 500")
    assert len(process.heard) == 1


def test_nobody_at_the_address_is_a_problem_and_no_error() -> None:
    line = HttpLine(Endpoint("http://127.0.0.1:9", 0.2, {"predicate": "p"}))
    assert line(question()).problem.startswith("http://127.0.0.1:9/p: ")


def test_an_address_that_makes_no_sense_is_a_problem_and_no_error() -> None:
    assert HttpLine(Endpoint("http://[", 0.2, {"predicate": "p"}))(question()).problem


def test_a_password_in_the_address_is_in_no_message() -> None:
    answer = HttpLine(Endpoint("http://ada:pa55@127.0.0.1:1/v1?key=pa55", 1.0, {"predicate": "filter"}))(question())
    assert answer.problem.startswith("http://***@127.0.0.1:1/v1?***")
    assert "pa55" not in answer.problem
