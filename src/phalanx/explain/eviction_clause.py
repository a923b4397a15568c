"""Why nobody is evicted for a gang, as a part of the sentence that says why it waits.

The actions that evict leave a verdict with one cause on the gang. It is told where a gang could have hoped for evictions: to a gang
of the lowest priority in a single queue nobody has to say that nobody leaves for it.
"""

from collections.abc import Iterable, Iterator

from phalanx.explain.gang_status import GangStatus, gang_status
from phalanx.session.spared import Spared
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import Verdict

NO_HOPE = ("NobodyRuns", Spared.OTHER_QUEUE.code, Spared.SAME_QUEUE.code)
"""Causes that say that there was nobody to hope for."""
OF_ALL_NODES = ("NoNodeSuits",)
"""Causes that the rest of the sentence tells in more detail."""


def eviction_clause(gang: GangState) -> Iterator[str]:
    """Say which actions found no victims, and the cause of each; nothing where the gang could not hope for any."""
    told = {verdict.message for verdict in gang.verdicts}
    hoped = [verdict for verdict in gang.no_victims if could_hope(gang, verdict) and verdict.message not in told]
    if hoped and gang_status(gang) is GangStatus.WAITS:
        yield no_victims(hoped)


def no_victims(verdicts: Iterable[Verdict]) -> str:
    """Name the actions with the cause of each; an equal cause is told once: ``no victims (preempt: a/b is not preemptable)``."""
    actions: dict[str, list[str]] = {}
    for verdict in verdicts:
        cause = "" if verdict.numbers.get("cause") in NO_HOPE else verdict.message
        actions.setdefault(cause, []).append(verdict.plugin)
    parts = [f"{', '.join(dict.fromkeys(names))}{f': {cause}' if cause else ''}" for cause, names in actions.items()]
    return f"no victims ({'; '.join(parts)})"


def could_hope(gang: GangState, verdict: Verdict) -> bool:
    """Tell whether a gang could expect an action to evict for it: it has more than the default priority, or others are near."""
    cause, is_urgent = verdict.numbers["cause"], gang.gang.priority > 0
    if cause in NO_HOPE or not verdict.numbers["in_reach"]:
        return False
    return is_urgent or cause not in (Spared.NOT_LOWER.code, *OF_ALL_NODES)
