"""Leaves what the cluster itself needs alone. Its say is about evictions; without an evicting action it has none."""

from phalanx.core.policy import PluginPolicy
from phalanx.core.settings import Arguments


class ConformancePlugin:
    """Protects system tasks."""

    name = "conformance"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, policy.arguments).done()
