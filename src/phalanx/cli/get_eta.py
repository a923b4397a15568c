"""The column ETA of `phalanx get gangs -o wide`: a few simulations in a short time, and never a reason to fail."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from phalanx.cli.eta_simulations import EtaSettings, SimulationPlan, eta_cluster, simulated
from phalanx.cli.session_input import cluster_for, input_of
from phalanx.config.policies import DEFAULT_PROFILE, policy_of_profile
from phalanx.errors import PhalanxError
from phalanx.explain.gang_status import GangStatus
from phalanx.model.duration import DAY_SECONDS
from phalanx.sim.eta import Estimate, estimates
from phalanx.sim.metrics import short_time
from phalanx.store.input_files import take_in
from phalanx.store.kube.client import Client
from phalanx.store.kube.cluster_objects import list_cluster
from phalanx.store.listed_cluster import ListedCluster
from phalanx.web.columns import Document

SEEDS, SECONDS, HORIZON = 5, 2.0, 7 * DAY_SECONDS
LIST_SECONDS = 5.0
"""For a list nobody waits longer than that."""
MOST_OBJECTS = 10_000
"""To load more takes longer than anybody waits for a list; `phalanx eta` does it."""
NOTHING, UNKNOWN = "-", "?"


async def with_eta(client: Client, gangs: Sequence[Document]) -> list[dict[str, Any]]:
    """Return gangs with the time until they are expected to start, as `eta`; "-" for those that have, "?" if nobody knows."""
    try:
        async with asyncio.timeout(LIST_SECONDS):
            listed = await list_cluster(client)
        texts = _texts(listed) if len(listed.documents) <= MOST_OBJECTS else {}
    except (PhalanxError, TimeoutError):  # the list is worth showing without it: not everybody may read nodes
        texts = {}
    return [{**gang, "eta": texts.get(_key(gang), UNKNOWN) if _is_waiting(gang) else NOTHING} for gang in gangs]


def _is_waiting(gang: Document) -> bool:
    return not GangStatus(gang["status"]).has_minimum


def _key(gang: Document) -> str:
    return f"{gang['metadata']['namespace']}/{gang['metadata']['name']}"


def _texts(listed: ListedCluster) -> dict[str, str]:
    end = time.monotonic() + SECONDS
    policy = policy_of_profile(DEFAULT_PROFILE)
    intake = take_in((), cluster_for(policy, ()), goes_on=True, live=listed)
    known = EtaSettings(HORIZON, has_arrivals=False)  # they do not change what is shown
    given = eta_cluster(input_of(intake, policy, (), listed.now), known).input
    found = simulated(given, SimulationPlan(SEEDS, 0), end, divides=False)
    is_whole = found.runs[0].is_whole
    return {
        item.gang.partition("@")[0]: _text(item, is_whole=is_whole) for item in estimates(given.question, found.runs, found.hopeful)
    }


def _text(found: Estimate, *, is_whole: bool) -> str:
    if found.p50 is not None:
        return short_time(round(found.p50))
    return UNKNOWN if found.unknown or not is_whole else f">{short_time(HORIZON)}"
