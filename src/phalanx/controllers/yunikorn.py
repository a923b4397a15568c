"""The end of a YuniKorn application's patience: after its timeout it goes on as single pods, or fails, as its style says.

The time counts from the creation of the originator. (In YuniKorn it counts from the first placeholder that is allocated: an
application for which nothing is free never times out.) An application that started once is left alone. That one gave up being a
gang stands in an annotation of its originator, which the dialect reads; pods of a failed one are Failed.
"""

from collections.abc import Iterable, Sequence

from phalanx.controllers.base import NOTHING, Key, Patch, Result, Tell, View
from phalanx.controllers.members import gang_key, has_started, members, waits
from phalanx.controllers.parts import annotations_of, key_of
from phalanx.dialects.links import YUNIKORN
from phalanx.dialects.parts import seconds
from phalanx.dialects.yunikorn import DEGRADED, GANG_DEGRADED, TASK_GROUPS, TIMED_OUT, Reservation, degraded_text, reservation
from phalanx.model.kinds import POD, Document, Kind
from phalanx.model.moment import moment_text


class YuniKornController:
    """Watches how long applications wait to be whole."""

    name = "yunikorn"
    watches: Sequence[Kind] = (POD,)
    brings_back: Sequence[Kind] = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Look at the application of a pod."""
        key = gang_key(document, YUNIKORN)
        return [] if key is None else [key]

    def reconcile(self, view: View, key: Key) -> Result:
        """Let time run out for an application that has not started."""
        pods = members(view, key, (YUNIKORN,))
        originator = next((pod for pod in pods if TASK_GROUPS in annotations_of(pod)), None)
        if originator is None or DEGRADED in annotations_of(originator) or any(map(has_started, pods)):
            return NOTHING
        policy = reservation(annotations_of(originator))
        deadline = seconds(originator["metadata"].get("creationTimestamp")) + policy.timeout_seconds
        if view.now < deadline:
            return Result(again=deadline)
        return _failed(originator, pods, policy) if policy.is_hard else _degraded(originator, policy, deadline)


def _degraded(originator: Document, policy: Reservation, moment: float) -> Result:
    place = key_of(originator)
    since = {"metadata": {"annotations": {DEGRADED: moment_text(int(moment))}}}
    event = Tell(originator, GANG_DEGRADED, degraded_text(policy), is_warning=True, is_expected=True)
    return Result([Patch(POD, place.namespace, place.name, since), event])


def _failed(originator: Document, pods: Sequence[Document], policy: Reservation) -> Result:
    """Let every waiting pod fail; those that somebody makes later, too: the application is over."""
    waiting = [pod for pod in pods if waits(pod)]
    if not waiting:
        return NOTHING
    text = f"there was no room for the whole application within {policy.timeout_seconds:g} s, and its style is Hard"
    status = {"status": {"phase": "Failed", "reason": TIMED_OUT, "message": text}}
    patches = [Patch(POD, key_of(pod).namespace, key_of(pod).name, status, is_status=True) for pod in waiting]
    return Result([*patches, Tell(originator, TIMED_OUT, text, is_warning=True, is_expected=True)])
