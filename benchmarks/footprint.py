"""How much memory `phalanx run` takes on a large cluster, how long it takes to know it, and what it costs when nothing happens.

    python benchmarks/footprint.py                  # 5,000 nodes, 50,000 pods
    python benchmarks/footprint.py --nodes 500 --pods 5000 --write benchmarks/RESULTS.md

Pods are created on their nodes, in Volcano PodGroups of 50; nobody plays kubelet, so nothing changes once everything is there.
They are those of indexed Jobs, with an index, an owner and a token volume; with `--bare` they have none of that.
"""

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from job_pods import bare, job, of_job
from live_server import WITHOUT_KUBELETS, each

from phalanx.bench.results_page import write_section
from phalanx.dev.go_build import build
from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import launch
from phalanx.model.kinds import GROUP_BY_DIALECT, Document
from phalanx.store.kube.client import Client
from phalanx.store.kube.credentials import FixedCredentials, bearer

PER_GANG = 50
SETTLE_SECONDS, IDLE_SECONDS = 20.0, 30.0
PORT = 18080
GROUP = GROUP_BY_DIALECT["volcano"]


@dataclass(frozen=True)
class Footprint:
    """What was measured."""

    ready_seconds: float
    ready_cpu_seconds: float
    memory_mib: float
    idle_percent: float


def documents(nodes: int, pods: int) -> tuple[list[Document], list[Document]]:
    """Return groups, and pods that have a node."""
    groups: list[Document] = [
        {"apiVersion": GROUP.api_version, "kind": GROUP.kind, "metadata": {"name": f"gang-{number}", "namespace": "default"},
         "spec": {"minMember": PER_GANG, "queue": "default"}}
        for number in range(pods // PER_GANG)
    ]  # fmt: skip
    made: list[Document] = [
        {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": f"pod-{number}", "namespace": "default", "labels": {"app": f"gang-{number // PER_GANG}"},
                "annotations": {"scheduling.k8s.io/group-name": f"gang-{number // PER_GANG}"},
            },
            "spec": {
                "schedulerName": "phalanx", "nodeName": f"node-{number % nodes + 1}",
                "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            },
        }
        for number in range(pods)
    ]  # fmt: skip
    return groups, made


async def fill(plane: ControlPlane, nodes: int, pods: int, *, is_bare: bool) -> None:
    """Create everything."""
    groups, made = documents(nodes, pods)
    async with Client(plane.server, credentials=FixedCredentials(bearer(plane.token), plane.tls)) as client:
        made = [bare(pod) for pod in made] if is_bare else await with_owners(client, made)
        await each(lambda item=item: client.create(item) for item in (*groups, *made))  # type: ignore[misc]


async def with_owners(client: Client, pods: list[Document]) -> list[Document]:
    """Create the Job of each gang and return the pods as it would write them."""
    jobs = [await client.create(job(pod, name=f"gang-{gang}", size=PER_GANG)) for gang, pod in enumerate(pods[::PER_GANG])]
    return [of_job(pod, jobs[number // PER_GANG], number % PER_GANG) for number, pod in enumerate(pods)]


def is_ready() -> bool:
    """Tell whether the scheduler says that it knows the cluster."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def cpu_seconds(pid: int) -> float:
    """Return what a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """Return the memory that a process holds."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def measure(plane: ControlPlane) -> Footprint:
    """Run the scheduler and look at it."""
    command = [
        str(Path(sys.executable).with_name("phalanx")), "run", "--kubeconfig", str(plane.kubeconfig),
        "--lease-namespace=default", f"--http=127.0.0.1:{PORT}",
    ]  # fmt: skip
    begun = time.monotonic()
    with launch(command, stdout=subprocess.DEVNULL, stderr=(plane.folder / "phalanx.log").open("a")) as process:
        try:
            while not is_ready():
                time.sleep(0.1)
            ready, cpu = time.monotonic() - begun, cpu_seconds(process.pid)
            _settle(process.pid)
            before = cpu_seconds(process.pid)
            time.sleep(IDLE_SECONDS)
            idle = (cpu_seconds(process.pid) - before) / IDLE_SECONDS * 100
            return Footprint(ready, cpu, memory_mib(process.pid), idle)
        finally:
            process.terminate()


def _settle(pid: int) -> None:
    """Wait until the first statuses and events are written."""
    used = -1.0
    while cpu_seconds(pid) - used > SETTLE_SECONDS * 0.05:
        used = cpu_seconds(pid)
        time.sleep(SETTLE_SECONDS)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--bare", action="store_true", help="pods without owner and token")
    parser.add_argument("--write", type=Path, help="write the result as a section of this file as well")
    asked = parser.parse_args()
    build()
    with tempfile.TemporaryDirectory() as folder:
        machines = Machines(cpu="96", memory="1024Gi", gpus=0)
        with ControlPlane(Path(folder), nodes=asked.nodes, machines=machines, parts=(), flags=WITHOUT_KUBELETS) as plane:
            print(f"creating {asked.pods:,} pods on {asked.nodes:,} nodes", file=sys.stderr, flush=True)
            asyncio.run(fill(plane, asked.nodes, asked.pods, is_bare=asked.bare))
            found = measure(plane)
    text = (
        f"{asked.nodes:,} nodes, {asked.pods:,} pods in {asked.pods // PER_GANG:,} gangs:\n\n"
        f"- memory: {found.memory_mib:,.0f} MiB\n"
        f"- from process start to ready: {found.ready_seconds:.1f} s, {found.ready_cpu_seconds:.1f} s of CPU\n"
        f"- CPU when nothing happens: {found.idle_percent:.2f} % of a core, over {IDLE_SECONDS:.0f} s\n"
    )
    print(text, end="")
    if asked.write:
        where = (
            f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores, {datetime.now(UTC):%Y-%m-%d}"
        )
        write_section(asked.write, "footprint", f"By `python benchmarks/footprint.py`; {where}.\n\n{text}")


if __name__ == "__main__":
    main()
