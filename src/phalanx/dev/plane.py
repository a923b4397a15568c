"""A control plane that runs on this machine: etcd, the API server, its controllers, and what else is asked for.

    with ControlPlane(folder, nodes=8) as plane:
        plane.kubectl("get", "nodes")
        plane.stop("kube-apiserver")
        plane.start("kube-apiserver")

Tests use it so, and its programs end with theirs, even if that is killed. `phalanx dev cluster` calls `up` alone and leaves it
running between two commands.

Admission is that of a real server. So a pod needs the account `default` of its namespace, and a new node has a taint until it is
ready: controllers make the one and lift the other a moment later. `create_namespace` and `add_nodes` wait for that.
"""

import asyncio
import base64
import json
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Self

from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.layout import CONTROLLERS, ETCD, KWOK, SCHEDULER, SERVER, Layout
from phalanx.dev.processes import STEP_SECONDS, Process
from phalanx.dev.programs import KUBERNETES, path_of, require
from phalanx.dev.programs import folder as programs_folder
from phalanx.errors import ConfigError, PhalanxError
from phalanx.manifests.admission_policies import MIN_AVAILABLE, policy_documents
from phalanx.manifests.definitions import definition_documents
from phalanx.manifests.install_settings import NAME, InstallSettings
from phalanx.manifests.openapi import VALIDATIONS
from phalanx.manifests.roles import role_documents
from phalanx.model.kinds import Document
from phalanx.store.kube.client import Client
from phalanx.store.kube.credentials import FixedCredentials, bearer

ORDER = (ETCD, SERVER, CONTROLLERS, KWOK, SCHEDULER)
"""In which programs start; they stop in the other direction."""
NEEDED = frozenset({ETCD, SERVER, CONTROLLERS})
"""Without controllers nobody could create a pod, and no node would ever be open to one."""
USUAL = (KWOK,)
START_SECONDS = 90.0
ASK_SECONDS = 5.0
INSTALLED = InstallSettings(config="")
"""Whose account and roles every control plane has."""
AT_ONCE = 32
"""Requests at the same time while nodes are made."""
NOT_READY = "node.kubernetes.io/not-ready"
"""Admission writes this taint on every new node."""
_JOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "trial"}}
PLAIN = ("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", {**_JOB, "spec": {"tasks": [{"replicas": 1}]}})
"""A job that says nothing of its scheduler; a policy does."""
_POD = {"name": "trial", "annotations": {MIN_AVAILABLE: "0"}}
WRONG = ("/api/v1/namespaces/default/pods", {"metadata": _POD, "spec": {"containers": [{"name": "main", "image": "trial"}]}})
"""A pod with an annotation that another policy forbids."""


def usual_folder() -> Path:
    """Return where `phalanx dev cluster` keeps its control plane by default."""
    return programs_folder().parent / "cluster"


