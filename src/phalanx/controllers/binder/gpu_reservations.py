"""Pods that reserve shared GPUs: one for each group, which keeps its device from everybody else and says which one it is.

The binder makes one when the first pod comes to a group. It goes when nobody is on the group any more, nor about to be. When it
is lost, whoever is on its GPU has to go too: the GPU is given to others.
"""

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from phalanx.controllers.binder.pending import Ask, open_asks
from phalanx.controllers.binder.preparation_step import READY, PreparationStep
from phalanx.controllers.binder.reservation_pod import DEVICE, HOME, VISIBLE, reservation, reservation_name
from phalanx.controllers.controller import Create, Delete, Key, RecordEvent, Result, View, Write
from phalanx.controllers.objects import annotations_of, inside, is_leaving, labels_of, meta_of
from phalanx.dialects.pods import GPU_GROUP, RESERVATION
from phalanx.model.kinds import BIND_REQUEST, POD, Document, Kind
from phalanx.model.task_status import ENDED

RESERVATION_GONE = "ReservationGone"


# --- before a pod is bound -----------------------------------------------------------------------------------------------


def reservation_part(view: View, ask: Ask, image: str) -> PreparationStep:
    """Return what is left to do until the shared GPUs of a pod are reserved."""
    return PreparationStep.of([_group_part(view, group, ask.node, image) for group in ask.request.gpu_groups])


def _group_part(view: View, group: str, node: str, image: str) -> PreparationStep:
    found = reservations_of(view, group)
    if not found:
        name = reservation_name(group)
        is_free = view.find(POD, HOME, name) is None
        return (
            PreparationStep([Create(reservation(group, node, image))])
            if is_free
            else PreparationStep(waits=f"reservation pod {name} is leaving")
        )
    pod, name = found[0], meta_of(found[0])["name"]
    if inside(pod, "spec", "nodeName") != node:
        return PreparationStep(waits=f"reservation pod {name} is on node {inside(pod, 'spec', 'nodeName')}, not on {node}")
    if DEVICE in annotations_of(pod):
        return READY
    return PreparationStep(waits=f"reservation pod {name} has not said which GPU it got", when_late=[_deleted(pod)])


def devices_for(view: View, groups: Iterable[str]) -> str:
    """Return the devices of groups that are reserved, as a container is told them."""
    return ",".join(annotations_of(reservations_of(view, group)[0])[DEVICE] for group in groups)


def reservations_of(view: View, group: str) -> list[Document]:
    """Return the pods that reserve a GPU for a group and stay, the oldest first."""
    return sorted((pod for pod in view.within(POD, HOME) if _is_held(pod) and group in groups_of(pod)), key=_age)


def _is_held(pod: Document) -> bool:
    return is_reservation(pod) and not is_leaving(pod) and inside(pod, "status", "phase") not in ENDED


def _age(pod: Document) -> tuple[str, str]:
    return meta_of(pod).get("creationTimestamp", ""), meta_of(pod)["name"]


def is_reservation(pod: Document) -> bool:
    """Tell whether a pod only keeps a GPU for others."""
    return labels_of(pod).get(RESERVATION[0]) == RESERVATION[1]


def groups_of(pod: Document) -> list[str]:
    """Return the groups that the labels of a pod name."""
    return [text for name, text in labels_of(pod).items() if name.partition("/")[0] == GPU_GROUP]


def _deleted(pod: Document) -> Delete:
    meta = meta_of(pod)
    return Delete(POD, meta["namespace"], meta["name"], meta.get("uid", ""))


# --- afterwards ----------------------------------------------------------------------------------------------------------

EVERYTHING = Key(HOME, "")
"""All groups are looked at together: who uses one is found among all pods, and those are many."""


class GpuReservations:
    """Removes the reservations that nobody uses, all but the oldest of each group, and pods whose reservation is gone."""

    name = "gpu-reservations"
    watches = (POD, BIND_REQUEST)
    brings_back = ()
    patience_seconds = 0.5

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Look when somebody comes to a group or leaves it."""
        groups = inside(document, "spec", "selectedGPUGroups") if kind is BIND_REQUEST else groups_of(document)
        return [EVERYTHING] if groups else []

    def reconcile(self, view: View, key: Key) -> Result:
        """Remove what is too much."""
        users = [pod for pod in view.within(POD) if _is_user(pod)]
        wanted = {group for ask in open_asks(view) for group in ask.request.gpu_groups}
        kept = _kept(view, wanted.union(*map(groups_of, users)))
        spare = [pod for pod in view.within(POD, HOME) if is_reservation(pod) and not is_leaving(pod) and not kept.has(pod)]
        lost = [write for pod in users if not is_leaving(pod) and kept.lacks(pod) for write in _sent_away(pod)]
        return Result([*lost, *map(_deleted, spare)])


class _Kept(NamedTuple):
    """The reservations that stay."""

    by_group: Mapping[str, Document]

    def has(self, pod: Document) -> bool:
        return any(pod is kept for kept in self.by_group.values())

    def lacks(self, user: Document) -> bool:
        """Tell whether a pod is on a GPU that is not reserved; by now its group may have another one."""
        groups, told = groups_of(user), annotations_of(user).get(VISIBLE, "")
        if not self.by_group.keys() >= set(groups):
            return True
        return bool(told) and set(told.split(",")) != {annotations_of(self.by_group[group]).get(DEVICE) for group in groups}


def _kept(view: View, groups: Container[str]) -> _Kept:
    """Return the oldest reservation of each of some groups."""
    held = sorted(filter(_is_held, view.within(POD, HOME)), key=_age, reverse=True)
    return _Kept({group: pod for pod in held for group in groups_of(pod) if group in groups})


def _is_user(pod: Document) -> bool:
    has_place = bool(inside(pod, "spec", "nodeName")) and inside(pod, "status", "phase") not in ENDED
    return has_place and bool(groups_of(pod)) and not is_reservation(pod)


def _sent_away(pod: Document) -> list[Write]:
    text = f"the reservation pod of GPU group {', '.join(groups_of(pod))} is gone, and with it the GPU; the pod is deleted"
    return [RecordEvent(pod, RESERVATION_GONE, text, is_warning=True), _deleted(pod)]
