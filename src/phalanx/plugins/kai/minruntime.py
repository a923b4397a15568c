"""A job that has just started is left in peace for a while; the rules are in `kai/min_runtimes.py`."""

from phalanx.kai.min_runtimes import MinRuntimes
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session


class MinRuntimePlugin:
    """Protects young jobs; of an elastic one only the core."""

    name = "minruntime"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the times that hold for queues without their own, and where to look for them."""
        settings = Arguments(self.name, policy.arguments)
        keys = {"reclaim": "defaultReclaimMinRuntime", "preempt": "defaultPreemptMinRuntime"}
        self._defaults = {purpose: settings.seconds(key, "0s") or 0.0 for purpose, key in keys.items()}
        self._looks_from_fork = settings.choice("reclaimResolveMethod", "lca", ("lca", "queue")) == "lca"
        settings.done()

    def open(self, session: Session) -> None:
        """Leave the rules for the actions."""
        session.write_state(MinRuntimes(session, self._defaults, looks_from_fork=self._looks_from_fork))