class ControlPlane:
    """A real Kubernetes API server with etcd beneath it, and what else is asked for."""

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 0,
        machines: Machines | None = None,
        parts: Iterable[str] = USUAL,
        flags: Mapping[str, Sequence[str]] | None = None,
        kubernetes: str = KUBERNETES,
    ) -> None:
        """Keep everything in a folder; `parts` are the programs besides those that it needs, `flags` more flags for some.

        An old release of Kubernetes comes without our admission policies, which it does not know, and without the rules of our
        definitions, some of which it takes for too costly.
        """
        self.folder, self._nodes, self._machines = folder, nodes, machines or Machines()
        self._parts, self._flags = frozenset(parts), dict(flags or {})
        self._layout = Layout(folder, kubernetes=kubernetes)
        self._has_rules = False
        self._is_detached = True

    # --- from start to end -------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start everything; it ends with this program at the latest."""
        self._is_detached = False
        self.up()
        return self

    def __exit__(self, *problem: object) -> None:
        """Stop everything."""
        stop_all(self.folder)

    def up(self) -> None:
        """Start everything anew and wait until it is ready; it runs on until it is stopped.

        What was started stops again if something does not come up.
        """
        require(*map(self._layout.program, self._programs()), "kubectl")
        self._refuse_a_second()
        try:
            self._bring_up()
        except BaseException:
            stop_all(self.folder)
            raise

    def _refuse_a_second(self) -> None:
        if running(self.folder):
            raise ConfigError(
                f"{self.folder}: a control plane runs there already; end it with 'phalanx dev cluster down', or name another --dir"
            )

    def _bring_up(self) -> None:
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._layout.write()
        self.start(ETCD)
        self.start(SERVER)
        self._layout.write_kubeconfig(self.kubeconfig, self.token)
        for name in (name for name in self._programs() if name not in (ETCD, SERVER)):
            self.start(name)
        is_newest = self._layout.is_newest
        definitions = definition_documents() if is_newest else map(without_rules, definition_documents())
        self.apply([*definitions, *(policy_documents() if is_newest else ()), *role_documents(INSTALLED)])
        self._wait_for_rules()
        self.add_nodes(self._nodes)

    def _programs(self) -> list[str]:
        return [name for name in ORDER if name in NEEDED | self._parts]

    # --- single programs ---------------------------------------------------------------------------------------------

    def process(self, name: str) -> Process:
        """Return one of the programs, to read its log or to kill it."""
        return Process(name, self.folder)

    def start(self, name: str, *, is_patient: bool = True) -> None:
        """Start one program and wait until it is ready; one that runs is left alone.

        With patience, of the API server also until it follows our rules again and kwok has found it.
        """
        process = self.process(name)
        command = [*self._layout.command(name), *self._flags.get(name, ())]
        process.start(command, {"KWOK_WORKDIR": str(self.folder)}, is_detached=self._is_detached)
        process.wait_for({ETCD: self._etcd_is_ready, SERVER: self._server_is_ready}.get(name, process.is_running), START_SECONDS)
        if name == SERVER and self._has_rules and is_patient:
            self._wait_for_rules()
            self._hurry_kwok()

    def _hurry_kwok(self) -> None:
        """Start kwok anew: it lost the server, and might wait for half a minute before it asks again. Its nodes are free for it."""
        if self.process(KWOK).is_running():
            self.stop(KWOK)
            self.kubectl("delete", "leases", "--all", "--namespace=kube-node-lease", "--wait=false")
            self.start(KWOK)

    def stop(self, name: str, *, is_kill: bool = False) -> None:
        """Stop one program: in order, or as if the power had failed."""
        self.process(name).stop(signal.SIGKILL if is_kill else signal.SIGTERM)

    def _etcd_is_ready(self) -> bool:
        return self._answers(f"{self._layout.etcd}/health")

    def _server_is_ready(self) -> bool:
        try:
            return self._answers(f"{self.server}/readyz", self.tls)
        except OSError:
            return False  # the certificate is not there, or being written

    def _answers(self, address: str, tls: ssl.SSLContext | None = None) -> bool:
        try:
            with urllib.request.urlopen(address, timeout=ASK_SECONDS, context=tls) as answer:
                return bool(answer.status == 200)
        except (OSError, ValueError):
            return False

    def _wait_for_rules(self) -> None:
        """Wait until our definitions and policies are in force, which is a while after the server says that it is ready.

        The pod on trial needs an account: once it is answered, the namespace `default` has one.
        """
        self.process(SERVER).wait_for(self._follows_rules, START_SECONDS)
        self._has_rules = True

    def _follows_rules(self) -> bool:
        if not self._layout.is_newest:
            return [self._tried(trial).get("kind") for trial in (PLAIN, WRONG)] == ["Job", "Pod"]
        return "schedulerName" in self._tried(PLAIN).get("spec", {}) and MIN_AVAILABLE in self._tried(WRONG).get("message", "")

    def _tried(self, path_and_body: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return what the server answers to an object, which it does not keep."""
        path, body = path_and_body
        return self._asked(f"{path}?dryRun=All", json.dumps(body).encode())

    def _asked(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        """Return what the server answers at a path: to a question, or to an object that is posted."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.server}{path}", body, headers)
        try:
            return _answered(urllib.request.urlopen(request, timeout=ASK_SECONDS, context=self.tls))
        except urllib.error.HTTPError as refused:
            return _answered(refused)

    # --- how to get in -----------------------------------------------------------------------------------------------

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of an administrator."""
        return self._layout.kubeconfig

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._layout.server

    @property
    def certificate(self) -> Path:
        """The file with the authority that clients of the API server trust."""
        return self._layout.certificate

    @property
    def token(self) -> str:
        """The token of an administrator."""
        return self._layout.token

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """Whom to trust."""
        return ssl.create_default_context(cafile=self._layout.certificate)

    def kubeconfig_of(self, namespace: str, account: str) -> Path:
        """Write a kubeconfig of a service account, which may do what its roles allow and no more."""
        path = self.folder / f"kubeconfig-{namespace}-{account}"
        self._layout.write_kubeconfig(path, self.kubectl("create", "token", account, "-n", namespace, "--duration=24h").strip())
        return path

    @cached_property
    def scheduler_kubeconfig(self) -> Path:
        """The kubeconfig of the account of an installation: `phalanx run` may do with it what our roles allow and no more."""
        return self.kubeconfig_of(INSTALLED.namespace, NAME)

    def scheduler_kubeconfig_for(self, namespace: str) -> Path:
        """Return the same kubeconfig, and let its account hold the lease in another namespace too."""
        roles = (item for item in role_documents(INSTALLED) if item["kind"] in ("Role", "RoleBinding"))
        own = (item for item in roles if item["metadata"]["namespace"] == INSTALLED.namespace)
        self.apply({**item, "metadata": {**item["metadata"], "namespace": namespace}} for item in own)
        return self.scheduler_kubeconfig

    # --- what is in it -----------------------------------------------------------------------------------------------

    def kubectl(self, *arguments: str, text: str = "") -> str:
        """Run kubectl with some input and return what it prints; a refusal is an error."""
        command = [str(path_of("kubectl")), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            raise PhalanxError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def apply(self, documents: Iterable[Document]) -> None:
        """Bring objects in by server-side apply."""
        self.kubectl(
            "apply", "--server-side", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        )

    def add_nodes(self, count: int, machines: Machines | None = None, *, first: int = 1) -> None:
        """Make nodes, numbered from the first on, and wait until pods may use them; they stay ready as long as kwok runs."""
        made = (machines or self._machines).documents(count, first)
        self.create(made)
        self.wait_for_nodes(node["metadata"]["name"] for node in made)

    def wait_for_nodes(self, names: Iterable[str]) -> None:
        """Wait until nodes are ready and the taint is lifted that they had until then."""
        awaited = frozenset(names)
        if not awaited:
            return
        # A list of a thousand nodes costs the server as much as it takes to lift the taints of ten.
        seconds, step = (max(least, each * len(awaited)) for least, each in ((START_SECONDS, 0.1), (STEP_SECONDS, 0.001)))
        self.process(CONTROLLERS).wait_for(lambda: awaited <= self._open_nodes(), seconds, step=step)

    def _open_nodes(self) -> set[str]:
        nodes = self._asked("/api/v1/nodes?resourceVersion=0").get("items", ())
        return {node["metadata"]["name"] for node in nodes if _is_open(node)}

    def create_namespace(self, name: str) -> None:
        """Make a namespace and wait until pods can be created in it: they run as its account `default`."""
        self.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        self.process(CONTROLLERS).wait_for(lambda: self._asked(account).get("kind") == "ServiceAccount", START_SECONDS)

    def create(self, documents: Sequence[Document]) -> None:
        """Make objects, many at the same time."""
        asyncio.run(self._create(documents))

    async def _create(self, documents: Sequence[Document]) -> None:
        at_once = asyncio.Semaphore(AT_ONCE)

        async def make(document: Document) -> None:
            async with at_once:
                await client.create(document)

        async with Client(self.server, credentials=FixedCredentials(bearer(self.token), self.tls)) as client:
            await asyncio.gather(*map(make, documents))

    def compact(self) -> None:
        """Make etcd forget everything but the present, as it does by itself after five minutes."""
        latest = self._etcd("kv/range", {"key": base64.b64encode(b"/").decode()})["header"]["revision"]
        self._etcd("kv/compaction", {"revision": latest, "physical": True})

    def _etcd(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return _answered(urllib.request.urlopen(f"{self._layout.etcd}/v3/{verb}", json.dumps(body).encode(), ASK_SECONDS))


def without_rules(part: Any) -> Any:  # Any: as JSON has it
    """Return a definition without the rules in CEL of its schema, at any depth."""
    if isinstance(part, dict):
        return {key: without_rules(value) for key, value in part.items() if key != VALIDATIONS}
    return [without_rules(item) for item in part] if isinstance(part, list) else part


def _answered(answer: IO[bytes]) -> dict[str, Any]:
    """Return the body of an answer; one that is no JSON, as of a server that is not ready, says nothing."""
    with answer:
        try:
            found: dict[str, Any] = json.load(answer)
        except ValueError:
            return {}
    return found


def _is_open(node: Document) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    is_ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return is_ready and not any(taint["key"] == NOT_READY for taint in node.get("spec", {}).get("taints") or ())


def running(folder: Path) -> list[str]:
    """Return the programs of a folder's control plane that run."""
    return [name for name in ORDER if Process(name, folder).is_running()]


def stop_all(folder: Path) -> list[str]:
    """Stop what runs of a folder's control plane, the last started first, and return its names in that order."""
    found = running(folder)[::-1]
    for name in found:
        Process(name, folder).stop()
    return found
