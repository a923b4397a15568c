"""Operators of others, unpatched, beside the control plane of the tests: they make the pods of PyTorchJobs and RayClusters.

    with training_operator(plane, folder):
        plane.apply([pytorch_job])

Each gets its definitions with it. They end with the test, or with this program.
"""

import base64
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import LOCALHOST, Process, free_ports, wait_until
from phalanx.dev.programs import files_of, path_of

READY_SECONDS = 60.0
HOME, SECRET = "kubeflow", "training-operator-webhook-cert"
SERVING = Path("/tmp/k8s-webhook-server/serving-certs")
"""Where the training operator expects the Secret of its webhook to be mounted, and nowhere else."""


@contextmanager
def kuberay(plane: ControlPlane, folder: Path, *more: str) -> Iterator[Process]:
    """Run KubeRay, with more flags; RayClusters get their pods."""
    _define(plane, "kuberay")
    metrics, probe = free_ports(2)
    flags = (
        f"--metrics-addr={LOCALHOST}:{metrics}", f"--health-probe-bind-address={LOCALHOST}:{probe}",
        "--enable-leader-election=false", *more,
    )  # fmt: skip
    with _running(plane, folder, "kuberay", flags) as process:
        yield process


@contextmanager
def training_operator(plane: ControlPlane, folder: Path, *more: str) -> Iterator[Process]:
    """Run the training operator; PyTorchJobs get their pods. It makes certificates for a webhook, and waits for their files."""
    _define(plane, "training-operator")
    if not plane.kubectl("get", "namespace", HOME, "--ignore-not-found"):
        plane.create_namespace(HOME)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": HOME}}
    plane.apply([secret])
    metrics, probe, webhook = free_ports(3)
    flags = (
        f"--metrics-bind-address={LOCALHOST}:{metrics}", f"--health-probe-bind-address={LOCALHOST}:{probe}",
        f"--webhook-server-port={webhook}", "--enable-scheme=pytorchjob", *more,
    )  # fmt: skip
    with _running(plane, folder, "training-operator", flags) as process, _mounted_certificates(plane):
        yield process


def _define(plane: ControlPlane, name: str) -> None:
    """Install the definitions of an operator; they are too long for the annotation of a plain apply, and for a YAML reader."""
    files = [part for file in sorted(files_of(name).glob("*.yaml")) for part in ("-f", str(file))]
    names = plane.kubectl("apply", "--server-side", "--force-conflicts", "-o", "name", *files).split()
    plane.kubectl("wait", "--for=condition=Established", *names, "--timeout=30s")


@contextmanager
def _running(plane: ControlPlane, folder: Path, name: str, flags: Sequence[str]) -> Iterator[Process]:
    process = Process(name, folder)
    process.start([str(path_of(name)), f"--kubeconfig={plane.kubeconfig}", *flags])
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def _mounted_certificates(plane: ControlPlane) -> Iterator[None]:
    """Do what a kubelet does with the Secret that the operator fills."""
    found: dict[str, str] = {}

    def is_filled() -> bool:
        found.update(json.loads(plane.kubectl("get", "secret", SECRET, "-n", HOME, "-o", "json")).get("data") or {})
        return "tls.crt" in found

    assert wait_until(is_filled, READY_SECONDS, step=0.5), "the training operator made no certificates"
    SERVING.mkdir(parents=True, exist_ok=True)
    for name, text in found.items():
        (SERVING / name).write_bytes(base64.b64decode(text))
    yield
    shutil.rmtree(SERVING, ignore_errors=True)
