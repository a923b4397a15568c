"""Chaos on a real control plane: replicas of `phalanx run` behind proxies that fail, a load of gangs, and what must hold.

A storm comes in rounds. In each, gangs come and go while requests fail and processes are killed; at its end more gangs come than
there is room for, and stay. Then faults stop, and once the cluster is at rest it is judged.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random

import yaml

from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.layout import KWOK, SERVER
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import Replica
from phalanx.model.kinds import QUEUE
from tests.chaos.disorder import EVENTS, Disorder, Watched, judge_processes
from tests.chaos.evictions import watched_evictions
from tests.chaos.gangs import QUEUES
from tests.chaos.kubelet import Kubelet, without_pods
from tests.chaos.load import Load, in_thread
from tests.chaos.recorder import Recorder
from tests.chaos.rest import RestJudge
from tests.chaos.violations import Findings
from tests.chaos.weather import Weather
from tests.support.fault_proxy import Proxy
from tests.support.http_api import connection_to
from tests.support.store_contract import eventually

NAMESPACE = "chaos"
NODES, MACHINES = 40, Machines(cpu="4", memory="16Gi", gpus=0)
LEASE_SECONDS = 4
ROUND_SECONDS = 150.0
LAST_SECONDS = 12.0
"""So long faults go on after those have come."""
CLASSES = {"low": 1, "high": 1000}
TELL_SECONDS, SAMPLE_SECONDS = 10.0, 2.0
AUDITED = ["pods", "pods/binding", "pods/eviction"]
NAMES = ("elder", "second", "third", "fourth")


@dataclass(frozen=True, slots=True)
class Plan:
    """How long a storm lasts, and how hard it is."""

    folder: Path
    seconds: float = 600.0
    seed: int = 1
    gangs: int = 1000
    replicas: int = 3
    last_gangs: int = 35
    """Gangs that stay at the end of a round: they want some 250 CPUs of 160."""

    @property
    def rounds(self) -> int:
        """How many rounds it has."""
        return max(1, round(self.seconds / ROUND_SECONDS))


@dataclass(slots=True)
class Storm:
    """A storm with everything that takes part in it."""

    plan: Plan
    findings: Findings = field(default_factory=Findings)
    weathers: list[Weather] = field(default_factory=list)
    proxies: list[Proxy] = field(default_factory=list)
    replicas: list[Watched] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)
    gangs: int = 0
    pods: int = 0

    def run(self) -> None:
        """Run all rounds; violations are in the findings then."""
        flags = {SERVER: _audited(self.plan.folder)}
        with ControlPlane(self.plan.folder, nodes=NODES, machines=MACHINES, parts=(), flags=flags) as plane, ExitStack() as stack:
            self._prepare(plane)
            connection = connection_to(str(plane.kubeconfig))
            kubelet = stack.enter_context(Kubelet(connection, Random(f"{self.plan.seed} kubelet")))
            recorder = stack.enter_context(Recorder(connection, NAMESPACE, self.findings, kubelet))
            for number in range(self.plan.replicas):
                self._add_replica(plane, stack, number)
            assert eventually(lambda: recorder.leader != ""), "nobody leads"
            chance, rate = Random(f"{self.plan.seed} load"), 1.3 * self.plan.gangs / self.plan.seconds
            load = Load(connection, NAMESPACE, recorder.ledger, self.findings, chance, rate)
            disorder = Disorder(
                plane, self.replicas, self.findings, Random(f"{self.plan.seed} disorder"), lambda: recorder.leader
            )  # fmt: skip
            evictions = stack.enter_context(watched_evictions(connection, NAMESPACE, recorder.ledger))
            judge = RestJudge(plane, NAMESPACE, recorder.ledger, evictions, self.proxies, self.findings, self._terms)
            with self._telling(recorder, load):
                for number in range(self.plan.rounds):
                    self._round(number, load, disorder, judge)
            self.gangs, self.pods = load.made, len(recorder.ledger.seen)

    def _terms(self) -> int:
        return sum(watched.terms for watched in self.replicas)

    def _prepare(self, plane: ControlPlane) -> None:
        without_pods(self.plan.folder / "stages.yaml")
        plane.start(KWOK)
        plane.create_namespace(NAMESPACE)
        plane.create([
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"{NAMESPACE}-{name}"},
             "value": value}
            for name, value in CLASSES.items()
        ])  # fmt: skip
        head = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind}
        plane.create([{**head, "metadata": {"name": name}, "spec": spec} for name, spec in QUEUES.items()])

    def _add_replica(self, plane: ControlPlane, stack: ExitStack, number: int) -> None:
        name = NAMES[number]
        proxy = stack.enter_context(Proxy(connection_to(str(plane.kubeconfig))))
        arguments = [
            "--kubeconfig", str(proxy.write_kubeconfig(self.plan.folder / f"{name}.yaml")), "--scheduler-name", NAMESPACE,
            "--lease-namespace", NAMESPACE, "--lease-duration", str(LEASE_SECONDS), "-v", "2",
        ]  # fmt: skip
        watched = Watched(Replica(self.plan.folder, name, arguments), is_elder=number == 0)
        stack.callback(watched.replica.kill)
        watched.start()
        watched.replica.wait()
        self.proxies.append(proxy)
        self.replicas.append(watched)
        self.weathers.append(Weather(Random(f"{self.plan.seed} {name}")))

    def _round(self, number: int, load: Load, disorder: Disorder, judge: RestJudge) -> None:
        seconds = self.plan.seconds / self.plan.rounds
        self.findings.say(f"round {number + 1} of {self.plan.rounds}: {seconds:.0f} s of load and faults")
        for proxy, weather in zip(self.proxies, self.weathers, strict=True):
            proxy.storm(weather.draw)
        judge.evictions.calm_since = inf
        disturbing = in_thread(lambda: disorder.run(seconds, self.is_over.is_set), self.findings)
        load.run(seconds - LAST_SECONDS, self.is_over.is_set)
        load.fill(self.plan.last_gangs)
        disturbing.join()
        for proxy in self.proxies:
            proxy.calm()
        judge.evictions.calm_since = time.monotonic()
        self.findings.say("faults and load have stopped")
        judge.judge(self.is_over.is_set)
        judge_processes(self.replicas, self.findings)
        load.clear()

    @contextmanager
    def _telling(self, recorder: Recorder, load: Load) -> Iterator[None]:
        """Sample processes and tell how far it is, beside the block."""
        is_done = threading.Event()

        def tell() -> None:
            told = 0.0
            while not is_done.wait(SAMPLE_SECONDS):
                recorder.ledger.look()
                for watched in self.replicas:
                    watched.sample()
                if time.monotonic() - told > TELL_SECONDS:
                    told = time.monotonic()
                    self.findings.say(f"{load.made} gangs, {len(recorder.ledger.seen)} pods, {self.faults.total()} faults; "
                                      f"{recorder.leader or 'nobody'} leads {len(load.alive)} gangs")  # fmt: skip

        thread = in_thread(tell, self.findings)
        yield
        is_done.set()
        thread.join()

    @property
    def faults(self) -> Counter[str]:
        """How many requests and watches were struck by what, and how often what happened to processes."""
        events = {name: self.findings.counts[name] for name in EVENTS}
        return sum((weather.struck for weather in self.weathers), Counter(events))

    def summary(self) -> Iterator[str]:
        """Yield what happened, the verdict last."""
        yield "faults: " + ", ".join(f"{number} {name}" for name, number in self.faults.most_common())
        yield "and: " + ", ".join(f"{number} {name}" for name, number in self._others().items())
        for watched in self.replicas:
            samples = [item for found in watched.samples.values() for item in found]
            if samples:
                most, last = max(item.megabytes for item in samples), samples[-1]
                tasks = max(item.tasks for item in samples)
                yield (f"{watched.replica.name}: {watched.lives} lives, at most {most:.0f} MB and {tasks} tasks; "
                       f"{last.megabytes:.0f} MB, {last.files} open files and {last.tasks} tasks at the end")  # fmt: skip
        for kind, number in Counter(item.kind for item in self.findings.violations).items():
            yield f"{number} x {kind}"
        yield (f"chaos: {self.gangs} gangs, {self.pods:,} pods, {self.faults.total():,} faults, "
               f"{len(self.findings.violations)} violations")  # fmt: skip

    def _others(self) -> dict[str, int]:
        sent = {name: sum(proxy.count(f"/{name}$", method="POST") for proxy in self.proxies) for name in ("binding", "eviction")}
        return {"binds": sent["binding"], "evictions": sent["eviction"]} | {
            name: number for name, number in self.findings.counts.items() if name not in self.faults
        }


def _audited(folder: Path) -> list[str]:
    """Return flags with which the API server logs who bound and removed which pod: whoever reads a violation needs that first."""
    folder.mkdir(parents=True, exist_ok=True)
    pods = {"level": "Metadata", "verbs": ["create", "delete"], "resources": [{"group": "", "resources": AUDITED}]}
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [pods, {"level": "None"}],
    }
    (folder / "audit.yaml").write_text(yaml.safe_dump(policy))
    return [f"--audit-policy-file={folder / 'audit.yaml'}", f"--audit-log-path={folder / 'audit.log'}"]
