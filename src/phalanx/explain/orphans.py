"""Pods that wait for a group that nobody made. kube-scheduler says nothing about them; here they are told what to do."""

from phalanx.core.snapshot import Snapshot
from phalanx.explain.phrases import counted
from phalanx.model.status import Status
from phalanx.model.task import GangKey

SPEAKS_UP = ("native",)
"""Dialects in which a pod may name a group before there is one."""


def missing_groups(snapshot: Snapshot) -> dict[GangKey, str]:
    """Return the groups that waiting pods name and that do not exist, each with a sentence."""
    found = {}
    for key, members in sorted(snapshot.members.items()):
        waiting = [task for task in members.values() if task.status is Status.PENDING and task.dialect in SPEAKS_UP]
        if waiting and key not in snapshot.gangs:
            verb = "waits" if len(waiting) == 1 else "wait"
            name = key.partition("@")[0]
            found[key] = f"{counted(len(waiting), 'pod')} {verb} for PodGroup {name} of scheduling.k8s.io, which does not exist; create it"
    return found
