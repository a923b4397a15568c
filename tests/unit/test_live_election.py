"""Who leads: electors on one embedded cluster."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest

from phalanx.errors import ClusterError, Forbidden, ServerError
from phalanx.live.clock import LoopClock
from phalanx.live.election import LEASE, Election, Terms
from phalanx.store.kube.client import Client
from tests.support.embedded_server import Server, going_on, until

TERMS = Terms("phalanx", "default", "a", lease_seconds=0.3, renew_seconds=0.2, retry_seconds=0.02)


class Elector:
    """One who takes part, and what he does while he leads."""

    def __init__(self, client: Client, identity: str, terms: Terms = TERMS, clock: LoopClock | None = None) -> None:
        self.reports: list[str] = []
        self.election = Election(client, replace(terms, identity=identity), clock=clock, report=self.reports.append)
        self.terms_led = 0
        self.is_leading = False

    async def lead(self) -> None:
        self.terms_led, self.is_leading = self.terms_led + 1, True
        try:
            await asyncio.Event().wait()
        finally:
            self.is_leading = False

    async def run(self) -> None:
        await self.election.run(self.lead)


def run(question: Callable[[Server, Client], Awaitable[None]]) -> None:
    async def asked() -> None:
        server = Server()
        async with server.opened() as client:
            await question(server, client)

    asyncio.run(asked())


def lease(server: Server) -> Any:  # Any: a part of a JSON document
    return server.store.get(LEASE, "default", "phalanx")["spec"]


def test_of_two_one_leads_and_says_so_in_the_lease() -> None:
    async def question(server: Server, client: Client) -> None:
        a, b = Elector(client, "a"), Elector(client, "b")
        async with going_on(a.run(), b.run()):
            await until(lambda: a.is_leading or b.is_leading)
            leader, other = (a, b) if a.is_leading else (b, a)
            renewed = lease(server)["renewTime"]
            await until(lambda: other.election.holder == leader.election.holder and lease(server)["renewTime"] != renewed)
            assert (other.is_leading, other.election.is_leader, leader.election.is_leader) == (False, False, True)
            assert (lease(server)["holderIdentity"], lease(server)["leaseTransitions"]) == (leader.election.holder, 0)
            assert leader.reports == [f"{leader.election.holder} leads"]

    run(question)


def test_the_moment_of_taking_stays_and_that_of_renewing_moves() -> None:
    async def question(server: Server, client: Client) -> None:
        a = Elector(client, "a")
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
            first = lease(server)
            await until(lambda: lease(server)["renewTime"] > first["renewTime"])
            assert lease(server)["acquireTime"] == first["acquireTime"]

    run(question)


def test_a_renewal_takes_one_request() -> None:
    async def question(server: Server, client: Client) -> None:
        def written() -> int:
            return int(server.store.get(LEASE, "default", "phalanx")["metadata"]["resourceVersion"])

        a = Elector(client, "a")
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
            requests, version = server.requests, written()
            await until(lambda: server.requests >= requests + 8)
            assert written() - version >= server.requests - requests - 1
            assert a.terms_led == 1

    run(question)


@pytest.mark.parametrize("is_deleted", [False, True], ids=["touched", "deleted"])
def test_a_lease_that_somebody_has_touched_is_looked_at_and_renewed(*, is_deleted: bool) -> None:
    async def question(server: Server, client: Client) -> None:
        a = Elector(client, "a")
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
            if is_deleted:
                server.store.delete(LEASE, "default", "phalanx")
                await until(lambda: server.store.find(LEASE, "default", "phalanx") is not None)
            else:
                server.store.patch(LEASE, "default", "phalanx", {"metadata": {"labels": {"x": "y"}}})
            renewed = lease(server)["renewTime"]
            await until(lambda: lease(server)["renewTime"] > renewed)
            assert (a.terms_led, lease(server)["holderIdentity"]) == (1, "a")
            found = server.store.get(LEASE, "default", "phalanx")["metadata"].get("labels")
            assert found == (None if is_deleted else {"x": "y"})

    run(question)


def test_who_is_silent_is_followed_by_another_after_the_lease_and_not_before() -> None:
    async def question(server: Server, client: Client) -> None:
        a, b = Elector(client, "a"), Elector(client, "b")
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
        silent_since = asyncio.get_running_loop().time()
        async with going_on(b.run()):
            await until(lambda: b.is_leading)
            assert asyncio.get_running_loop().time() - silent_since >= 0.25
            assert (lease(server)["holderIdentity"], lease(server)["leaseTransitions"]) == ("b", 1)

    run(question)


def test_who_gives_the_lease_back_is_followed_at_once() -> None:
    async def question(server: Server, client: Client) -> None:
        terms = replace(TERMS, lease_seconds=30.0, renew_seconds=20.0)
        a, b = Elector(client, "a", terms), Elector(client, "b", terms)
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
        async with going_on(b.run()):
            await until(lambda: b.election.holder == "a")
            await a.election.release()
            assert (a.election.is_leader, lease(server)["holderIdentity"]) == (False, "")
            await until(lambda: b.is_leading)

    run(question)


def test_only_the_leader_can_give_the_lease_back() -> None:
    async def question(server: Server, client: Client) -> None:
        a, b = Elector(client, "a"), Elector(client, "b")
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
            await b.election.release()
            assert lease(server)["holderIdentity"] == "a"

    run(question)


def test_a_lease_that_cannot_be_given_back_is_told() -> None:
    async def question(server: Server, client: Client) -> None:
        a = Elector(client, "a")
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
        server.refusals.append(ServerError("etcd is away"))
        await a.election.release()
        assert a.reports[-1] == "the lease phalanx was not released: etcd is away"

    run(question)


def test_who_cannot_renew_stops_leading_before_anybody_else_begins() -> None:
    async def question(server: Server, client: Client) -> None:
        a = Elector(client, "a")
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
            begun = asyncio.get_running_loop().time()
            server.refusals.extend([ServerError("etcd is away")] * 1000)
            await until(lambda: not a.is_leading)
            assert asyncio.get_running_loop().time() - begun < TERMS.lease_seconds
            assert "lease default/phalanx: etcd is away" in a.reports
            server.refusals.clear()
            await until(lambda: a.is_leading)
            assert a.terms_led == 2

    run(question)


def test_who_sees_another_holder_stops_at_once() -> None:
    async def question(server: Server, client: Client) -> None:
        a = Elector(client, "a", replace(TERMS, lease_seconds=30.0, renew_seconds=20.0))
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
            server.store.patch(LEASE, "default", "phalanx", {"spec": {"holderIdentity": "b"}})
            await until(lambda: a.reports[-1] == "a does not lead any more")
            assert (a.is_leading, a.election.is_leader, a.election.holder) == (False, False, "b")

    run(question)


@pytest.mark.parametrize("problem", [Forbidden("leases is forbidden"), ServerError("etcd is away")])
def test_what_goes_wrong_is_told_and_tried_again(problem: ClusterError) -> None:
    async def question(server: Server, client: Client) -> None:
        server.refusals.append(problem)
        a = Elector(client, "a")
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
            assert a.reports[0] == f"lease default/phalanx: {problem}"

    run(question)


def test_what_ends_a_term_ends_the_election() -> None:
    async def question(server: Server, client: Client) -> None:
        async def lead() -> None:
            raise RuntimeError("broken")

        election = Election(client, TERMS, report=lambda text: None)
        with pytest.raises(RuntimeError, match="broken"):
            await election.run(lead)

    run(question)


def test_who_is_told_to_stop_stops_whatever_he_is_doing() -> None:
    async def question(server: Server, client: Client) -> None:
        for steps in range(100):
            election = Election(client, replace(TERMS, retry_seconds=0.0), report=lambda text: None)
            task = asyncio.create_task(election.run(asyncio.Event().wait))  # type: ignore[arg-type]  # what it returns is not used
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            _, going_on_still = await asyncio.wait({task}, timeout=1.0)
            assert not going_on_still, f"cancelled after {steps} steps"

    run(question)


def test_who_steps_down_lets_another_one_lead_and_stands_back() -> None:
    async def question(server: Server, client: Client) -> None:
        a, b = Elector(client, "a"), Elector(client, "b")
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
            a.election.step_down("nothing works")
            assert not a.election.is_leader
            await until(lambda: not a.is_leading and lease(server)["holderIdentity"] == "")
            assert "a gives up the lease, and stands back for 0.6 s: nothing works" in a.reports
            async with going_on(b.run()):
                await until(lambda: b.is_leading)
                assert a.terms_led == 1

    run(question)


def test_who_steps_down_and_is_alone_leads_again_later() -> None:
    async def question(server: Server, client: Client) -> None:
        a = Elector(client, "a")
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
            a.election.step_down("nothing works")
            begun = asyncio.get_running_loop().time()
            await until(lambda: a.terms_led == 2)
            assert asyncio.get_running_loop().time() - begun >= 2 * TERMS.lease_seconds

    run(question)


def test_a_term_whose_lease_ran_out_is_over_even_if_it_is_renewed_a_moment_later() -> None:
    async def question(server: Server, client: Client) -> None:
        asleep = [0.0]
        a = Elector(client, "a", clock=LoopClock(boot=lambda: monotonic() + asleep[0]))
        async with going_on(a.run()):
            await until(lambda: a.is_leading)
            asleep[0] = TERMS.renew_seconds  # no other clock has noticed
            assert not a.election.is_leader
            await until(lambda: a.terms_led == 2)
            assert a.reports == ["a leads", "a does not lead any more", "a leads"]

    run(question)
