"""How to connect to a cluster: by a kubeconfig, or by the service account of the pod that we run in.

What was read is read again when the server cannot be reached for a while: it may have moved, or have another authority. The context
stays the one that was chosen at first, whichever is the current one by then: nobody wants a scheduler to go to another cluster.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from phalanx.errors import ConfigError
from phalanx.store.kube.client import ANSWER_SECONDS, Client, Endpoint
from phalanx.store.kube.credentials import Credentials, FixedCredentials, TokenFileCredentials, basic, bearer
from phalanx.store.kube.exec_credentials import ExecCredentials, ExecPlugin
from phalanx.store.kube.kubeconfig import ChosenContext, KubeconfigUser, choose
from phalanx.store.kube.tls import Trust, pem

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token, the authority of its cluster and its namespace."""
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The address of an API server and the credentials for it."""

    server: str
    place: str
    """Where this was configured, for messages."""
    credentials: Credentials
    server_name: str = ""
    """The name in the server's certificate, where it is not that of its address."""
    namespace: str = "default"
    """The default namespace."""
    marks: object = field(default=None, repr=False)
    """Everything that was read: equal where nothing has changed."""
    again: "Callable[[], ClusterAccess] | None" = field(default=None, compare=False, repr=False)
    """Reads the same again; None where nothing was read."""

    def client(self, *, is_frugal: bool = False, answer_seconds: float = ANSWER_SECONDS) -> Client:
        """Return a client of the server; use it in ``async with``."""
        return Client(
            self.server, credentials=self.credentials, server_name=self.server_name, is_frugal=is_frugal,
            answer_seconds=answer_seconds, again=None if self.again is None else _Rereader(self, self.again),
        )  # fmt: skip


class _Rereader:
    """Tells where a server is, if that has changed since it was last asked."""

    def __init__(self, first: ClusterAccess, read: Callable[[], ClusterAccess]) -> None:
        self._last, self._read = first, read

    def __call__(self) -> Endpoint | None:
        try:
            found = self._read()
        except ConfigError:  # it is being written, or was removed: what we know is the best that there is
            return None
        if found.marks == self._last.marks:
            return None
        self._last = found
        return Endpoint(found.server, found.credentials, found.server_name)


def access(kubeconfig: str = "", context: str = "", environment: Environment = os.environ) -> ClusterAccess:
    """Reach a cluster by the files that were named or those that are usual, or else the cluster that we run in."""
    paths = kubeconfig_paths(kubeconfig, environment)
    if kubeconfig or context or any(path.exists() for path in paths):
        return by_kubeconfig(paths, context, may_miss=not kubeconfig)
    if HOST in environment:
        return in_cluster(environment)
    where = " and ".join(map(str, paths))
    raise ConfigError(f"no cluster: {where} is not there, and this is no pod of a cluster; name a file with --kubeconfig")


def kubeconfig_paths(named: str = "", environment: Environment = os.environ) -> list[Path]:
    """Return the files to read: the one that was named, those of $KUBECONFIG, or ~/.kube/config."""
    if named:
        return [Path(named)]
    listed = [Path(item) for item in environment.get("KUBECONFIG", "").split(os.pathsep) if item]
    return listed or [Path(environment.get("HOME") or Path.home()) / ".kube" / "config"]


# --- kubeconfig ----------------------------------------------------------------------------------------------------------


def by_kubeconfig(paths: Sequence[Path], context: str = "", *, may_miss: bool = False) -> ClusterAccess:
    """Reach the cluster of a context, or of the current one."""
    choice = choose(paths, context, may_miss=may_miss)
    cluster, place = choice.cluster, choice.place
    _refuse(choice)
    authority = pem(cluster.certificate_authority_data, cluster.certificate_authority, f"{place}: certificate-authority")
    trust = Trust(authority, cluster.insecure_skip_tls_verify, place)
    found = ClusterAccess(cluster.server, place, _credentials(choice, trust), cluster.tls_server_name, choice.namespace)
    again = partial(by_kubeconfig, paths, choice.name, may_miss=may_miss)
    return replace(found, marks=(choice, authority, _certificate(choice.user, place)), again=again)


def _refuse(choice: ChosenContext) -> None:
    """Refuse what we cannot do, before a request goes somewhere else or is made by somebody else than was meant."""
    cluster, user, place = choice.cluster, choice.user, choice.place
    if not cluster.server.startswith(("http://", "https://")):
        raise ConfigError(f"{place}: server: {cluster.server!r} is no URL; write one such as https://127.0.0.1:6443")
    if cluster.proxy_url:
        raise ConfigError(
            f"{place}: proxy-url: proxies are not supported; remove it and name a server that can be reached directly"
        )
    if user.auth_provider is not None:
        raise ConfigError(
            f"{place}: auth-provider: gone since Kubernetes 1.26; write exec instead, with the plugin of your provider"
        )
    if user.act_as or user.as_groups or user.as_uid:
        raise ConfigError(
            f"{place}: as, as-uid and as-groups: acting as somebody else is not supported; use a context of that user"
        )


def _credentials(choice: ChosenContext, trust: Trust) -> Credentials:
    """Return how the user proves who he is: a token file, a token, a password, a command, or a certificate alone."""
    user, place = choice.user, choice.place
    if user.exec is not None and not (user.token or user.token_file or user.username):
        return ExecCredentials(ExecPlugin(user.exec, choice.cluster, trust, place))
    is_safe = choice.cluster.server.startswith("https://")
    tls = trust.context(*_certificate(user, place)) if is_safe else None
    if user.token_file:
        return TokenFileCredentials(Path(user.token_file), tls, place=f"{place}: tokenFile: ")
    if user.token:
        return FixedCredentials(bearer(user.token), tls)
    return FixedCredentials(basic(user.username, user.password) if user.username else {}, tls)


def _certificate(user: KubeconfigUser, place: str) -> tuple[str, str]:
    certificate = pem(user.client_certificate_data, user.client_certificate, f"{place}: client-certificate")
    return certificate, pem(user.client_key_data, user.client_key, f"{place}: client-key")


# --- inside a cluster ----------------------------------------------------------------------------------------------------


def in_cluster(environment: Environment = os.environ, folder: Path | None = None) -> ClusterAccess:
    """Reach the cluster that this pod runs in, as its service account."""
    folder = folder or ACCOUNT
    place, host = f"service account at {folder}", environment.get(HOST, "")
    if not host:
        raise ConfigError(f"{place}: ${HOST} is not set; this works inside a pod only, outside name a file with --kubeconfig")
    authority = pem("", str(folder / "ca.crt"), place)
    trust = Trust(authority, place=place)
    address = f"[{host}]" if ":" in host else host
    tokens = TokenFileCredentials(folder / "token", trust.context(), place=f"{place}: ")
    namespace = folder / "namespace"
    own = namespace.read_text().strip() if namespace.exists() else ""
    return ClusterAccess(
        f"https://{address}:{environment.get(PORT, '443')}", place, tokens, namespace=own or "default", marks=(host, authority),
        again=partial(in_cluster, environment, folder),
    )  # fmt: skip
