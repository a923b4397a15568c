"""The profile phalanx with reserved starts, as the example of them has it."""

from pathlib import Path

from phalanx.config.policies import policy_of_text
from phalanx.session.policy import Policy

CONFIG = Path(__file__).resolve().parents[2] / "examples" / "reserved-start" / "volcano-scheduler.conf"


def reserving_policy() -> Policy:
    """Return the policy."""
    return policy_of_text(CONFIG.read_bytes(), str(CONFIG))
