"""The cluster of the race: accounts of contenders, creating and deleting, the watch of bound pods, and requests by account."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec
from benchmarks.job_pods import JOB
from benchmarks.live_server import each
from benchmarks.race.contenders import BY_NAME
from benchmarks.race.gangs import JOB_LABEL, Submitted
from benchmarks.race.rows import Row
from benchmarks.race.started import Started

from phalanx.dev.plane import ControlPlane
from phalanx.dev.programs import files_of
from phalanx.errors import PhalanxError
from phalanx.model.kinds import POD, Document, Kind
from phalanx.store.kube.client import Client

HOME = "race"
"""The namespace of the accounts."""
PATIENCE_SECONDS, LOOK_SECONDS = 120.0, 0.1
SECOND_LOOK_SECONDS = 0.5
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
BOUND_PODS = "/api/v1/namespaces/{}/pods?watch=1&fieldSelector=spec.nodeName%21%3D&timeoutSeconds=7200"
"""Whoever gets a node enters this selection. Only metadata is sent, so that looking on costs next to nothing."""
DISPATCHED = re.compile(r'^apiserver_flowcontrol_dispatched_requests_total\{flow_schema="race-(.*?)",.*\} (\S+)$', re.MULTILINE)


class _Metadata(msgspec.Struct):
    name: str
    resource_version: str = msgspec.field(name="resourceVersion")
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Object(msgspec.Struct):
    metadata: _Metadata


class _Event(msgspec.Struct):
    type: str
    object: _Object


_EVENT = msgspec.json.Decoder(_Event)


@dataclass(slots=True)
class Watching:
    """A watch of bound pods while it runs."""

    started: Started
    is_over: Callable[[], bool] = lambda: False
    """Tells that nothing more will come, as the contender has ended."""
    version: str = ""
    """Of the last event."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds that only events change; return whether it did in time."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() >= end or self.is_over():
                return False
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), SECOND_LOOK_SECONDS)
        return True

    def note(self, line: bytes, at: float) -> None:
        """Take down one event."""
        event = _EVENT.decode(line)
        meta = event.object.metadata
        self.version = meta.resource_version
        change = self.started.gone if event.type == "DELETED" else self.started.bound
        change(meta.labels[JOB_LABEL], meta.name, at)
        self._changed.set()


@dataclass(frozen=True, slots=True)
class Site:
    """A control plane on which contenders run in turn."""

    plane: ControlPlane
    client: Client

    @property
    def folder(self) -> Path:
        """Where logs and configurations go."""
        return self.plane.folder

    def kubeconfig(self, name: str) -> Path:
        """The kubeconfig of a contender's account."""
        return self.folder / f"kubeconfig-{HOME}-{name}"

    def token_file(self, name: str) -> Path:
        """The bare token of that account."""
        return self.folder / f"token-{name}"

    # --- objects -----------------------------------------------------------------------------------------------------

    async def create(self, documents: Iterable[Document]) -> list[Document]:
        """Create objects, many at once, and return them in the same order."""
        wanted = list(documents)
        made: list[Document] = [{}] * len(wanted)

        async def create(number: int) -> None:
            made[number] = await self.client.create(wanted[number])

        await each(lambda number=number: create(number) for number in range(len(wanted)))  # type: ignore[misc]
        return made

    async def delete(self, kind: Kind, namespace: str, names: Sequence[str]) -> None:
        """Delete objects at once: nobody would end pods that have a node and time to leave."""
        await each(lambda name=name: self.client.delete(kind, namespace, name, grace=0) for name in names)  # type: ignore[misc]

    async def clear(self, submitted: Submitted) -> None:
        """Take pods away, then their groups and Jobs, and wait until controllers have lifted the protection of groups."""
        kinds = [kind for kind in (POD, submitted.group_kind, JOB) if kind is not None]
        for kind in kinds:
            await self.delete(kind, submitted.namespace, await self._names(kind, submitted.namespace))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while any([await self._names(kind, submitted.namespace) for kind in kinds]):
                await asyncio.sleep(LOOK_SECONDS)

    async def _names(self, kind: Kind, namespace: str) -> list[str]:
        return [item["metadata"]["name"] for item in (await self.client.list(kind, namespace)).items]

    async def refuse_overfull_nodes(self, row: Row) -> None:
        """Refuse a result in which a node has more pods than it takes."""
        by_node = Counter(pod["spec"].get("nodeName", "") for pod in (await self.client.list(POD)).items)
        crowded = {node: count for node, count in by_node.items() if node and count > row.slots // row.nodes}
        if crowded:
            raise PhalanxError(f"{row.key}: nodes with more pods than fit: {crowded}")

    # --- looking on --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def watching(self, namespace: str, size: int) -> AsyncIterator[Watching]:
        """Watch the bound pods of a namespace beside the block; gangs are of this size."""
        watching = Watching(Started(size))
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
            reading = asyncio.create_task(self._read(session, namespace, watching))
            try:
                yield watching
            finally:
                if reading.done():
                    reading.result()
                reading.cancel()

    async def _read(self, session: aiohttp.ClientSession, namespace: str, watching: Watching) -> None:
        """Read events for ever; a server that has much to do ends watches that it cannot serve at once, and they are resumed."""
        path = f"{self.plane.server}{BOUND_PODS.format(namespace)}"
        headers = {"Authorization": f"Bearer {self.plane.token}", "Accept": METADATA}
        while True:
            address = f"{path}&resourceVersion={watching.version}"
            async with session.get(address, headers=headers, ssl=self.plane.tls) as answer:
                answer.raise_for_status()
                await _read_events(answer, watching)

    async def requests(self, name: str) -> int:
        """Return how many requests a contender's account has sent so far."""
        headers = {"Authorization": f"Bearer {self.plane.token}"}
        async with aiohttp.ClientSession() as session, session.get(
            f"{self.plane.server}/metrics", headers=headers, ssl=self.plane.tls
        ) as answer:  # fmt: skip
            return sent(await answer.text(), name)


def sent(metrics: str, name: str) -> int:
    """Return how many requests an account has sent, by the metrics of the API server."""
    return round(sum(float(count) for account, count in DISPATCHED.findall(metrics) if account == name))


async def _read_events(answer: aiohttp.ClientResponse, watching: Watching) -> None:
    rest = b""
    async for part in answer.content.iter_any():
        at = time.monotonic()
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            watching.note(line, at)


def install(plane: ControlPlane, definitions: Iterable[str]) -> None:
    """Give every contender an account, and rivals their own definitions instead of ours."""
    files = [part for name in definitions for file in sorted(files_of(name).glob("*.yaml")) for part in ("-f", str(file))]
    if files:
        plane.kubectl("apply", "--server-side", "--force-conflicts", *files)
    plane.create_namespace(HOME)
    names = [*BY_NAME]
    plane.apply([document for name in names for document in account(name)])
    for name in names:
        token = plane.kubectl("create", "token", name, "-n", HOME, "--duration=24h").strip()
        (plane.folder / f"token-{name}").write_text(token)
        plane.kubeconfig_of(HOME, name)


def account(name: str) -> list[Document]:
    """Return the account of a contender: it may do everything, and its requests are counted and never held back."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": HOME}
    rules = {
        "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"name": name, "namespace": HOME}}],
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": HOME}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"race-{name}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [subject],
        },
        {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": f"race-{name}"},
            "spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 100, "rules": [rules]},
        },
    ]  # fmt: skip
