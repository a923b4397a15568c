"""Works off bind requests: all those of a gang are prepared, then all are bound; if one cannot be, none is.

A request stays Pending until the pods of its gang that are bound are enough. So whatever is bound and still Pending has landed in
this round, and has to leave again if the round fails: a pod that is bound cannot be unbound. Nothing else has to be remembered, and
a binder that takes over after a crash sees how far the last one got.

A round fails when a request cannot be met any more and the gang would not be whole without it, or when the requests that would make
it whole do not come. If the gang is whole without the request, only that one fails.
"""

from collections.abc import Iterable, Sequence

from phalanx.controllers.binder.claims import claims_of
from phalanx.controllers.binder.gpu_reservations import groups_of, is_reservation
from phalanx.controllers.binder.pending import BROKEN, UNBOUND, Ask, asks_of, circle_of, open_asks, read_request
from phalanx.controllers.binder.preparation import prepared, taken_back, volume_claims_of
from phalanx.controllers.binder.preparation_step import PreparationStep
from phalanx.controllers.binder.reservation_pod import IMAGE
from phalanx.controllers.binder.room import without_room
from phalanx.controllers.binder.unbound import carried_out_again, unbound
from phalanx.controllers.binder.wholeness import is_whole_with
from phalanx.controllers.controller import NOTHING, Bind, Create, Evict, Key, Patch, RecordEvent, Result, Try, View, Write
from phalanx.controllers.objects import inside, key_of, meta_of, problem_writes
from phalanx.dialects.bind_requests import LAST_ATTEMPT, ROLLED_BACK
from phalanx.errors import SnapshotError
from phalanx.model.bind_request import FAILED, PENDING, SUCCEEDED
from phalanx.model.kinds import BIND_REQUEST, NODE, POD, RESOURCE_CLAIM, VOLUME_CLAIM, Document, Kind, kind_of, object_key
from phalanx.model.moment import moment_text

PREPARING_SECONDS = 120.0
"""How long an attempt may wait for reservations, volumes and claims."""
GATHERING_SECONDS = 60.0
"""How long the first requests of a gang wait for the others."""
BOUND, BINDING_ERROR, POD_BOUND = "Bound", "BindingError", "PodBound"
HOW_TO = "install what 'phalanx manifests rbac' prints"
PREFIX = "rolled back: "
"""How the reason begins where another request is to blame."""


