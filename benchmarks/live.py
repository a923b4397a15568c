"""How long it takes from the start of a scheduler to its last bind, on a real API server, beside others in the same run.

    python benchmarks/live.py                       # 1,000 nodes, 100 gangs of 50 pods
    python benchmarks/live.py --nodes 100 --gangs 10 --rounds 3 --write benchmarks/RESULTS-LIVE.md

The contenders: `raw` binds every pod to the next node over 32 connections and decides nothing, which is what the API server can
take; `phalanx` is `phalanx run` as a user starts it; `native` is kube-scheduler with Kubernetes' own gangs. Pods and groups are
the same for all, and there before the clock starts. Nobody plays kubelet. Each round begins with an empty cluster.
"""

import argparse
import asyncio
import compileall
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import phalanx as package
from phalanx.dev.go_build import build
from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.layout import SCHEDULER
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import launch
from phalanx.errors import Missing
from phalanx.model.kinds import GROUP_BY_DIALECT, NODE, POD, Document
from phalanx.store.kube.client import Client
from phalanx.store.kube.credentials import FixedCredentials, bearer

CONNECTIONS = 32
PATIENCE_SECONDS, BETWEEN_LOOKS_SECONDS = 300.0, 0.1
GROUP = GROUP_BY_DIALECT["native"]


@dataclass(frozen=True)
class Race:
    """What is scheduled."""

    nodes: int
    gangs: int
    pods: int
    rounds: int

    @property
    def total(self) -> int:
        """All pods."""
        return self.gangs * self.pods


