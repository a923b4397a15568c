"""The proxy does to requests and watches what it was told to."""

import http.client
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support.fault_proxy import Blow, Harm, Proxy
from tests.support.http_api import Answer, Connection, Gatekeeper, served
from tests.support.store_contract import eventually

PATH = "/api/v1/namespaces/default/pods"
SOON, WATCH_SECONDS = 0.2, 2


@pytest.fixture
def keeper() -> Gatekeeper:
    return Gatekeeper()


@pytest.fixture
def proxy(keeper: Gatekeeper) -> Iterator[Proxy]:
    with served(MemoryStore(time.time), gatekeeper=keeper) as connection, Proxy(connection) as proxy:
        yield proxy


def post(proxy: Proxy, name: str = "a") -> Answer:
    document = build.pod(name, cpu=1)
    return Connection(proxy.address).ask("POST", PATH, {**document, "metadata": {"name": name, "namespace": "default"}})


def reached(keeper: Gatekeeper) -> int:
    return sum(method == "POST" for method, _ in keeper.asked)


@pytest.mark.parametrize(("harm", "passed"), [(Harm.REFUSED, 0), (Harm.REFUSED_AFTER, 1)])
def test_a_code_comes_before_or_after_the_effect(proxy: Proxy, keeper: Gatekeeper, harm: Harm, passed: int) -> None:
    proxy.strike(Blow(harm, 503), PATH, times=1)
    assert post(proxy).refusal == (503, "ServiceUnavailable", "the proxy was told to fail")
    assert reached(keeper) == passed


@pytest.mark.parametrize(("harm", "passed"), [(Harm.RESET, 0), (Harm.RESET_AFTER, 1)])
def test_a_reset_comes_before_or_after_the_effect(proxy: Proxy, keeper: Gatekeeper, harm: Harm, passed: int) -> None:
    proxy.strike(Blow(harm), PATH, times=1)
    with pytest.raises((OSError, http.client.HTTPException)):
        post(proxy)
    assert reached(keeper) == passed


@pytest.mark.parametrize(("harm", "passed"), [(Harm.MUTE, 0), (Harm.MUTE_AFTER, 1)])
def test_nobody_answers_until_faults_end(proxy: Proxy, keeper: Gatekeeper, harm: Harm, passed: int) -> None:
    proxy.strike(Blow(harm), PATH, times=1)
    problems: list[Exception] = []

    def ask() -> None:
        try:
            post(proxy)
        except (OSError, http.client.HTTPException) as problem:
            problems.append(problem)

    asking = threading.Thread(target=ask)
    asking.start()
    assert eventually(lambda: len(proxy.seen) == 1 and reached(keeper) == passed)
    asking.join(SOON)
    assert asking.is_alive()
    proxy.calm()
    asking.join(10.0)
    assert len(problems) == 1


def test_an_answer_comes_bit_by_bit(proxy: Proxy) -> None:
    proxy.strike(Blow(Harm.SLOW, seconds=SOON), PATH, times=1)
    begun = time.monotonic()
    answer = post(proxy)
    assert time.monotonic() - begun >= SOON
    assert (answer.code, answer.body["metadata"]["name"]) == (201, "a")


def test_an_answer_ends_in_the_middle(proxy: Proxy, keeper: Gatekeeper) -> None:
    proxy.strike(Blow(Harm.HALF), PATH, times=1)
    with pytest.raises((OSError, http.client.HTTPException)):
        post(proxy)
    assert reached(keeper) == 1


def watched(proxy: Proxy, harm: Harm) -> tuple[list[dict[str, Any]], Exception | None]:
    """Return what a watch tells of one pod until it ends, and how it ends."""
    assert post(proxy).code == 201
    version = Connection(proxy.address).ask("GET", PATH).body["metadata"]["resourceVersion"]
    assert post(proxy, "b").code == 201
    proxy.strike(Blow(harm, seconds=SOON), PATH, times=1)
    found = []
    try:
        for event in Connection(proxy.address).watch(PATH, seconds=WATCH_SECONDS, resourceVersion=version):
            found.append(event)
    except (OSError, ValueError, http.client.HTTPException) as problem:
        return found, problem
    return found, None


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["object"].get("metadata", {}).get("name", event["type"]) for event in events]


def test_a_watch_says_that_it_is_gone(proxy: Proxy) -> None:
    events, problem = watched(proxy, Harm.GONE)
    assert (names(events), problem) == (["b", "ERROR"], None)
    assert events[-1]["object"]["code"] == 410


def test_a_watch_repeats_itself_and_goes_on(proxy: Proxy) -> None:
    events, problem = watched(proxy, Harm.REPEATED)
    assert (names(events), problem) == (["b", "b"], None)


@pytest.mark.parametrize("harm", [Harm.CUT, Harm.TRUNCATED])
def test_a_watch_ends_too_early(proxy: Proxy, harm: Harm) -> None:
    begun = time.monotonic()
    events, problem = watched(proxy, harm)
    assert names(events) == ["b"]
    assert time.monotonic() - begun < WATCH_SECONDS
    assert isinstance(problem, ValueError) == (harm is Harm.TRUNCATED)  # half a line is no JSON


def test_a_watch_tells_nothing_until_faults_end(proxy: Proxy) -> None:
    timer = threading.Timer(WATCH_SECONDS + 0.5, proxy.calm)  # the server itself would have ended it
    timer.start()
    events, _ = watched(proxy, Harm.SILENT)
    assert (names(events), timer.is_alive()) == (["b"], False)
