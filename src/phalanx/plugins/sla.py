"""Waiting has a limit: a gang that waited longer than agreed is admitted and keeps its pipelined places."""

from phalanx.model.duration import seconds_of
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import ABSTAINED, PERMITTED, Vote

WAITING_TIME = "sla-waiting-time"
ANNOTATIONS = (f"volcano.sh/{WAITING_TIME}", WAITING_TIME)


class SlaPlugin:
    """Orders gangs by when their time is up, and lets overdue ones in."""

    name = "sla"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the waiting time that holds for gangs without one of their own; none by default."""
        settings = Arguments(self.name, policy.arguments)
        self._default = settings.seconds(WAITING_TIME, None)
        settings.done()

    def gang_order(self, session: Session, gang: GangState) -> tuple[int, float]:
        """Gangs with a limit first, the most urgent of them first."""
        deadline = self._deadline(gang)
        return (1, 0.0) if deadline is None else (0, deadline)

    def gang_enqueueable(self, session: Session, gang: GangState) -> Vote:
        """Vote for gangs whose time is up."""
        deadline = self._deadline(gang)
        if deadline is None or session.now >= deadline:
            return ABSTAINED if deadline is None else PERMITTED
        session.decisions.may_change_with_time()
        return ABSTAINED

    gang_pipelined = gang_enqueueable

    def _deadline(self, gang: GangState) -> float | None:
        own = next((seconds_of(gang.gang.annotations[key]) for key in ANNOTATIONS if key in gang.gang.annotations), None)
        waiting = self._default if own is None else own
        return None if waiting is None else gang.gang.created + waiting
