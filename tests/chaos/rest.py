"""What must hold once faults and load have stopped: read from the API server, as `phalanx schedule` would."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phalanx.config.policies import DEFAULT_PROFILE, policy_of_gates, policy_of_profile
from phalanx.dev.plane import ControlPlane
from phalanx.live.catalogue import connected
from phalanx.model.kinds import Document
from phalanx.store.kube.client import Client
from phalanx.store.kube.cluster_objects import list_cluster
from phalanx.store.kube.credentials import FixedCredentials, bearer
from phalanx.testing.storm.invariants import Rest, Violation
from phalanx.testing.storm.replica import controllers_of
from tests.chaos.evictions import Evictions
from tests.chaos.recorder import Ledger
from tests.chaos.violations import Findings
from tests.support.fault_proxy import Proxy, Seen

QUIET_SECONDS = 6.0
"""When no pod has changed for so long it is time to look."""
MOST_SECONDS, MOST_SECONDS_IN_ALL = 90.0, 300.0
"""By then everything must be in order: after the last change of the leader, and in any case."""
BETWEEN_LOOKS_SECONDS = 4.0
SILENCE_SECONDS, MOST_SILENCES, MOST_REQUESTS = 15.0, 7, 10
"""At rest there comes a while without writes, and with so many other requests besides routine ones: a watch may come to its end. It
does not come at once: pods are made anew, everything is listed once more after an outage, and where only numbers in a message have
changed it is written late, on purpose."""
ROUTINE = re.compile(r"/leases|^/api(s|/v1)?$|^/apis/[^/]+(/[^/]+)?$")
"""Renewals of the lease, and what the server serves, which every replica asks twice a minute."""


@dataclass(slots=True)
class RestJudge:
    """Waits until the cluster is at rest, and judges it then."""

    plane: ControlPlane
    scheduler: str
    ledger: Ledger
    evictions: Evictions
    proxies: Sequence[Proxy]
    findings: Findings
    terms: Callable[[], int]
    """How often a replica began to lead. On a busy machine that goes on when faults have stopped: an answer that takes two seconds
    costs a lease of four."""

    def judge(self, is_over: Callable[[], bool]) -> None:
        """Wait until nothing is wrong, for a while; whatever is wrong then is a violation."""
        begun = since = time.monotonic()
        terms, found = self.terms(), list[Violation]()
        while time.monotonic() - since < MOST_SECONDS and time.monotonic() - begun < MOST_SECONDS_IN_ALL and not is_over():
            time.sleep(BETWEEN_LOOKS_SECONDS)
            if self.terms() != terms:
                terms, since = self.terms(), time.monotonic()
            if time.monotonic() - self.ledger.changed < QUIET_SECONDS and time.monotonic() - begun < MOST_SECONDS / 2:
                continue
            if not (found := self.violations()):
                break
        seconds = time.monotonic() - begun
        self.findings.say(f"at rest after {seconds:.0f} s" if not found else f"not at rest after {seconds:.0f} s")
        self.findings.count("evictions in calm weather", len(self.evictions.of_calm_weather()))
        for item in found:
            self.findings.violate(f"at rest, {item.invariant}", item.text)
        self._judge_silence()

    def violations(self) -> list[Violation]:
        """Return what is wrong now."""
        rest = self._rest()
        return [*rest.violations(), *self.evictions.violations(rest)]

    def _rest(self) -> Rest:
        documents, now = asyncio.run(self._dump())
        policy, own = policy_of_profile(DEFAULT_PROFILE), frozenset({self.scheduler})
        profile, gates = connected(policy), connected(policy_of_gates(policy))
        return Rest(documents, profile, now, own, controllers_of(profile, own), gates)

    async def _dump(self) -> tuple[list[Document], float]:
        async with Client(self.plane.server, credentials=FixedCredentials(bearer(self.plane.token), self.plane.tls)) as client:
            listed = await list_cluster(client)
        return list(listed.documents), listed.now

    def _judge_silence(self) -> None:
        """Wait for a while in which nothing is sent: a Job makes pods that were evicted anew only minutes later."""
        noise: list[Seen] = []
        for _ in range(MOST_SILENCES):
            if not (noise := self._noise()):
                return
        self.findings.violate("not quiet at rest", f"{len(noise)} requests in {SILENCE_SECONDS:.0f} s: {_shown(noise)}")

    def _noise(self) -> list[Seen]:
        """Return what replicas send in a while, if it is more than may be."""
        old, since = self._rest().old_messages(), time.monotonic()
        time.sleep(SILENCE_SECONDS)
        seen = [
            item for proxy in self.proxies for item in list(proxy.seen) if item.moment >= since and not ROUTINE.search(item.path)
        ]
        writes = [item for item in seen if item.method != "GET" and not _is_about(item, old)]
        return writes or (seen if len(seen) > MOST_REQUESTS else [])


def _is_about(item: Seen, objects: frozenset[str]) -> bool:
    """Tell whether a status of one of these is written."""
    parts = item.path.split("/")
    place = f"{parts[-4]}/{parts[-2]}" if parts[-1] == "status" and len(parts) > 4 else ""
    return any(what.endswith(f" {place}") for what in objects) if place else False


def _shown(seen: Sequence[Seen]) -> str:
    return ", ".join(f"{item.method} {item.path}" for item in seen[:6])
