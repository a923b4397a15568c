"""Who may see what: asked for every request."""

from typing import Protocol

from phalanx.ui.scope import EVERYTHING, Scope
from phalanx.ui.seen import SeenCluster


class Access(Protocol):
    """Says what somebody may see."""

    @property
    def needs_token(self) -> bool:
        """Tell whether readers have to show a token."""
        ...

    async def scope(self, authorization: str, seen: SeenCluster | None) -> Scope:
        """Return what whoever shows this header may see of a cluster; raises where he may see nothing at all."""
        ...


class Open:
    """Lets everybody see everything: for loopback, where only this machine asks."""

    needs_token = False

    async def scope(self, authorization: str, seen: SeenCluster | None) -> Scope:
        """Return everything."""
        return EVERYTHING
