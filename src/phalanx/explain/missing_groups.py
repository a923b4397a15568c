"""Gangs that waiting pods name and that nobody describes."""

from phalanx.dialects.traits import TRAITS
from phalanx.explain.reason_text import counted
from phalanx.model.kinds import GROUP_BY_DIALECT
from phalanx.model.task import GangKey, Task
from phalanx.model.task_status import Status
from phalanx.state.snapshot import Snapshot


def missing_groups(snapshot: Snapshot, *others: Snapshot) -> dict[GangKey, str]:
    """Return the gangs that waiting pods name and that nobody describes, each with a sentence that says what to do.

    `others` are what other schedulers see of the same cluster: they may know a gang.

    kube-scheduler leaves such pods pending without a word.
    """
    found, ours = {}, snapshot.surroundings.schedulers
    known = {key for seen in (snapshot, *others) for key in seen.gangs}
    for key, members in sorted(snapshot.members.items()):
        waiting = [task for task in members.values() if task.status is Status.PENDING and _how_to_describe(task, ours)]
        if waiting and key not in known:
            verb = "waits" if len(waiting) == 1 else "wait"
            rest = _how_to_describe(waiting[0], ours).format(key=waiting[0].group)
            found[key] = f"{counted(len(waiting), 'pod')} {verb} {rest}"
    return found


def _how_to_describe(task: Task, ours: frozenset[str]) -> str:
    """Return what to do about the gang of a task; empty if another scheduler's pods may name a group that only it knows."""
    own = TRAITS[task.dialect].how_to_describe if task.dialect in TRAITS else ""
    kind = GROUP_BY_DIALECT.get(task.dialect)
    if own or kind is None or not ours or task.is_foreign:
        return own
    return f"for PodGroup {{key}} of {kind.group}, which does not exist; create it"
