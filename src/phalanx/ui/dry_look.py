"""Looks at a cluster that nobody of ours schedules: a session whose decisions are not carried out says why gangs wait."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import thread_time

from phalanx.config.policies import policy_of_gates
from phalanx.model.kinds import Document
from phalanx.scheduling.gates import GatedGangs, GatePlanner
from phalanx.scheduling.shards import decide
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.state.snapshot import Snapshot
from phalanx.ui.gang_facts import KnownFacts
from phalanx.ui.gated import rows_behind
from phalanx.ui.kept_sessions import KeptSessions
from phalanx.ui.seen import DrySession, SeenCluster, seen_by_session

Connect = Callable[[Policy], Profile]
"""Returns who decides by a policy."""


@dataclass(frozen=True, slots=True)
class DryCluster:
    """What a look is taken at."""

    snapshot: Snapshot
    refused: Mapping[str, str] = field(default_factory=dict)
    """Groups that cannot be read, each with what is wrong."""
    problems: Sequence[str] = ()


class DryLooks:
    """Takes looks at one cluster by the rules of one profile."""

    def __init__(self, profile: Profile, connect: Connect, everything: Callable[[], Iterable[Document]]) -> None:
        """`everything` returns all objects; it is called when our gate holds back the first pod."""
        self.profile, self._known = profile, KnownFacts()
        self.planner = GatePlanner(connect(policy_of_gates(profile.policy)), everything)
        """Is told of every change by whoever knows of it."""
        self.sessions = KeptSessions()

    async def look(self, version: str, cluster: DryCluster) -> SeenCluster:
        """Hold a session, beside everything else that this process does."""
        gated = self.planner.look(cluster.snapshot.now)
        return await asyncio.to_thread(self._look, version, cluster, gated)

    def _look(self, version: str, cluster: DryCluster, gated: GatedGangs | None) -> SeenCluster:
        begun = thread_time()
        parts = decide(cluster.snapshot, self.profile)
        self.sessions.keep(cluster.snapshot, parts, self.profile)
        session = DrySession(cluster.snapshot, parts, rows_behind(gated), cluster.refused, cluster.problems)
        seen = seen_by_session(version, session, self._known)
        return replace(seen, took=thread_time() - begun)
