"""The layout of a control plane: the folder of its files, its ports, and the command line of each program."""

import base64
import secrets
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from phalanx.dev.kwok_nodes import KWOK_MARK
from phalanx.dev.processes import LOCALHOST, free_ports
from phalanx.dev.programs import KUBERNETES, USUAL, files_of, of_release, path_of

ETCD, SERVER, CONTROLLERS, KWOK, SCHEDULER = "etcd", "kube-apiserver", "kube-controller-manager", "kwok", "kube-scheduler"
GATES = "GenericWorkload=true,GangScheduling=true"
"""Kubernetes' own PodGroups are an alpha feature; so is the API group below that has them."""
FIELD_GATES = "TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true"
"""Without these the API server drops topology, disruption mode and priority from such PodGroups, and says nothing."""
NATIVE_GROUPS = "scheduling.k8s.io/v1alpha2=true"
ALSO_ADMITTED_BY = "NodeRestriction"
"""The admission plugin that kubeadm adds; those that a server has by default are all on."""
LEASE_SECONDS, DEAD_SECONDS = 400, 500
"""How long a node's lease holds, and when controllers take a node without one for dead. Kubelets and controllers use 40 and 50:
with thousands of nodes on one machine, renewals would be most of its work."""
RATE = 5000
"""Requests per second that clients of Kubernetes allow themselves; their default of 20 to 50 is for clusters that others share."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a control plane keeps its files, and the ports and the token of this run."""

    folder: Path
    ports: tuple[int, ...] = field(default_factory=lambda: tuple(free_ports(3)))
    """Of etcd, of etcd for other etcds, and of the API server."""
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    kubernetes: str = KUBERNETES
    """The release of the API server and its controllers."""

    @property
    def is_newest(self) -> bool:
        """Tell whether this is the release that everything is tested on, and has the features that are switched on for us."""
        return self.kubernetes == KUBERNETES

    def program(self, name: str) -> str:
        """Return what a part of the control plane is called in `phalanx.dev.programs`."""
        return of_release(name, self.kubernetes) if name in (SERVER, CONTROLLERS) else name

    @property
    def etcd(self) -> str:
        """The address of etcd for its clients."""
        return f"http://{LOCALHOST}:{self.ports[0]}"

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://{LOCALHOST}:{self.ports[2]}"

    @property
    def kubeconfig(self) -> Path:
        """The file with which every client finds the server."""
        return self.folder / "kubeconfig"

    @property
    def certificate(self) -> Path:
        """The server's certificate, followed by that of the authority which it made for itself."""
        return self.folder / "certificates" / "apiserver.crt"

    def write(self) -> None:
        """Write what the programs read at their start."""
        (self.folder / "tokens.csv").write_text(f'{self.token},admin,admin,"system:masters"\n')
        (self.folder / "tokens.csv").chmod(0o600)
        (self.folder / "stages.yaml").write_text(_stages())
        (self.folder / "kube-scheduler.yaml").write_text(yaml.safe_dump(self._scheduler()))
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        for name in USUAL:
            (programs / name).unlink(missing_ok=True)
            (programs / name).symlink_to(path_of(name))

    def write_kubeconfig(self, path: Path, token: str) -> None:
        """Write a file for clients that show a token."""
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(kubeconfig(self.server, self.certificate.read_bytes(), token), sort_keys=False))

    def command(self, name: str) -> list[str]:
        """Return the command line that starts a program."""
        flags = {ETCD: self._etcd, SERVER: self._server, CONTROLLERS: self._controllers, KWOK: self._kwok, SCHEDULER: self._flags}
        return [str(path_of(self.program(name))), *flags[name]()]

    def _etcd(self) -> list[str]:
        peers = f"http://{LOCALHOST}:{self.ports[1]}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={self.etcd}",
            f"--advertise-client-urls={self.etcd}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        ]

    def _server(self) -> list[str]:
        key = self.certificate.with_suffix(".key")
        return [
            f"--etcd-servers={self.etcd}",
            f"--bind-address={LOCALHOST}",
            f"--advertise-address={LOCALHOST}",
            f"--secure-port={self.ports[2]}",
            f"--cert-dir={self.certificate.parent}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--authorization-mode=Node,RBAC",
            "--endpoint-reconciler-type=none",
            f"--enable-admission-plugins={ALSO_ADMITTED_BY}",
            *self._new([f"--feature-gates={GATES},{FIELD_GATES}", f"--runtime-config={NATIVE_GROUPS}"]),
        ]

    def _controllers(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--root-ca-file={self.certificate}",
            f"--service-account-private-key-file={self.certificate.with_suffix('.key')}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
            f"--kube-api-qps={RATE}",
            f"--kube-api-burst={RATE}",
            f"--node-monitor-grace-period={DEAD_SECONDS}s",
            *self._new(["--feature-gates=GenericWorkload=true"]),
        ]

    def _new(self, flags: list[str]) -> list[str]:
        """Return flags that an old release does not know and would refuse."""
        return flags if self.is_newest else []

    def _kwok(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--config={self.folder / 'stages.yaml'}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={KWOK_MARK}=fake",
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
            "--v=WARN",
        ]

    def _flags(self) -> list[str]:
        return [f"--config={self.folder / 'kube-scheduler.yaml'}", "--secure-port=0", f"--feature-gates={GATES}"]

    def _scheduler(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": RATE, "burst": RATE},
        }


def _stages() -> str:
    """Return what kwok plays: nodes that are ready, pods that run at once, those that end when they say so, and those of Jobs."""
    own = [files("phalanx.dev").joinpath(f"{name}.yaml").read_text() for name in ("pod-succeeds", "pod-fails-at-its-end")]
    theirs = [file.read_text() for file in sorted(files_of(KWOK).iterdir())]
    return "\n---\n".join([*theirs, *own])


def kubeconfig(server: str, authority: bytes, token: str) -> dict[str, Any]:
    """Return a kubeconfig with one cluster and one user."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "phalanx", "cluster": cluster}],
        "users": [{"name": "phalanx", "user": {"token": token}}],
        "contexts": [{"name": "phalanx", "context": {"cluster": "phalanx", "user": "phalanx"}}],
        "current-context": "phalanx",
    }