class Binder:
    """Binds the pods of a gang together."""

    name = "binder"
    watches = (BIND_REQUEST, POD, NODE, VOLUME_CLAIM, RESOURCE_CLAIM)
    brings_back = ()

    def __init__(self, image: str = IMAGE) -> None:
        """Let reservation pods run an image."""
        self._image = image

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Look at the gangs whose requests are for, or wait for, this object."""
        if kind is BIND_REQUEST:
            return _of_request(view, document)
        if kind is POD and not is_reservation(document):
            return _of_pod(view, document)
        return dict.fromkeys(circle_of(ask.pod) for ask in open_asks(view) if _is_about(ask, kind, document))

    def reconcile(self, view: View, key: Key) -> Result:
        """Take the next step of a round."""
        if key.name.startswith(BROKEN):
            return _about_broken(view, key)
        if key.name.startswith(UNBOUND):
            return carried_out_again(view, key)
        asks = asks_of(view, key)
        pending = [ask for ask in asks if ask.is_open]
        if not pending:
            return NOTHING
        mended = [write for ask in pending for write in problem_writes(BIND_REQUEST, ask.document, "")]
        failed = [ask for ask in asks if ask.request.has_failed and not ask.is_bound]
        result = _Round(view, key, pending, failed, self._image).next_step()
        return Result([*mended, *result.writes], result.again)


def _of_request(view: View, document: Document) -> list[Key]:
    """Return the gang of a request, or the request itself if it cannot be read; none if its pod is gone."""
    key = key_of(document)
    try:
        request = read_request(document)
    except SnapshotError:
        return [Key(key.namespace, f"{BROKEN}{key.name}")]
    pod = view.find(POD, key.namespace, request.task.partition("/")[2])
    return [] if pod is None else [circle_of(pod), *unbound(view, document)]


def _of_pod(view: View, pod: Document) -> list[Key]:
    """Return the gang of a pod for which there is a request."""
    key, uid = key_of(pod), str(meta_of(pod).get("uid", ""))
    request = view.find(BIND_REQUEST, key.namespace, key.name)
    if request is None and not view.owned(uid, BIND_REQUEST):
        return []
    return [circle_of(pod), *unbound(view, request)]


def _is_about(ask: Ask, kind: Kind, document: Document) -> bool:
    """Tell whether a request is for a node, or waits for a claim or for the reservation of a GPU."""
    key = key_of(document)
    if kind is NODE:
        return ask.node == key.name
    if kind is VOLUME_CLAIM:
        return ask.key.namespace == key.namespace and key.name in volume_claims_of(ask.pod)
    if kind is RESOURCE_CLAIM:
        return ask.key.namespace == key.namespace and key.name in claims_of(ask.pod).values()
    return not set(groups_of(document)).isdisjoint(ask.request.gpu_groups)


def _about_broken(view: View, key: Key) -> Result:
    """Say on a request what is wrong with it."""
    document = view.find(BIND_REQUEST, key.namespace, key.name.removeprefix(BROKEN))
    if document is None:
        return NOTHING
    try:
        read_request(document)
    except SnapshotError as problem:
        return Result(problem_writes(BIND_REQUEST, document, str(problem)))
    return NOTHING


class _Round:
    """The open requests of a gang, at one look."""

    def __init__(self, view: View, circle: Key, asks: Sequence[Ask], failed: Sequence[Ask], image: str) -> None:
        self._view, self._circle, self._failed, self._image = view, circle, failed, image
        self._lost = {ask: reason for ask in asks if (reason := self._loss(ask))}
        self._asks = [ask for ask in asks if ask not in self._lost]

    def next_step(self) -> Result:
        """Return what to do now; every step is taken at a look of its own, so that it is taken on what is there."""
        if self._lost or not self._is_whole_with(self._asks):
            return self._without_lost()
        landed = [ask for ask in self._asks if ask.is_bound]
        if landed and self._is_whole_with(()):
            return Result([write for ask in landed for write in _succeed(ask, self._view.now)], self._view.now)
        return self._prepare([ask for ask in self._asks if not ask.is_bound])

    def _loss(self, ask: Ask) -> str:
        """Return why a request cannot be met any more; empty if it can."""
        if ask.is_leaving:
            return f"pod {ask.pod_key.name} is being deleted"
        if ask.is_bound:
            return ""
        if self._view.find(NODE, "", ask.node) is None:
            return f"node {ask.node} is gone"
        return ask.reason or f"binding to node {ask.node} failed" if ask.is_used_up else ""

    def _is_whole_with(self, asks: Sequence[Ask]) -> bool:
        return is_whole_with(self._view, self._circle, asks)

    # --- a round that fails ------------------------------------------------------------------------------------------

    def _lose(self, reasons: dict[Ask, str]) -> Result:
        """Go on without requests that cannot be met, if the gang can."""
        self._lost |= reasons
        self._asks = [ask for ask in self._asks if ask not in reasons]
        return self._without_lost()

    def _without_lost(self) -> Result:
        return Result(self._fail(self._lost)) if self._is_whole_with(self._asks) else self._gather()

    def _gather(self) -> Result:
        """Wait for the requests of the others, unless one is lost already or it took too long."""
        if self._lost or self._failed:
            return Result(self._roll_back(self._why()))
        deadline = max(ask.created for ask in self._asks) + GATHERING_SECONDS
        if self._view.now < deadline:
            return Result(again=deadline)
        return Result(self._roll_back(f"the other pods of {self._circle.name} were not given nodes within {GATHERING_SECONDS:g} s"))

    def _why(self) -> str:
        """Return what went wrong first: for a request that was refused, rather than for a pod that was told to go because of it."""
        reasons = [(ask.is_bound, ask.pod_key.name, reason) for ask, reason in self._lost.items()]
        failed = [(False, ask.pod_key.name, ask.reason) for ask in self._failed]
        _, pod, reason = min([*reasons, *failed])
        reason = reason.removeprefix(PREFIX)
        return reason if pod in reason else f"pod {pod}: {reason}"

    def _roll_back(self, why: str) -> list[Write]:
        """Let all requests fail, then let those leave that have landed."""
        text = f"{PREFIX}{why}"
        waiting = {ask: text for ask in self._asks if not ask.is_bound}
        landed = [ask for ask in self._asks if ask.is_bound]
        marks = [_patch(ask, {"metadata": {"annotations": {ROLLED_BACK: "true"}}}) for ask in waiting]
        return [*self._fail(self._lost), *marks, *self._fail(waiting), *(write for ask in landed for write in _let_go(ask, text))]

    def _fail(self, reasons: dict[Ask, str]) -> list[Write]:
        return [write for ask, reason in reasons.items() for write in self._failure(ask, reason)]

    def _failure(self, ask: Ask, reason: str) -> list[Write]:
        status = {"phase": FAILED, "reason": reason, "failedAttempts": _final_attempts(ask)}
        undone = [] if ask.is_bound else taken_back(self._view, ask)
        told = [] if ask.is_leaving else _told(ask, self._view.now, reason)
        return [*told, *undone, _patch(ask, {"status": status}, is_status=True)]

    # --- a round that goes on ----------------------------------------------------------------------------------------

    def _prepare(self, asks: Sequence[Ask]) -> Result:
        """Prepare everybody when it is time to try it again; bind when that is done."""
        due = max(ask.not_before for ask in asks)
        if due > self._view.now:
            return Result(again=due)
        parts = {ask: prepared(self._view, ask, self._image) for ask in asks}
        if writes := self._first_writes(parts):
            return Result(writes, self._view.now)
        waits = {ask: part for ask, part in parts.items() if part.waits}
        return self._wait(waits) if waits else self._bind(asks)

    def _first_writes(self, parts: dict[Ask, PreparationStep]) -> list[Write]:
        """Return what is to be written, once for each object: what another pod wants there is looked at again after it."""
        found: dict[object, Write] = {}
        for ask, part in parts.items():
            for write in part.writes:
                found.setdefault(_target(write), self._tried(ask, write))
        return list(found.values())

    def _tried(self, ask: Ask, write: Write) -> Write:
        """Let a reservation pod that is refused be an attempt that failed."""
        if not isinstance(write, Create):
            return write
        return Try(write, lambda reason: _attempt_failed(ask, f"a reservation pod was refused: {reason}; {HOW_TO}", self._view.now))

    def _wait(self, waits: dict[Ask, PreparationStep]) -> Result:
        """Wait until everybody is prepared; what takes too long is an attempt that failed."""
        deadlines = {ask: max(ask.request.latest, ask.not_before) + PREPARING_SECONDS for ask in waits}
        late = [ask for ask, deadline in deadlines.items() if deadline <= self._view.now]
        if not late:
            return Result(again=min(deadlines.values()))
        failed = [write for ask in late for write in _attempt_failed(ask, waits[ask].waits, self._view.now)]
        return Result([*failed, *(write for ask in late for write in waits[ask].when_late)])

    def _bind(self, asks: Sequence[Ask]) -> Result:
        """Bind everybody, those who failed before first: if they fail again nobody else has landed."""
        if late := without_room(self._view, asks):
            return self._lose(late)
        ordered = sorted(asks, key=lambda ask: (-ask.request.failed_attempts, ask.pod_key.name))
        return Result([_bound(ask, self._view.now) for ask in ordered])


def _target(write: Write) -> object:
    """Return which object is written."""
    match write:
        case Create(document):
            return kind_of(document), object_key(document)
        case Patch(kind, namespace, name):
            return kind, f"{namespace}/{name}"
    return write


def _bound(ask: Ask, now: float) -> Try:
    key = ask.pod_key
    bind = Bind(key.namespace, key.name, ask.node, str(meta_of(ask.pod).get("uid", "")))
    return Try(bind, lambda reason: _attempt_failed(ask, f"binding to node {ask.node} was refused: {reason}", now))


def _attempt_failed(ask: Ask, reason: str, now: float) -> list[Write]:
    """Count an attempt that failed; when it was comes first, so that nobody tries again too early."""
    status = {"phase": PENDING, "reason": reason, "failedAttempts": ask.request.failed_attempts + 1}
    return [
        _patch(ask, {"metadata": {"annotations": {LAST_ATTEMPT: moment_text(now), ROLLED_BACK: None}}}),
        _patch(ask, {"status": status}, is_status=True),
        RecordEvent(ask.pod, BINDING_ERROR, reason, is_warning=True, is_expected=True),
    ]


def _final_attempts(ask: Ask) -> int:
    """Return the count that makes a request one that failed for good, for everybody who reads it."""
    return max(ask.request.failed_attempts, ask.request.most_attempts or 0)


def _succeed(ask: Ask, now: float) -> list[Write]:
    key = ask.pod_key
    done = _patch(ask, {"status": {"phase": SUCCEEDED, "reason": None}}, is_status=True)
    text = f"Pod {key.namespace}/{key.name} is bound to node {inside(ask.pod, 'spec', 'nodeName')}"
    return [*_condition(ask, now, "True", BOUND, text), RecordEvent(ask.pod, BOUND, text), done]


def _told(ask: Ask, now: float, reason: str) -> list[Write]:
    return [
        *_condition(ask, now, "False", BINDING_ERROR, reason),
        RecordEvent(ask.pod, BINDING_ERROR, reason, is_warning=True, is_expected=True),
    ]


def _condition(ask: Ask, now: float, status: str, reason: str, message: str) -> list[Write]:
    """Write the condition PodBound of a pod."""
    known = inside(ask.pod, "status", "conditions") or ()
    told = {"type": POD_BOUND, "status": status, "reason": reason, "message": message}
    if any(told.items() <= condition.items() for condition in known):
        return []
    patch = {"status": {"conditions": [{**told, "lastTransitionTime": moment_text(int(now))}]}}
    return [Patch(POD, ask.pod_key.namespace, ask.pod_key.name, patch, is_status=True)]


def _let_go(ask: Ask, reason: str) -> list[Write]:
    key = ask.pod_key
    told = RecordEvent(ask.pod, BINDING_ERROR, reason, is_warning=True, is_expected=True)
    return [told, Evict(key.namespace, key.name, str(meta_of(ask.pod).get("uid", "")), reason)]


def _patch(ask: Ask, patch: Document, *, is_status: bool = False) -> Patch:
    return Patch(BIND_REQUEST, ask.key.namespace, ask.key.name, patch, is_status=is_status)
