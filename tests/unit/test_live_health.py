"""Health over HTTP: what probes and people get."""

import asyncio
import json
from collections.abc import Mapping

import aiohttp
import pytest

from phalanx.live.health import Check, Health
from phalanx.live.heartbeat import Heartbeat
from phalanx.live.metrics import CONTENT_TYPE, Metrics
from phalanx.web.server import serving


def health(live: Mapping[str, Check] | None = None, ready: Mapping[str, Check] | None = None) -> Health:
    metrics = Metrics(lambda: 0.0)
    return Health(metrics.text, CONTENT_TYPE, lambda: {"actions": "allocate"}, live or {}, ready or {})


def get(found: Health, path: str) -> tuple[int, str, str]:
    async def ask() -> tuple[int, str, str]:
        async with (
            serving(found.application()) as address,
            aiohttp.ClientSession() as session,
            session.get(address + path) as answer,
        ):
            return answer.status, answer.headers["Content-Type"], await answer.text()

    return asyncio.run(ask())


def well() -> None:
    return None


def ill() -> str:
    return "pods are not listed yet"


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_all_is_well(path: str) -> None:
    assert get(health(), path) == (200, "text/plain; charset=utf-8", "ok")


def test_checks_are_listed_if_somebody_asks() -> None:
    found = get(health(ready={"caches": well, "leader": well}), "/readyz?verbose")
    assert found[0] == 200
    assert found[2] == "[+]ping ok\n[+]caches ok\n[+]leader ok\nreadyz check passed\n"


def test_a_check_that_fails_is_told_whether_anybody_asks_or_not() -> None:
    found = get(health(ready={"caches": ill, "leader": well}), "/readyz")
    assert found[0] == 500
    assert found[2] == "[+]ping ok\n[-]caches failed: pods are not listed yet\n[+]leader ok\nreadyz check failed\n"


def test_a_process_that_is_not_ready_may_be_alive() -> None:
    found = health(live={"loop": well}, ready={"caches": ill})
    assert get(found, "/livez?verbose")[2] == "[+]ping ok\n[+]loop ok\nlivez check passed\n"
    assert get(found, "/healthz?verbose")[2].endswith("healthz check passed\n")
    assert get(found, "/readyz")[0] == 500


def test_metrics_are_in_the_form_that_prometheus_reads() -> None:
    status, kind, text = get(health(), "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "# TYPE phalanx_cycle_duration_seconds histogram\n" in text


def test_the_configuration_in_force_is_json() -> None:
    status, kind, text = get(health(), "/configz")
    assert (status, kind) == (200, "application/json")
    assert json.loads(text) == {"phalanx": {"actions": "allocate"}}


def test_what_nobody_offers_is_not_found() -> None:
    assert get(health(), "/secrets")[0] == 404


def test_a_loop_that_stands_still_is_not_alive() -> None:
    now = 100.0
    heartbeat = Heartbeat(lambda: now, longest_silence_seconds=30)
    now += 30
    assert heartbeat.check() is None
    now += 1
    assert heartbeat.check() == "the loop has not turned for 31 s, at most 30 s are allowed"
    assert get(health(live={"loop": heartbeat.check}), "/livez")[0] == 500
    heartbeat.beat()
    assert heartbeat.check() is None


def test_what_may_be_secret_in_the_configuration_is_not_served() -> None:
    arguments = {"extender.urlPrefix": "https://ada:pa55@extender/?key=pa55", "extender.token": "pa55"}
    found = Health(lambda: b"", CONTENT_TYPE, lambda: {"tiers": [{"plugins": [{"name": "extender", "arguments": arguments}]}]})
    text = get(found, "/configz")[2]
    assert "pa55" not in text
    assert "https://***@extender/?***" in text
