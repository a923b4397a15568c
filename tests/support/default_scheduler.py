"""Kubernetes' own scheduler beside ours, on the control plane of the tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from phalanx.dev.layout import SCHEDULER
from phalanx.dev.plane import ControlPlane


@contextmanager
def kube_scheduler(plane: ControlPlane) -> Iterator[None]:
    """Run kube-scheduler beside the block."""
    plane.start(SCHEDULER)
    try:
        yield
    finally:
        plane.stop(SCHEDULER)
