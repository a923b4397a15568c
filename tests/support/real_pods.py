"""Pods as a real API server and real controllers make them: what is added to each pod, and differs from pod to pod."""

from collections.abc import Iterable
from typing import Any

from phalanx.bench.pod_objects import INDEX, as_made_by_a_job

__all__ = ["INDEX", "as_made_by_controllers"]

PODS_PER_JOB = 7

Document = dict[str, Any]


def as_made_by_controllers(documents: Iterable[Document]) -> list[Document]:
    """Return objects in which each pod has what admission and an indexed Job add to it."""
    return [
        as_made_by_a_job(document, number // PODS_PER_JOB, number) if document.get("kind") == "Pod" else document
        for number, document in enumerate(documents)
    ]
