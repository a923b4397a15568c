"""Open sessions, for tests that look inside one."""

from collections.abc import Iterable
from typing import Any

from phalanx.config.builtin import CATALOGUE
from phalanx.model.task import GangKey
from phalanx.session.cycle import Catalogue, open_session
from phalanx.session.policy import Policy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState
from phalanx.testing import build
from phalanx.testing.build import Document

BARE = build.policy([["gang", "predicates"]], "allocate")


def session_of(*parts: Document | Iterable[Document], policy: Policy = BARE, catalogue: Catalogue = CATALOGUE) -> Session:
    """Return a session on a cluster of these objects."""
    cluster = build.Cluster(policy).submit(*parts)
    return open_session(cluster.objects.snapshot(0.0), policy, catalogue)


def two_nodes(**offers: int) -> list[Document]:
    """Return ``n0`` and ``n1``, with 4 CPUs unless said otherwise."""
    offered: dict[str, Any] = {"cpu": 4, **offers}
    return [build.node("n0", **offered), build.node("n1", **offered)]


def gang_in(session: Session, name: str = "train") -> GangState:
    """Return a gang of the namespace default."""
    found = session.gang(GangKey(f"default/{name}"))
    assert found is not None
    return found
