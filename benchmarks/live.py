"""How long it takes from the start of a scheduler to its last bind, on a real API server, beside others in the same run.

    python benchmarks/live.py                       # 1,000 nodes, 100 gangs of 50 pods
    python benchmarks/live.py --nodes 100 --gangs 10 --rounds 3 --write benchmarks/RESULTS-LIVE.md

The contenders: `raw` binds every pod to the next node over 32 connections and decides nothing, which is what the API server can
take; `phalanx` is `phalanx run` as a user starts it; `native` is kube-scheduler with Kubernetes' own gangs. Pods and groups are
the same for all, and there before the clock starts. Nobody plays kubelet. Each round begins with an empty cluster.

The pods are those of indexed Jobs: each has an index, an owner and a token volume of its own name. With `--bare` every contender
also runs with pods that have none of that.
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
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from job_pods import JOB, bare, job, of_job

import phalanx as package
from phalanx.dev.go_build import build
from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.layout import CONTROLLERS, SCHEDULER
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import launch
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document, Kind
from phalanx.store.kube.client import Client
from phalanx.store.kube.credentials import FixedCredentials, bearer

CONNECTIONS = 32
PATIENCE_SECONDS, BETWEEN_LOOKS_SECONDS = 300.0, 0.1
GROUP = GROUP_BY_DIALECT["native"]
WITHOUT_KUBELETS = {CONTROLLERS: ("--node-monitor-grace-period=24h",)}
"""Nobody renews the leases of nodes here; they are to be taken for alive all the same."""


@dataclass(frozen=True)
class Race:
    """What is scheduled."""

    nodes: int
    gangs: int
    pods: int
    rounds: int
    is_bare: bool = False
    """Pods without what Jobs and admission write."""

    @property
    def total(self) -> int:
        """All pods."""
        return self.gangs * self.pods


async def each(jobs: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Do everything, so many at once as there are connections."""
    left = iter(jobs)

    async def work() -> None:
        for action in left:
            await action()

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


async def with_owners(client: Client, race: Race, pods: list[Document]) -> list[Document]:
    """Create the Job of each gang and return the pods as it would write them, in the same order."""
    if race.is_bare:
        return [bare(pod) for pod in pods]
    jobs = [await client.create(job(pod, name=f"gang-{gang}", size=race.pods)) for gang, pod in enumerate(pods[: race.gangs])]
    return [of_job(pod, jobs[number % race.gangs], number // race.gangs) for number, pod in enumerate(pods)]


async def prepare(client: Client, race: Race, namespace: str, scheduler: str) -> list[Document]:
    """Create everything and return the pods."""
    groups, pods = documents(race, namespace, scheduler)
    await each(lambda item=item: client.create(item) for item in groups)  # type: ignore[misc]
    pods = await with_owners(client, race, pods)
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
    """Take the pods away, then their groups and Jobs, and wait until controllers have lifted the protection of groups."""
    for kind in (POD, GROUP, JOB):
        await delete_all(client, kind, namespace)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await client.list(GROUP, namespace)).items:
            await asyncio.sleep(BETWEEN_LOOKS_SECONDS)


async def delete_all(client: Client, kind: Kind, namespace: str) -> None:
    """Delete all objects of a kind; nobody would end pods that have a node and time to leave."""
    names = [item["metadata"]["name"] for item in (await client.list(kind, namespace)).items]
    await each(lambda name=name: client.delete(kind, namespace, name, grace=0) for name in names)  # type: ignore[misc]


async def run(plane: ControlPlane, races: list[Race], names: list[str]) -> dict[str, list[float]]:
    """Let every contender run in every round, with each kind of pods."""
    found: dict[str, list[float]] = {}
    async with Client(plane.server, credentials=FixedCredentials(bearer(plane.token), plane.tls)) as client:
        for number in range(races[0].rounds):
            for name, race in ((name, race) for name in names for race in races):
                label = f"{name}, bare pods" if race.is_bare else name
                seconds = await attempt(client, plane, race, name, f"{name}-{'bare-' * race.is_bare}{number}")
                found.setdefault(label, []).append(seconds)
                print(f"round {number + 1}: {label:18} {seconds:6.2f} s", file=sys.stderr, flush=True)
    return found


async def attempt(client: Client, plane: ControlPlane, race: Race, name: str, namespace: str) -> float:
    """Let one contender run in a namespace of its own, and leave an empty cluster."""
    await asyncio.to_thread(plane.create_namespace, namespace)
    seconds = await CONTENDERS[name](client, plane, race, namespace)
    await check(client, race, namespace)
    await clear(client, namespace)
    return seconds


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
    parser.add_argument("--bare", action="store_true", help="run everybody also with pods without owner and token")
    parser.add_argument("--write", type=Path, help="write the table to this file as well")
    asked = parser.parse_args()
    build()
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)  # as pip does when it installs
    race = Race(asked.nodes, asked.gangs, asked.pods, asked.rounds)
    races = [race, replace(race, is_bare=True)] if asked.bare else [race]
    names = [name for name in asked.only.split(",") if name in CONTENDERS]
    with tempfile.TemporaryDirectory() as folder:
        machines = Machines(cpu="32", memory="256Gi", gpus=0)
        with ControlPlane(Path(folder), nodes=race.nodes, machines=machines, parts=(), flags=WITHOUT_KUBELETS) as plane:
            found = asyncio.run(run(plane, races, names))
    text = table(race, found)
    print(text, end="")
    if asked.write:
        cores = os.cpu_count()
        where = f"{platform.python_implementation()} {platform.python_version()}, {cores} cores, {datetime.now(UTC):%Y-%m-%d}"
        asked.write.write_text(f"# From process start to last bind\n\nBy `python benchmarks/live.py`; {where}.\n\n{text}")


if __name__ == "__main__":
    main()
