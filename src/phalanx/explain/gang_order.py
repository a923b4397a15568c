"""What puts a gang before another one of its queue, as a phrase: ``priority 10 < 100 (priority)``."""

from phalanx.model.moment import moment_text
from phalanx.session.trace_events import GangAhead

PRIORITIES = (("priority", 0), ("coscheduling", 1))
MOMENTS = {
    ("", 0): "it was created earlier",
    ("coscheduling", 2): "it came or failed earlier",
    ("sla", 1): "its limit ends earlier",
}
PHRASES = {
    ("gang", 0): "it does not have its minimum yet",
    ("elastic", 0): "it has less beyond its minimum",
    ("tdm", 0): "it is not preemptable",
    ("sla", 0): "it has a limit for its waiting time",
    ("coscheduling", 0): "it holds places already",
    ("coscheduling", 3): "its name comes first",
}
"""By the plugin and the part of its key that decides."""


def gang_rule(ahead: GangAhead) -> str:
    """Say which plugin puts a gang ahead, and with which numbers; without a plugin the older gang comes first."""
    rule, by = (ahead.plugin, ahead.part), f" ({ahead.plugin})" if ahead.plugin else ""
    return f"{_phrase(rule, ahead)}{by}"


def _phrase(rule: tuple[str, int], ahead: GangAhead) -> str:
    its, mine = ahead.its, ahead.mine
    if rule in PHRASES:
        return PHRASES[rule]
    if not isinstance(its, int | float) or not isinstance(mine, int | float):
        return f"{mine} comes after {its}"
    if rule in PRIORITIES:
        return f"priority {-mine:g} < {-its:g}"
    if rule in MOMENTS:
        return f"{MOMENTS[rule]} ({moment_text(its)} < {moment_text(mine)})" if its != mine else "its name comes first"
    return f"{'share ' if ahead.plugin == 'drf' else ''}{mine:.3g} > {its:.3g}"
