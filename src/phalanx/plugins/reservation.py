"""The first gangs in line that find no room have a reserved start, and others go ahead only where they do not delay it.

The plugin says how; `allocate` plans and keeps the room (`actions/reservations.py`).
"""

from phalanx.errors import ConfigError
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.reservation import ReservationSettings
from phalanx.session.session import Session

DEPTH_BY_VARIANT = {"easy": 1, "conservative": 8, "starved": 1}


class ReservationPlugin:
    """Turns reservations and backfill on."""

    name = "reservation"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings."""
        settings = Arguments(self.name, policy.arguments)
        variant = settings.choice("variant", "easy", tuple(DEPTH_BY_VARIANT))
        depth = settings.integer("depth", DEPTH_BY_VARIANT[variant])
        starvation = settings.grace("starvation", "12h")
        drain = settings.seconds("drainFor", "10m") or 0.0
        is_predicted = settings.switch("predictRunTimes", False)
        settings.done()
        if depth < 1:
            raise ConfigError(f"plugin {self.name!r}, argument 'depth': {depth} is not possible; write 1 or more")
        self._settings = ReservationSettings(depth, starvation, drain, is_predicted, for_starved_alone=variant == "starved")

    def open(self, session: Session) -> None:
        """Leave the settings for the actions."""
        session.write_state(self._settings)
