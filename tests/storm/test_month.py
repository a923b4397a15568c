"""A cluster that lives for long under storm: what its processes hold is the same every night; see `make month` for 30 days."""

import pytest

from phalanx.model.kinds import Kind
from phalanx.store.kube.mirror import Mirror
from phalanx.testing.storm.growth import Growth, grown
from phalanx.testing.storm.month import Life, live_through

SHORT = Life(seed=3, days=3, day_seconds=3600.0, night_seconds=1500.0, workloads=10, incidents=8)
MOST_NEW_ENTRIES = 50
NIGHT = Growth(
    resident_bytes=100 << 20, files=8, tasks=176, timers=300, containers={"live.mirror._gone": 5, "live.x": 5}, objects={}
)


def test_nothing_grows_from_night_to_night_and_every_night_is_at_rest() -> None:
    found = live_through(SHORT)
    assert found.violations == ()
    assert found.sessions > 50
    assert list(grown(found.nights[0], found.nights[-1], MOST_NEW_ENTRIES)) == []


def test_a_container_that_grows_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    put = Mirror.put

    def keeping(self: Mirror, kind: Kind, document: dict[str, object]) -> None:
        vars(self).setdefault("_kept", []).append(kind.kind)
        put(self, kind, document)

    monkeypatch.setattr(Mirror, "put", keeping)
    nights = live_through(Life(seed=3, days=2, day_seconds=2700.0, night_seconds=1500.0, workloads=8, incidents=2)).nights
    assert [text.partition(" ")[0] for text in grown(nights[0], nights[1], MOST_NEW_ENTRIES)] == ["r0.live.mirror._kept"]


def test_each_measure_has_its_limit() -> None:
    containers = {"live.mirror._gone": 4096, "live.x": 206, "live.x[*]": 1999}
    later = Growth(resident_bytes=106 << 20, files=9, tasks=177, timers=400, containers=containers, objects={})
    assert list(grown(NIGHT, later)) == [
        "memory from 100.0 to 106.0 MiB", "open files from 8 to 9", "tasks from 176 to 177", "live.x from 5 to 206 entries",
    ]  # fmt: skip
    assert list(grown(NIGHT, NIGHT)) == []
