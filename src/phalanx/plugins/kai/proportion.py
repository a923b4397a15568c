"""Fair shares of a tree of queues; how they are divided is in `kai/fair_shares.py`."""

from phalanx.kai.fair_shares import FairShares
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation


class KaiProportionPlugin:
    """Keeps what queues have and may have; answers who is next and what is too much."""

    name = "proportion"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings."""
        settings = Arguments(self.name, policy.arguments)
        self._k_value = settings.at_least("kValue", 1.0, 0.0)
        self._multiplier = settings.at_least("relcaimerSaturationMultiplier", 1.0, 1.0)
        settings.done()

    def open(self, session: Session) -> None:
        """Divide the cluster, and leave the shares for the actions."""
        self._shares = FairShares(session, k_value=self._k_value, multiplier=self._multiplier)
        session.write_state(self._shares)
        session.decisions.queues |= self._shares.figures()

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Follow what queues hold."""
        self._shares.follow(operation, undone)
