"""Who leads: the holder of a Lease, as other components of Kubernetes elect theirs.

Whether a lease has run out is judged by our own clock, from the moment we saw its last change: clocks of machines differ. How
long our own one holds is judged by a clock that goes on while the machine sleeps. Once it has run out that term is over, even if
the server renews the lease a moment later: what was held back meanwhile is decided anew.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from phalanx.errors import ClusterError, Conflict, Exists, Missing
from phalanx.live.clock import LoopClock
from phalanx.model.kinds import Document, kind_at
from phalanx.model.moment import micro_text
from phalanx.store.api_client import ApiClient

LEASE = kind_at("coordination.k8s.io", "leases")
LEASES_STOOD_BACK = 2.0
"""Who gave the lease up because he does not do well stands back for so many lease durations: any other candidate is faster."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a leader is elected."""

    name: str
    namespace: str
    identity: str
    lease_seconds: float = 15.0
    """For so long nobody else takes over after the leader was last heard of."""
    renew_seconds: float = 10.0
    """A leader that could not renew its lease for so long gives up."""
    retry_seconds: float = 2.0


class Election:
    """Takes part in an election, over and over."""

    def __init__(self, client: ApiClient, terms: Terms, *, clock: LoopClock | None = None, report: Callable[[str], None]) -> None:
        """`report` is called with what goes wrong."""
        self._client, self._terms, self._report, self._clock = client, terms, report, clock or LoopClock()
        self.on_change = report
        """Called when we begin to lead, and when we do not any more."""
        self._renewed = float("-inf")
        self._back_at = float("-inf")
        """Before that moment we stand back."""
        self._seen: tuple[str, float] = ("", 0.0)
        """The version of the lease that we saw last, and when it was new to us."""
        self._own: Document | None = None
        """The lease as we wrote it last; None once the answer to a later request has failed to come."""
        self.holder = ""
        """Who leads, as far as we know."""

    @property
    def is_leader(self) -> bool:
        """Tell whether nobody else can be the leader now."""
        return self._left > 0.0 and self._clock.since_boot >= self._back_at

    @property
    def _left(self) -> float:
        """For how many seconds the lease is ours."""
        return self._renewed + self._terms.renew_seconds - self._clock.since_boot

    def step_down(self, reason: str) -> None:
        """Let another one lead: decide nothing any more, end the term, give the lease back, and take it again only later."""
        if self.is_leader:
            seconds = LEASES_STOOD_BACK * self._terms.lease_seconds
            self._back_at = self._clock.since_boot + seconds
            self._report(f"{self._terms.identity} gives up the lease, and stands back for {seconds:g} s: {reason}")

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Take part until cancelled; `lead` is run while we lead, and cancelled when we do not any more."""
        while True:
            while not await self._try():
                await asyncio.sleep(self._terms.retry_seconds * random.uniform(1.0, 1.2))
            self.on_change(f"{self._terms.identity} leads")
            await self._lead(lead)
            self.on_change(f"{self._terms.identity} does not lead any more")
            await self._stand_back()

    async def _stand_back(self) -> None:
        """Give the lease back and wait, if we were told to step down."""
        if self._clock.since_boot < self._back_at:
            await self.release()
            await asyncio.sleep(self._back_at - self._clock.since_boot)

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> None:
        term = asyncio.ensure_future(lead())
        try:
            while self.is_leader and not term.done():
                await asyncio.wait({term}, timeout=min(self._terms.retry_seconds, self._left))
                if self.is_leader:  # or we have slept: the term ends before anything else is asked
                    await self._try()
        finally:
            term.cancel()
            await asyncio.wait({term})
        if not term.cancelled() and (problem := term.exception()) is not None:
            raise problem

    async def release(self) -> None:
        """Let the next one lead at once."""
        if self._left <= 0.0:
            return
        self._renewed = float("-inf")
        try:
            lease = await self._client.get(LEASE, self._terms.namespace, self._terms.name)
            if lease["spec"].get("holderIdentity") == self._terms.identity:
                spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_text(self._clock.now)}
                await self._client.replace({**lease, "spec": spec})
        except ClusterError as problem:
            self._report(f"the lease {self._terms.name} was not released: {problem}")

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _try(self) -> bool:
        """Take or renew the lease if that is possible; tell whether we have it."""
        begun, had_it = self._clock.since_boot, self.is_leader
        seconds = self._terms.renew_seconds / 2
        try:
            async with asyncio.timeout(min(seconds, self._left) if had_it else seconds):
                has_it = await self._take()
        except (ClusterError, TimeoutError) as problem:
            self._report(f"lease {self._terms.namespace}/{self._terms.name}: {str(problem) or 'no answer'}")
            return False
        if has_it and had_it and not self.is_leader:
            return False
        if has_it:
            self._renewed, self.holder = begun, self._terms.identity
        elif self.holder not in ("", self._terms.identity):
            self._renewed = float("-inf")  # whatever took it from us, two must not lead
        return has_it

    async def _take(self) -> bool:
        """Take the lease, or renew it: without a look at it first, if we wrote it last as far as we know.

        Where the server is slow, one request comes through in time more often than two.
        """
        terms, own, self._own = self._terms, self._own, None
        if own is not None and self.is_leader and await self._replace(own, own["spec"]):
            return True
        try:
            lease = await self._client.get(LEASE, terms.namespace, terms.name)
        except Missing:
            return await self._create()
        spec = lease.get("spec") or {}
        self._look(lease, spec)
        if self.holder not in ("", terms.identity) and not self._has_run_out(spec):
            return False
        return await self._replace(lease, spec)

    def _look(self, lease: Any, spec: Any) -> None:  # Any: parts of a JSON document
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = (version, self._clock.elapsed)
        self.holder = str(spec.get("holderIdentity") or "")

    def _has_run_out(self, spec: Any) -> bool:  # Any: a part of a JSON document
        return self._clock.elapsed >= self._seen[1] + float(spec.get("leaseDurationSeconds") or self._terms.lease_seconds)

    async def _create(self) -> bool:
        meta = {"name": self._terms.name, "namespace": self._terms.namespace}
        document = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": meta, "spec": self._spec(0)}
        try:
            self._own = await self._client.create(document)
        except Exists:
            return False
        return True

    async def _replace(self, lease: Any, spec: Any) -> bool:  # Any: parts of a JSON document
        is_mine = spec.get("holderIdentity") == self._terms.identity
        changes = int(spec.get("leaseTransitions") or 0)
        new = self._spec(changes if is_mine else changes + 1)
        if is_mine:
            new["acquireTime"] = spec.get("acquireTime") or new["acquireTime"]
        try:
            self._own = await self._client.replace({**lease, "apiVersion": LEASE.api_version, "kind": LEASE.kind, "spec": new})
        except (Conflict, Missing):
            return False
        return True

    def _spec(self, changes: int) -> dict[str, Any]:
        return {
            "holderIdentity": self._terms.identity, "leaseDurationSeconds": int(self._terms.lease_seconds),
            "acquireTime": micro_text(self._clock.now), "renewTime": micro_text(self._clock.now), "leaseTransitions": changes,
        }  # fmt: skip
