"""The API server takes the manifests of every example: our definitions, our policies and Kubernetes' own rules refuse none."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from phalanx.model.kinds import Document, kind_of
from tests.support.live_site import EXAMPLES, Site

pytestmark = pytest.mark.xdist_group("controlplane")
NOT_SERVED = ("LeaderWorkerSet", "PyTorchJob")
"""Kinds of others, whose definitions are not ours."""
NEXT_RELEASE = "scheduling.k8s.io/v1beta1"
NAMED_BY_OTHERS = ("PriorityClass", "Workload")
"""The server looks for these when it is asked to make something that names them."""
OURS_ALONE = "phalanx.dev/"
CREATED, EXISTS = 201, 409


def manifests() -> Iterator[tuple[str, Document]]:
    """Yield the objects of all examples that are meant to be right, each with its file; of those that ask for the same, one."""
    known = set()
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        if "broken" not in path.parts:
            for item in filter(is_served, yaml.safe_load_all(path.read_text())):
                found = as_json(item)
                asked = json.dumps([found["kind"], found.get("spec") or found["metadata"]["name"]])
                if asked not in known:
                    known.add(asked)
                    yield str(path.relative_to(EXAMPLES)), found


def as_json(item: Document) -> dict[str, Any]:
    """Return an object with its times as texts."""
    found: dict[str, Any] = json.loads(json.dumps(item, default=lambda moment: moment.isoformat()))
    return found


def is_served(item: Document | None) -> bool:
    version = str((item or {}).get("apiVersion", ""))
    return (
        item is not None
        and "kind" in item
        and item["kind"] not in NOT_SERVED
        and version != NEXT_RELEASE
        and not version.startswith(OURS_ALONE)
    )


def moved(site: Site, item: Document) -> dict[str, Any]:
    """Return an object in a namespace that is there; nothing else of it is changed."""
    if not kind_of(item).is_namespaced:
        return dict(item)
    return {**item, "metadata": {**item["metadata"], "namespace": site.namespace(item["metadata"].get("namespace", "default"))}}


def test_every_manifest_of_the_examples_is_accepted(site: Site) -> None:
    site.make([item for _, item in manifests() if item["kind"] in NAMED_BY_OTHERS], "apply")
    found = [(where, moved(site, item)) for where, item in manifests()]
    refused = []
    for where, item in found:
        kind, namespace = kind_of(item), item["metadata"].get("namespace")
        place = f"/namespaces/{namespace}" if kind.is_namespaced else ""
        root = f"/apis/{item['apiVersion']}" if kind.group else "/api/v1"
        answer = site.connection.ask("POST", f"{root}{place}/{kind.plural}", item, dryRun="All")
        if answer.code not in (CREATED, EXISTS):
            refused.append(f"{where}, {item['kind']} {item['metadata']['name']}: {answer.body.get('message')}")
    assert len(found) > len(list(EXAMPLES.iterdir()))
    assert refused == []
