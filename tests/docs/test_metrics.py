"""The page on metrics has every metric that the program shows, with its type, labels and meaning, and no other."""

from pathlib import Path
from typing import Any

import pytest
from prometheus_client.registry import Collector, CollectorRegistry

from phalanx.explain.reason_code import OWN_CODES
from phalanx.live.metric_gauges import ReplacedGauge
from phalanx.live.metrics import Metrics
from phalanx.live.shadow_metrics import ShadowMetrics

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md").read_text()
SUFFIXES = {"counter": "_total", "info": "_info"}


def rows(head: str) -> list[list[str]]:
    """Return the cells of the table with this head."""
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def shown(registry: CollectorRegistry) -> dict[str, list[str]]:
    """Return the metrics of the process by name."""
    collectors: list[Any] = list(registry._collector_to_names)  # Any: each kind keeps its labels elsewhere
    found = [_row(collector) for collector in collectors]
    return {row[0]: row for row in found if not row[0].startswith("`process_")}


def _row(collector: Collector) -> list[str]:
    family = next(iter(collector.collect()))
    labels = collector._labels if isinstance(collector, ReplacedGauge) else getattr(collector, "_labelnames", ())
    if family.type == "info":
        labels = tuple(family.samples[0].labels)
    name = family.name + SUFFIXES.get(family.type, "")
    return [f"`{name}`", family.type, ", ".join(f"`{label}`" for label in labels), family.documentation]


def test_the_page_is_what_the_program_shows() -> None:
    expected = shown(Metrics(lambda: 0.0).registry)
    assert rows("metric | type | labels | meaning") == [expected[name] for name in sorted(expected)]


def test_the_page_is_what_a_shadow_shows() -> None:
    expected = shown(ShadowMetrics(lambda: 0.0).registry)
    assert rows("metric of a shadow | type | labels | meaning") == [expected[name] for name in sorted(expected)]


def test_the_page_has_every_code_that_is_not_a_verdict() -> None:
    assert [row[0] for row in rows("code | the gang")] == [f"`{code}`" for code in OWN_CODES]


@pytest.mark.parametrize("name", ["process_resident_memory_bytes", "process_cpu_seconds_total"])
def test_the_process_shows_what_the_page_promises(name: str) -> None:
    assert name in PAGE
    assert f"\n{name} ".encode() in Metrics(lambda: 0.0).text()
