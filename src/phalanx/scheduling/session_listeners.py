"""Who hears of sessions: how each was decided, how long it took, and what went wrong."""

from collections.abc import Callable

from phalanx.scheduling.sessions import HeldSession
from phalanx.scheduling.timing import Times
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot


class SessionListeners:
    """Lists of those who are called; whoever wants to hear adds itself."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self.held: list[Callable[[HeldSession], None]] = []
        """With every session as it was decided; whoever listens must not change it."""
        self.decided: list[Callable[[Snapshot, Decisions], None]] = []
        """With every session, before it is carried out; with several shards once, with all they decided together."""
        self.timed: list[Callable[[float, float, Times], None]] = []
        """With how long every session took, its snapshot, and its parts."""
        self.failed: list[Callable[[Exception], None]] = []
        """With every new way in which a session failed."""
        self.despaired: Callable[[str], None] = lambda reason: None
        """When sessions fail one after the other."""
