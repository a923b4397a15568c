"""Pods that wait for a gang that nobody describes. kube-scheduler says nothing about them; here they are told what to do."""

from phalanx.explain.reason_text import counted
from phalanx.model.status import Status
from phalanx.model.task import GangKey
from phalanx.state.snapshot import Snapshot

_WHAT_TO_DO = {
    "native": "for PodGroup {key} of scheduling.k8s.io, which does not exist; create it",
    "gates": "in gang {key}, and none says how large it is; write the annotation 'phalanx.dev/min-member' on them",
}
"""By dialect in which a pod may name a gang before anybody says what it is."""


def missing_groups(snapshot: Snapshot) -> dict[GangKey, str]:
    """Return the gangs that waiting pods name and that nobody describes, each with a sentence."""
    found = {}
    for key, members in sorted(snapshot.members.items()):
        waiting = [task for task in members.values() if task.status is Status.PENDING and task.dialect in _WHAT_TO_DO]
        if waiting and key not in snapshot.gangs:
            verb = "waits" if len(waiting) == 1 else "wait"
            rest = _WHAT_TO_DO[waiting[0].dialect].format(key=key.partition("@")[0])
            found[key] = f"{counted(len(waiting), 'pod')} {verb} {rest}"
    return found
