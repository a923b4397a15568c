"""Operators of others with webhooks, unpatched, beside the control plane of the tests: JobSet, LeaderWorkerSet and Kueue.

    with jobset(plane, folder):
        plane.apply([job_set])

Each gets its definitions with it, a configuration file, and certificates of ours: the API server calls its webhooks at a port of
this machine. They end with the test, or with this program, and their webhooks go before them.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
import yaml

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import LOCALHOST, Process, free_ports, wait_until
from phalanx.dev.programs import files_of
from phalanx.errors import PhalanxError
from phalanx.model.kinds import Document
from tests.support.real_operators import READY_SECONDS, define, is_healthy, running

MANIFESTS = "manifests.yaml"
"""What every one of them calls the file with its webhooks."""


@dataclass(frozen=True, slots=True)
class WebhookOperator:
    """An operator that reads a configuration file and serves webhooks."""

    name: str
    configuration: str
    """The group and version of its configuration file."""
    of_pods: Document
    """What its installation adds to webhooks for pods, so that they are called for those that concern it."""
    invalid: Document
    """An object that its webhooks refuse, once the API server asks them."""


def _with_label(name: str) -> Document:
    return {"objectSelector": {"matchExpressions": [{"key": name, "operator": "Exists"}]}}


def _outside(*namespaces: str) -> Document:
    place = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(namespaces)}
    return {"namespaceSelector": {"matchExpressions": [place]}}


JOBSET = WebhookOperator(
    "jobset", "config.jobset.x-k8s.io/v1alpha1", _with_label("jobset.sigs.k8s.io/jobset-name"),
    {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "trial"},
        "spec": {"replicatedJobs": [], "successPolicy": {"operator": "All", "targetReplicatedJobs": ["nobody"]}},
    },
)  # fmt: skip
LWS = WebhookOperator(
    "lws", "config.lws.x-k8s.io/v1alpha1", _with_label("leaderworkerset.sigs.k8s.io/name"),
    {
        "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "trial"},
        "spec": {"leaderWorkerTemplate": {
            "size": 3, "subGroupPolicy": {"subGroupSize": 5},
            "workerTemplate": {"spec": {"containers": [{"name": "main", "image": "train:1"}]}},
        }},
    },
)  # fmt: skip
KUEUE = WebhookOperator(
    "kueue", "config.kueue.x-k8s.io/v1beta1", _outside("kube-system", "kueue-system"),
    {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": {"name": "trial"},
        "spec": {"nodeLabels": {"no label": "x"}},
    },
)  # fmt: skip


@contextmanager
def jobset(plane: ControlPlane, folder: Path, *flags: str) -> Iterator[Process]:
    """Run JobSet; its Jobs get their pods from Kubernetes."""
    with _serving(plane, folder, JOBSET, {}, *flags) as process:
        yield process


@contextmanager
def leader_worker_set(plane: ControlPlane, folder: Path, *flags: str, provider: str = "") -> Iterator[Process]:
    """Run LeaderWorkerSet; a provider makes groups of its own for the replicas."""
    settings = {"gangSchedulingManagement": {"schedulerProvider": provider}} if provider else {}
    with _serving(plane, folder, LWS, settings, *flags) as process:
        yield process


@contextmanager
def kueue(plane: ControlPlane, folder: Path, *flags: str, kinds: Sequence[str]) -> Iterator[Process]:
    """Run Kueue, which admits workloads of some kinds and looks at no others."""
    integrations = {"frameworks": list(kinds), "podOptions": _outside("kube-system", "kueue-system")}
    # The server for visibility makes certificates at a fixed port.
    with _serving(
        plane, folder, KUEUE, {"integrations": integrations}, "--feature-gates=VisibilityOnDemand=false", *flags
    ) as process:
        yield process


@contextmanager
def _serving(
    plane: ControlPlane, folder: Path, operator: WebhookOperator, settings: Mapping[str, Any] | None = None, *flags: str
) -> Iterator[Process]:
    """Run an operator; its webhooks are in force within the block."""
    define(plane, operator.name, besides=MANIFESTS)
    port, probe = free_ports(2)
    authority = _write_certificates(folder / f"{operator.name}-certificates")
    file = folder / f"{operator.name}.yaml"
    file.write_text(yaml.safe_dump({**_configuration(operator, folder, port, probe), **(settings or {})}))
    with running(plane, folder, operator.name, (f"--config={file}", *flags)) as process:
        process.wait_for(lambda: is_healthy(f"http://{LOCALHOST}:{probe}/readyz"), READY_SECONDS)
        with _webhooks(plane, operator, port, authority):
            yield process


def _configuration(operator: WebhookOperator, folder: Path, port: int, probe: int) -> dict[str, Any]:
    return {
        "apiVersion": operator.configuration, "kind": "Configuration", "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False}, "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"{LOCALHOST}:{probe}"},
        "webhook": {"host": LOCALHOST, "port": port, "certDir": str(folder / f"{operator.name}-certificates")},
    }  # fmt: skip


def _write_certificates(folder: Path) -> bytes:
    """Write a key and a certificate as an operator expects them, and return the authority that vouches for it."""
    authority = trustme.CA()
    issued = authority.issue_cert(LOCALHOST)
    folder.mkdir()
    issued.private_key_pem.write_to_path(folder / "tls.key")
    (folder / "tls.crt").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return authority.cert_pem.bytes()


@contextmanager
def _webhooks(plane: ControlPlane, operator: WebhookOperator, port: int, authority: bytes) -> Iterator[None]:
    """Let the API server call the webhooks of an operator, and nobody when it ends."""
    found = yaml.safe_load_all((files_of(operator.name) / MANIFESTS).read_text())
    documents = [_called_here(operator, document, port, authority) for document in found if document]
    plane.apply(documents)
    try:
        assert wait_until(lambda: _is_refused(plane, operator.invalid), READY_SECONDS), (
            f"nobody calls the webhooks of {operator.name}"
        )
        yield
    finally:
        plane.kubectl("delete", "--ignore-not-found", *(f"{item['kind']}/{item['metadata']['name']}" for item in documents))


def _called_here(operator: WebhookOperator, document: Document, port: int, authority: bytes) -> Document:
    bundle = base64.b64encode(authority).decode()

    def webhook(item: Document) -> Document:
        client = {"url": f"https://{LOCALHOST}:{port}{item['clientConfig']['service']['path']}", "caBundle": bundle}
        of_pods = any("pods" in rule["resources"] for rule in item["rules"])
        return {**item, "clientConfig": client, **(operator.of_pods if of_pods else {})}

    name = f"{operator.name}-{document['metadata']['name']}"
    return {**document, "metadata": {"name": name}, "webhooks": [webhook(item) for item in document["webhooks"]]}


def _is_refused(plane: ControlPlane, document: Document) -> bool:
    try:
        plane.kubectl("create", "--dry-run=server", "-n", "default", "-f", "-", text=yaml.safe_dump(document))
    except PhalanxError as refusal:
        return "admission webhook" in str(refusal)
    return False
