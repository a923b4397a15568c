"""YuniKorn applications: placeholders until all pods are there, and timeouts.

An application whose pods are not all there gets placeholders for the others, a little after its last pod was created. If it does
not start before its timeout, its pods are scheduled one by one, or fail, as its style says; if it started and some pods were not
created within the timeout, their placeholders are deleted. The first timeout counts from the creation of the originator (in
YuniKorn from the first placeholder that is allocated: an application for which nothing is free never times out), the second from
the start. That an application started, or is no gang any more, is an annotation of its originator, which the dialect reads; pods
of a failed one are Failed.
"""

from collections.abc import Iterable, Sequence

from phalanx.controllers.controller import NOTHING, Key, Patch, RecordEvent, Result, View
from phalanx.controllers.gang_pods import gang_key, has_started, members, waits
from phalanx.controllers.objects import annotations_of, inside, is_leaving, key_of
from phalanx.controllers.placeholders import (
    IMAGE,
    Groups,
    YuniKornApplication,
    application,
    create_missing,
    is_present,
    needs_no_placeholder,
    remove_placeholders,
    remove_surplus,
    replace_placeholders,
)
from phalanx.dialects.field_values import seconds
from phalanx.dialects.group_references import YUNIKORN
from phalanx.dialects.yunikorn import (
    DEGRADED,
    GANG_DEGRADED,
    RELEASED,
    STARTED,
    TIMED_OUT,
    ReservationPolicy,
    degraded_text,
    reservation,
    task_groups,
)
from phalanx.errors import SnapshotError
from phalanx.model.kinds import POD, Document, Kind
from phalanx.model.moment import moment_of, moment_text
from phalanx.model.task_status import ENDED

ARRIVAL_SECONDS = 2.0
"""After the last pod of an application has come; a little later an event on the waiting pods would say that others are missing."""


class YuniKornController:
    """Creates and deletes placeholders, and enforces the timeouts of applications."""

    name = "yunikorn"
    watches: Sequence[Kind] = (POD,)
    brings_back: Sequence[Kind] = (POD,)

    def __init__(self, schedulers: frozenset[str] = frozenset(), image: str = IMAGE) -> None:
        """Leave pods of other schedulers than these, if any, to them; placeholders run `image`."""
        self._schedulers, self._image = schedulers, image

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the application of a pod."""
        key = gang_key(document, YUNIKORN)
        return [] if key is None else [key]

    def reconcile(self, view: View, key: Key) -> Result:
        """Take the application one step further, from the state that its pods show."""
        app = application(key, filter(self._is_ours, members(view, key, (YUNIKORN,))))
        originator = app.originator
        if originator is None or _is_over(originator) or DEGRADED in annotations_of(originator):
            return Result(remove_placeholders(app.placeholders))
        if STARTED in annotations_of(originator):
            return _go_on(view, app, originator)
        if any(map(has_started, app.real)):
            return _start(view, originator) if app.placeholders and has_started(originator) else NOTHING
        return self._wait(view, app, originator)

    def _is_ours(self, pod: Document) -> bool:
        return not self._schedulers or pod["spec"].get("schedulerName") in self._schedulers

    def _wait(self, view: View, app: YuniKornApplication, originator: Document) -> Result:
        """Create placeholders for the missing pods, and end the application when its timeout has passed."""
        policy = reservation(annotations_of(originator))
        deadline = _created(originator) + policy.timeout_seconds
        if view.now >= deadline:
            ended = _failed(app, originator, policy) if policy.is_hard else _degraded(originator, policy, deadline)
            return Result([*remove_placeholders(app.placeholders), *ended.writes])
        groups, complete_at = _groups(originator), max(map(_created, app.real)) + ARRIVAL_SECONDS
        writes = remove_surplus(app, groups, is_present)
        if view.now < complete_at:
            return Result(writes, again=min(complete_at, deadline))
        return Result([*writes, *create_missing(app, originator, groups, self._image)], again=deadline)


def _is_over(originator: Document) -> bool:
    """Tell whether an application has run and ended, or goes."""
    return is_leaving(originator) or (has_started(originator) and inside(originator, "status", "phase") in ENDED)


def _created(pod: Document) -> float:
    return seconds(pod["metadata"].get("creationTimestamp"))


def _groups(originator: Document) -> Groups:
    """Return the task groups; none if they cannot be read, which the quarantine controller reports."""
    try:
        return task_groups(annotations_of(originator))
    except SnapshotError:
        return {}


def _start(view: View, originator: Document) -> Result:
    place = key_of(originator)
    since = {"metadata": {"annotations": {STARTED: moment_text(int(view.now))}}}
    return Result([Patch(POD, place.namespace, place.name, since)])


def _go_on(view: View, app: YuniKornApplication, originator: Document) -> Result:
    """Let new pods replace placeholders, and delete the placeholders of pods that are not created in time."""
    notes = annotations_of(originator)
    timeout = reservation(notes).timeout_seconds
    deadline = (moment_of(notes[STARTED]) or 0.0) + timeout
    if not app.placeholders:
        return NOTHING
    if view.now < deadline:
        return Result([*replace_placeholders(app), *remove_surplus(app, _groups(originator), needs_no_placeholder)], again=deadline)
    text = f"room was kept for {len(app.placeholders)} more pods, and they did not come within {timeout:g} s; it is given back"
    return Result(
        [*remove_placeholders(app.placeholders), RecordEvent(originator, RELEASED, text, is_warning=True, is_expected=True)]
    )


def _degraded(originator: Document, policy: ReservationPolicy, moment: float) -> Result:
    place = key_of(originator)
    since = {"metadata": {"annotations": {DEGRADED: moment_text(int(moment))}}}
    event = RecordEvent(originator, GANG_DEGRADED, degraded_text(policy), is_warning=True, is_expected=True)
    return Result([Patch(POD, place.namespace, place.name, since), event])


def _failed(app: YuniKornApplication, originator: Document, policy: ReservationPolicy) -> Result:
    """Let every waiting pod fail, and those that are created later too: the application is over."""
    waiting = [pod for pod in app.real if waits(pod)]
    if not waiting:
        return NOTHING
    text = f"there was no room for the whole application within {policy.timeout_seconds:g} s, and its style is Hard"
    status = {"status": {"phase": "Failed", "reason": TIMED_OUT, "message": text}}
    patches = [Patch(POD, key_of(pod).namespace, key_of(pod).name, status, is_status=True) for pod in waiting]
    return Result([*patches, RecordEvent(originator, TIMED_OUT, text, is_warning=True, is_expected=True)])
