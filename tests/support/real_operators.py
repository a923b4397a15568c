"""Operators of others, unpatched, beside the control plane of the tests: they make the pods of PyTorchJobs, RayClusters, MPIJobs.

    with training_operator(plane, folder):
        plane.apply([pytorch_job])

Each gets its definitions with it. They end with the test, or with this program.
"""

import base64
import json
import secrets
import shutil
import socket
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import LOCALHOST, Process, free_ports, wait_until
from phalanx.dev.programs import files_of, path_of
from phalanx.errors import PhalanxError

READY_SECONDS = 60.0
ASK_SECONDS = 5.0
HEALTH_OF_MPI = 8080
"""Where the mpi-operator answers to whoever asks for its health; it cannot be told another port."""
SERVING = Path("/tmp/k8s-webhook-server/serving-certs")
"""Where the operators of Kubeflow expect the Secret of their webhooks to be mounted, and nowhere else."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A Secret that an operator fills with certificates."""

    namespace: str
    name: str


def _make(plane: ControlPlane, secret: Secret) -> None:
    if not plane.kubectl("get", "namespace", secret.namespace, "--ignore-not-found"):  # it may have run there before
        plane.create_namespace(secret.namespace)
    meta = {"name": secret.name, "namespace": secret.namespace}
    plane.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": meta}])


@contextmanager
def kuberay(plane: ControlPlane, folder: Path, *more: str) -> Iterator[Process]:
    """Run KubeRay, with more flags; RayClusters get their pods."""
    define(plane, "kuberay")
    metrics, probe = free_ports(2)
    flags = (
        f"--metrics-addr={LOCALHOST}:{metrics}", f"--health-probe-bind-address={LOCALHOST}:{probe}",
        "--enable-leader-election=false", *more,
    )  # fmt: skip
    with running(plane, folder, "kuberay", flags) as process:
        yield process


@contextmanager
def training_operator(plane: ControlPlane, folder: Path, *more: str) -> Iterator[Process]:
    """Run the training operator; PyTorchJobs get their pods. It makes certificates for a webhook, and waits for their files."""
    define(plane, "training-operator")
    secret = Secret("kubeflow", "training-operator-webhook-cert")
    _make(plane, secret)
    metrics, probe, webhook = free_ports(3)
    flags = (
        f"--metrics-bind-address={LOCALHOST}:{metrics}", f"--health-probe-bind-address={LOCALHOST}:{probe}",
        f"--webhook-server-port={webhook}", "--enable-scheme=pytorchjob", *more,
    )  # fmt: skip
    with running(plane, folder, "training-operator", flags) as process, _mounted_certificates(plane, secret):
        yield process


@contextmanager
def trainer(plane: ControlPlane, folder: Path, *more: str) -> Iterator[Process]:
    """Run the trainer of Kubeflow: TrainJobs become JobSets, so JobSet runs too. Its webhooks only validate; nobody calls them."""
    define(plane, "trainer", besides="manifests.yaml")
    secret = Secret("kubeflow-system", "kubeflow-trainer-webhook-cert")
    _make(plane, secret)
    probe, webhook = free_ports(2)
    flags = (f"--health-probe-bind-address={LOCALHOST}:{probe}", f"--webhook-server-port={webhook}", *more)
    with running(plane, folder, "trainer", flags) as process, _mounted_certificates(plane, secret):
        process.wait_for(lambda: is_healthy(f"http://{LOCALHOST}:{probe}/readyz"), READY_SECONDS)
        yield process


@contextmanager
def mpi_operator(plane: ControlPlane, folder: Path, *more: str) -> Iterator[Process]:
    """Run the mpi-operator; MPIJobs get their pods, and groups of their own where a gang scheduler is named."""
    assert _is_free(HEALTH_OF_MPI), f"another program uses port {HEALTH_OF_MPI}, which the mpi-operator needs"
    define(plane, "mpi-operator")
    home = f"mpi-operator-{secrets.token_hex(2)}"
    plane.create_namespace(home)
    flags = (f"--lock-namespace={home}", "--kube-api-qps=50", "--kube-api-burst=100", *more)
    with started(plane, folder, "mpi-operator", flags) as process:
        process.wait_for(lambda: "Started workers" in process.log.read_text(), READY_SECONDS)
        yield process


@contextmanager
def volcano_controllers(plane: ControlPlane, folder: Path, *more: str) -> Iterator[Process]:
    """Run Volcano's own controllers with Volcano's own definitions, whose PodGroups have no status subresource."""
    define(plane, "vc-controller-manager")
    (health,) = free_ports(1)
    flags = ("--leader-elect=false", "--enable-healthz=true", f"--healthz-address={LOCALHOST}:{health}", *more)
    with running(plane, folder, "vc-controller-manager", flags) as process:
        process.wait_for(lambda: is_healthy(f"http://{LOCALHOST}:{health}/healthz"), READY_SECONDS)
        yield process


def is_healthy(address: str) -> bool:
    """Tell whether a program answers that it is well."""
    try:
        with urllib.request.urlopen(address, timeout=ASK_SECONDS) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _is_free(port: int) -> bool:
    """Tell whether nobody on this machine listens at a port."""
    try:
        socket.create_server(("", port)).close()
    except OSError:
        return False
    return True


def define(plane: ControlPlane, name: str, *, besides: str = "") -> None:
    """Install the definitions of an operator; they are too long for the annotation of a plain apply, and for a YAML reader."""
    kept = (file for file in sorted(files_of(name).glob("*.yaml")) if file.name != besides)
    files = [part for file in kept for part in ("-f", str(file))]
    names = plane.kubectl("apply", "--server-side", "--force-conflicts", "-o", "name", *files).split()
    assert wait_until(lambda: _is_established(plane, names), READY_SECONDS, step=0.2), f"{names} are not served"


def _is_established(plane: ControlPlane, names: Sequence[str]) -> bool:
    try:
        plane.kubectl("wait", "--for=condition=Established", *names, "--timeout=30s")
    except PhalanxError:
        return False  # it fails at once on a definition that has no conditions yet
    return True


@contextmanager
def running(plane: ControlPlane, folder: Path, name: str, flags: Sequence[str]) -> Iterator[Process]:
    """Run the program of an operator beside the block."""
    with started(plane, folder, name, (f"--kubeconfig={plane.kubeconfig}", *flags)) as process:
        yield process


@contextmanager
def started(
    plane: ControlPlane, folder: Path, name: str, arguments: Sequence[str], variables: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """Run a program; to some the variable says more than a flag, and nobody else's cluster may be meant."""
    process = Process(name, folder)
    process.start([str(path_of(name)), *arguments], {"KUBECONFIG": str(plane.kubeconfig), **(variables or {})})
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def _mounted_certificates(plane: ControlPlane, secret: Secret) -> Iterator[None]:
    """Do what a kubelet does with the Secret that the operator fills."""
    found: dict[str, str] = {}

    def is_filled() -> bool:
        found.update(
            json.loads(plane.kubectl("get", "secret", secret.name, "-n", secret.namespace, "-o", "json")).get("data") or {}
        )
        return "tls.crt" in found

    assert wait_until(is_filled, READY_SECONDS, step=0.5), f"nobody filled {secret}"
    SERVING.mkdir(parents=True, exist_ok=True)
    for name, text in found.items():
        (SERVING / name).write_bytes(base64.b64decode(text))
    yield
    shutil.rmtree(SERVING, ignore_errors=True)