async def each(jobs: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Do everything, so many at once as there are connections."""
    left = iter(jobs)

    async def work() -> None:
        for job in left:
            await job()

    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))


def documents(race: Race, namespace: str, scheduler: str) -> tuple[list[Document], list[Document]]:
    """Return the groups and the pods, of all gangs in turn."""
    groups: list[Document] = [
        {
            "apiVersion": GROUP.api_version, "kind": GROUP.kind, "metadata": {"name": f"gang-{gang}", "namespace": namespace},
            "spec": {"schedulingPolicy": {"gang": {"minCount": race.pods}}},
        }
        for gang in range(race.gangs)
    ]  # fmt: skip
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    pods: list[Document] = [
        {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"gang-{gang}-{number}", "namespace": namespace},
            "spec": {
                "schedulerName": scheduler, "schedulingGroup": {"podGroupName": f"gang-{gang}"},
                "containers": [{"name": "main", "image": "none", "resources": resources}],
            },
        }
        for number in range(race.pods)
        for gang in range(race.gangs)
    ]  # fmt: skip
    return groups, pods


async def prepare(client: Client, race: Race, namespace: str, scheduler: str) -> list[Document]:
    """Create everything and return the pods."""
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    groups, pods = documents(race, namespace, scheduler)
    await each(lambda item=item: client.create(item) for item in groups)  # type: ignore[misc]
    made: list[Document] = []

    async def create(pod: Document) -> None:
        made.append(await client.create(pod))

    await each(lambda item=item: create(item) for item in pods)  # type: ignore[misc]
    return made


async def last_bind(client: Client, namespace: str) -> None:
    """Wait until no pod is without a node; one is asked for at a time, so that looking costs next to nothing."""
    path = f"/api/v1/namespaces/{namespace}/pods?fieldSelector=spec.nodeName%3D&limit=1"
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await client.document(path)).get("items"):
            await asyncio.sleep(BETWEEN_LOOKS_SECONDS)


async def raw(client: Client, plane: ControlPlane, race: Race, namespace: str) -> float:
    """Bind all pods to nodes in turn."""
    pods = await prepare(client, race, namespace, "nobody")
    begun = time.monotonic()
    places = [(pod["metadata"], f"node-{number % race.nodes + 1}") for number, pod in enumerate(pods)]
    await each(
        lambda meta=meta, node=node: client.bind(namespace, meta["name"], node, uid=meta["uid"])  # type: ignore[misc]
        for meta, node in places
    )
    await last_bind(client, namespace)
    return time.monotonic() - begun


async def by_process(client: Client, race: Race, namespace: str, scheduler: str, start: Callable[[], Callable[[], None]]) -> float:
    """Start a scheduler and wait for its last bind; `start` returns how to end it."""
    await prepare(client, race, namespace, scheduler)
    begun = time.monotonic()
    stop = start()
    try:
        await last_bind(client, namespace)
        return time.monotonic() - begun
    finally:
        stop()


async def phalanx(client: Client, plane: ControlPlane, race: Race, namespace: str) -> float:
    """Run `phalanx run` as a user would."""
    command = [
        str(Path(sys.executable).with_name("phalanx")),
        "run",
        "--kubeconfig",
        str(plane.kubeconfig),
        "--lease-namespace=default",
    ]

    def start() -> Callable[[], None]:
        process = launch(command, stdout=subprocess.DEVNULL, stderr=(plane.folder / "phalanx.log").open("a"))

        def stop() -> None:
            process.terminate()
            _, _, usage = os.wait4(process.pid, 0)
            print(f"phalanx used {usage.ru_utime + usage.ru_stime:.1f} s of CPU, {usage.ru_maxrss / 1024:.0f} MiB", file=sys.stderr)

        return stop

    return await by_process(client, race, namespace, "phalanx", start)


async def native(client: Client, plane: ControlPlane, race: Race, namespace: str) -> float:
    """Run kube-scheduler with gangs."""

    def start() -> Callable[[], None]:
        plane.start(SCHEDULER)
        return lambda: plane.stop(SCHEDULER)

    return await by_process(client, race, namespace, "default-scheduler", start)


CONTENDERS = {"raw": raw, "phalanx": phalanx, "native": native}


async def check(client: Client, race: Race, namespace: str) -> None:
    """Refuse a result in which a pod has no node, or a node too many pods."""
    pods = (await client.list(POD, namespace)).items
    by_node = Counter(pod["spec"].get("nodeName", "") for pod in pods)
    if len(pods) != race.total or "" in by_node or max(by_node.values()) > 32:
        raise SystemExit(f"{namespace}: {by_node[''] or 'some'} pods without a node, or a node with too many")


async def clear(client: Client, namespace: str) -> None:
    """Take the pods and groups away; nobody else lifts the protection of groups here."""
    pods, groups = (await client.list(POD, namespace)).items, (await client.list(GROUP, namespace)).items
    await each(lambda pod=pod: client.delete(POD, namespace, pod["metadata"]["name"], grace=0) for pod in pods)  # type: ignore[misc]
    for name in (group["metadata"]["name"] for group in groups):
        await client.delete(GROUP, namespace, name)
        with suppress(Missing):
            await client.patch(GROUP, namespace, name, {"metadata": {"finalizers": None}})


async def run(plane: ControlPlane, race: Race, names: list[str]) -> dict[str, list[float]]:
    """Let every contender run in every round."""
    found: dict[str, list[float]] = {name: [] for name in names}
    async with Client(plane.server, credentials=FixedCredentials(bearer(plane.token), plane.tls)) as client:
        for node in (await client.list(NODE)).items:
            await client.patch(NODE, "", node["metadata"]["name"], {"spec": {"taints": None}})
        for number in range(race.rounds):
            for name in names:
                namespace = f"{name}-{number}"
                seconds = await CONTENDERS[name](client, plane, race, namespace)
                await check(client, race, namespace)
                await clear(client, namespace)
                found[name].append(seconds)
                print(f"round {number + 1}: {name:8} {seconds:6.2f} s", file=sys.stderr, flush=True)
    return found


def table(race: Race, found: dict[str, list[float]]) -> str:
    """Write the result down."""
    base = median(found["raw"]) if "raw" in found else None
    lines = [
        f"{race.nodes:,} nodes, {race.gangs} gangs of {race.pods} pods, {race.rounds} rounds; from process start to last bind.",
        "",
        "| contender | seconds (median) | all rounds | against raw |",
        "|---|---|---|---|",
    ]
    for name, seconds in found.items():
        ratio = f"{median(seconds) / base:.2f}" if base else ""
        lines.append(f"| {name} | {median(seconds):.2f} | {', '.join(f'{each:.2f}' for each in seconds)} | {ratio} |")
    if "native" in found and "phalanx" in found:
        lines += ["", f"phalanx against native: {median(found['phalanx']) / median(found['native']):.2f}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the race that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gangs", type=int, default=100)
    parser.add_argument("--pods", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default=",".join(CONTENDERS), help="contenders, separated by commas")
    parser.add_argument("--write", type=Path, help="write the table to this file as well")
    asked = parser.parse_args()
    build()
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)  # as pip does when it installs
    race = Race(asked.nodes, asked.gangs, asked.pods, asked.rounds)
    names = [name for name in asked.only.split(",") if name in CONTENDERS]
    with tempfile.TemporaryDirectory() as folder:
        machines = Machines(cpu="32", memory="256Gi", gpus=0)
        with ControlPlane(Path(folder), nodes=race.nodes, machines=machines, parts=()) as plane:
            found = asyncio.run(run(plane, race, names))
    text = table(race, found)
    print(text, end="")
    if asked.write:
        cores = os.cpu_count()
        where = f"{platform.python_implementation()} {platform.python_version()}, {cores} cores, {datetime.now(UTC):%Y-%m-%d}"
        asked.write.write_text(f"# From process start to last bind\n\nBy `python benchmarks/live.py`; {where}.\n\n{text}")


if __name__ == "__main__":
    main()
