"""`phalanx ui -f`: what the page says of a cluster that comes from files."""

import json
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.support.ui_clusters import lively
from tests.support.ui_programs import page_of_program


def asked(address: str, path: str) -> dict[str, Any]:
    with urlopen(f"{address}api/{path}", timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def test_events_of_files_are_shown_and_not_called_skipped(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": lively()}))
    with page_of_program("ui", "-f", str(file), "--now", "2027-01-15T08:00:00Z") as address:
        events = asked(address, "gang-events?gang=research/mixtral")["events"]
        assert {event["text"] for event in events} == {"13 of 24 tasks fit", "0 of 24 tasks fit"}
        assert asked(address, "overview")["problems"] == []
