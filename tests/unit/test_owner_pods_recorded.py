"""The pods that real operators made of objects, recorded, beside those that are made in their place.

A record has the name of the operator and its version, the object, and of each pod what a scheduler may read: its name, or what the
API server was to complete, its labels, what its containers ask for, and some fields of its spec.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from phalanx.model.kinds import Document
from tests.support.submissions import submit

RECORDS = sorted((Path(__file__).resolve().parents[1] / "data" / "operators").glob("*.json"))
FIELDS = ("schedulerName", "nodeSelector", "hostname", "subdomain")
DRAWN = ("controller-uid", "batch.kubernetes.io/controller-uid")
OURS = ("kai.scheduler/subgroup-name",)


def recorded(pod: Document) -> dict[str, Any]:
    asked = {name: {**(found.get("limits") or {}), **(found.get("requests") or {})} for name, found in pod["resources"].items()}
    return _shown(pod["name"], pod["labels"], asked, pod["spec"])


def made(pod: Document) -> dict[str, Any]:
    meta, spec = pod["metadata"], pod["spec"]
    containers = [*spec["containers"], *(spec.get("initContainers") or ())]
    asked = {item["name"]: (item.get("resources") or {}).get("requests") or {} for item in containers}
    return _shown(meta.get("generateName") or meta["name"], meta["labels"], asked, spec)


def _shown(name: str, labels: Document, asked: Document, spec: Document) -> dict[str, Any]:
    known = {key: "drawn" if key in DRAWN else text for key, text in sorted(labels.items()) if key not in OURS}
    return {"name": name, "labels": known, "asked": asked, "spec": {key: spec[key] for key in FIELDS if spec.get(key)}}


def in_order(pods: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(pods, key=lambda pod: (pod["name"], repr(pod)))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: str(path.stem))
def test_the_stand_in_makes_the_pods_that_the_operator_made(path: Path) -> None:
    record = json.loads(path.read_text())
    found = submit(record["owner"])
    assert in_order(map(made, found.pods.values())) == in_order(map(recorded, record["pods"]))
