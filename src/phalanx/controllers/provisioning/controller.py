"""Asks Cluster Autoscaler for the nodes of a whole gang, by one ProvisioningRequest, and gives them back if it cannot use them.

A gang of a queue that says so gets a request as soon as its pods say that nodes are what they lack. Its pods are marked as those
who consume it, so that no nodes come because of each of them. Nothing is done while the autoscaler works: when the nodes are there,
a session places the gang. A request of which nothing comes is deleted, by which nodes that came for it are given back, and another
one is made later, after twice as long each time. It is also deleted when the gang has started, is gone or lacks no nodes any more,
and when it does not ask for the pods that there are: the spec of a request cannot be changed.

All that must be remembered stands on objects: on pods which request they consume, on the group (or the oldest pod, where there is
none) how often requests have failed, and on a request since when nobody needs it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from phalanx.controllers.controller import NOTHING, Key, Patch, RecordEvent, Result, View, Write
from phalanx.controllers.gang_pods import waits
from phalanx.controllers.objects import PROBLEM, annotations_of, is_leaving, key_of, meta_of, problem_writes
from phalanx.controllers.provisioning.asking_gang import (
    AskingGang,
    GangPlace,
    asking_gang,
    described_gang,
    group_at,
    lacks_nodes,
    places_of,
)
from phalanx.controllers.provisioning.queue_class import (
    CLASS,
    PARAMETERS,
    QUEUES,
    ProvisioningClass,
    can_ask,
    class_of_gang,
    problem_of_queue,
)
from phalanx.controllers.provisioning.request import (
    CONSUMED_CLASS,
    MOST_POD_SETS,
    counts_of,
    deleted,
    end_of,
    is_of_class,
    made,
    place_named,
    pod_sets,
    prefix_of,
    requests_of,
    templates_of,
)
from phalanx.explain.gang_status import has_minimum
from phalanx.model.conditions import CONSUMES
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, POD_TEMPLATE, PROVISIONING_REQUEST, Document, Kind, kind_of
from phalanx.model.moment import moment_of, moment_text
from phalanx.state.gang_state import GangState

FAILURES, RETRY_AT = "phalanx.dev/provisioning-failures", "phalanx.dev/provisioning-retry-at"
"""Annotations of a group: how many requests have failed since it last started, and when the next one is made."""
NOT_ASKED = "phalanx.dev/provisioning-problem"
"""Annotation of a group, or of the oldest pod where there is none: why no request is made for it."""
UNNEEDED_SINCE = "phalanx.dev/unneeded-since"
"""Annotation of a request: since when it asks for more than the gang lacks."""
REQUESTED, FAILED, NOT_REQUESTED = "ProvisioningRequested", "ProvisioningFailed", "ProvisioningNotRequested"
TOO_MANY = (
    f"no ProvisioningRequest is made: its pods that lack nodes are of more than {MOST_POD_SETS} kinds, the most that a request can "
    "have; nodes come for each of them as without one"
)
ARRIVAL_SECONDS = 2.0
"""After the last pod of a gang was created: more of them may be under way."""
UNNEEDED_SECONDS = 30.0
"""For so long a request stays that nobody needs: pods are made anew, and others leave and come back."""
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 60.0, 1800.0
SERVED_SECONDS = 60.0
"""Between two looks whether requests are served by now."""
_DIALECT_BY_KIND = {kind: dialect for dialect, kind in GROUP_BY_DIALECT.items()}


@dataclass(frozen=True, slots=True)
class QueuePlace(Key):
    """A queue of a project."""

    kind: Kind


class ProvisioningController:
    """Makes, follows and deletes the requests of gangs."""

    name = "provisioning"
    watches: Sequence[Kind] = (POD, PROVISIONING_REQUEST, POD_TEMPLATE, *QUEUES, *GROUP_BY_DIALECT.values())
    brings_back: Sequence[Kind] = ()
    patience_seconds = 1.0

    def __init__(self, schedulers: frozenset[str] = frozenset()) -> None:
        """Ask for nodes for pods of these schedulers, if any, and leave others to theirs."""
        self._schedulers = schedulers
        self._asked: dict[QueuePlace, tuple[str | None, ...]] = {}
        """What queues said last: only when that changes, gangs that wait already are looked at because of a queue."""

    # --- what is looked at -------------------------------------------------------------------------------------------

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the gang of a request, or of a pod that lacks nodes or consumes one; all who wait if a queue has changed."""
        if kind is POD:
            return self._places_of_pod(view, document)
        if kind in QUEUES:
            return self._places_of_queue(view, kind, document)
        if kind in _DIALECT_BY_KIND:
            place = GangPlace(*_spot(document), _DIALECT_BY_KIND[kind])
            return [place] if requests_of(view, place) or NOT_ASKED in annotations_of(document) else []
        return [] if (named := place_named(document)) is None else [named]

    def _places_of_pod(self, view: View, pod: Document) -> Iterator[GangPlace]:
        """Yield the gangs of a pod whose queue may say that they ask; most pods of most clusters have none."""
        if CONSUMES in annotations_of(pod):
            yield from (place for place in places_of(pod) if waits(pod) or _is_unfinished(view, place, pod))
        elif self._asked:
            is_lacking = lacks_nodes(pod)
            yield from (place for place in places_of(pod) if (is_lacking and _may_ask(view, place)) or _is_told(view, place, pod))

    def _places_of_queue(self, view: View, kind: Kind, queue: Document) -> Iterator[Key]:
        place = QueuePlace("", key_of(queue).name, kind)
        found = view.find(kind, "", place.name)
        texts = {} if found is None else annotations_of(found)
        before, said = self._asked.pop(place, ()), tuple(map(texts.get, (CLASS, PARAMETERS))) if CLASS in texts else ()
        if said:
            self._asked[place] = said
        if said or PROBLEM in texts:
            yield place
        if said != before:
            yield from dict.fromkeys(key for pod in view.within(POD) if waits(pod) for key in self._places_of_pod(view, pod))

    def reconcile(self, view: View, key: Key) -> Result:
        """Take a gang one step further, or report what is wrong with a queue."""
        if isinstance(key, QueuePlace):
            return _queue(view, key)
        return _gang(view, key, asking_gang(view, key, self._schedulers)) if isinstance(key, GangPlace) else NOTHING


def _may_ask(view: View, place: GangPlace) -> bool:
    """Tell whether the queue of a gang says that it asks; where pods alone make a gang, that is seen when all of them are read."""
    gang = described_gang(view, place)
    return gang is None or class_of_gang(view, gang) is not None


def _is_told(view: View, place: GangPlace, pod: Document) -> bool:
    """Tell whether a gang has been told that it asks for no nodes; any change of it may change that."""
    return NOT_ASKED in annotations_of(group_at(view, place) or pod)


def _is_unfinished(view: View, place: GangPlace, pod: Document) -> bool:
    """Tell whether something is left to be deleted or forgotten once a gang has started."""
    return bool(requests_of(view, place)) or FAILURES in annotations_of(group_at(view, place) or pod)


def _spot(document: Document) -> tuple[str, str]:
    key = key_of(document)
    return key.namespace, key.name


def _queue(view: View, place: QueuePlace) -> Result:
    queue = view.find(place.kind, "", place.name)
    if queue is None:
        return NOTHING
    is_open = CLASS in annotations_of(queue) and not can_ask(view)
    return Result(problem_writes(place.kind, queue, problem_of_queue(view, queue)), view.now + SERVED_SECONDS if is_open else None)


def requests_nodes(view: View, state: GangState) -> bool:
    """Tell whether the nodes that a gang lacks are asked for by a request, or will be as soon as its pods have said so."""
    gang = state.gang
    if gang.gang_group or has_minimum(state) or class_of_gang(view, gang) is None or not can_ask(view):
        return False
    place = GangPlace(gang.namespace, gang.name, gang.dialect)
    group = group_at(view, place) or {"metadata": {}}
    prefix = prefix_of(place, str(group["metadata"].get("uid", "")))
    texts = [annotations_of(group), *(task.task.annotations for task in state.tasks)]
    return all(NOT_ASKED not in text and text.get(CONSUMES, prefix).startswith(prefix) for text in texts)


# --- a gang --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A gang that may ask for nodes, the request that it should have, and the one that it has."""

    gang: AskingGang
    chosen: ProvisioningClass
    failures: int
    name: str
    request: Document | None
    others: list[Document]
    """Requests and templates of it that are of no use any more."""


def _gang(view: View, place: GangPlace, gang: AskingGang | None) -> Result:
    chosen = None if gang is None else class_of_gang(view, gang.gang)
    if gang is None or chosen is None or gang.has_started or _is_of_others(gang):
        return Result([*_cleared(view, place), *_unmarked(gang), *([] if gang is None else _told(gang, ""))])
    if not can_ask(view):
        return Result(_unmarked(gang), view.now + SERVED_SECONDS)
    if len(pod_sets(gang, gang.lacking)) > MOST_POD_SETS:
        return Result([*_cleared(view, place), *_unmarked(gang), *_told(gang, TOO_MANY)])
    step = _step(view, _attempt(view, gang, chosen))
    return Result([*_told(gang, ""), *step.writes], step.again)


def _told(gang: AskingGang, text: str) -> list[Write]:
    """Return what says once why a gang asks for no nodes; without a text, what takes that back."""
    about = gang.about
    if annotations_of(about).get(NOT_ASKED, "") == text:
        return []
    event = [RecordEvent(about, NOT_REQUESTED, text, is_warning=True, is_expected=True)] if text else []
    return [_annotated(about, {NOT_ASKED: text or None}), *event]


def _cleared(view: View, place: GangPlace) -> list[Write]:
    """Return the deletion of all that a gang has asked for."""
    return deleted([*requests_of(view, place), *templates_of(view, place)])


def _is_of_others(gang: AskingGang) -> bool:
    """Tell whether somebody else asks for the nodes of a gang."""
    names = (annotations_of(pod).get(CONSUMES, "") for pod in gang.waiting)
    return any(name and not name.startswith(prefix_of(gang.place, gang.uid)) for name in names)


def _unmarked(gang: AskingGang | None) -> list[Write]:
    """Return what lets nodes come for each pod again that waits, and forgets failures."""
    if gang is None:
        return []
    prefix, none = prefix_of(gang.place, gang.uid), {CONSUMES: None, CONSUMED_CLASS: None}
    marked = [pod for pod in gang.waiting if annotations_of(pod).get(CONSUMES, "").startswith(prefix)]
    return [*(_annotated(pod, none) for pod in marked), *_forgotten(gang)]


def _forgotten(gang: AskingGang) -> list[Write]:
    holders = gang.pods if gang.group is None else [gang.group]
    return [_annotated(item, {FAILURES: None, RETRY_AT: None}) for item in holders if FAILURES in annotations_of(item)]


def _annotated(document: Document, texts: Mapping[str, str | None]) -> Patch:
    kind = POD if "kind" not in document else kind_of(document)
    return Patch(kind, *_spot(document), {"metadata": {"annotations": dict(texts)}})


def _attempt(view: View, gang: AskingGang, chosen: ProvisioningClass) -> _Attempt:
    failures = max((_failures(item) for item in (gang.about, *gang.pods)), default=0)
    name = f"{prefix_of(gang.place, gang.uid)}{failures + 1}"
    requests = requests_of(view, gang.place)
    request = next((item for item in requests if key_of(item).name == name), None)
    used = {*counts_of(request or {}), name}
    if request is None:
        used |= {f"{name}-{digest}" for digest in pod_sets(gang, gang.lacking)}
    others = [item for item in (*requests, *templates_of(view, gang.place)) if key_of(item).name not in used]
    return _Attempt(gang, chosen, failures, name, request, others)


def _failures(document: Document) -> int:
    text = annotations_of(document).get(FAILURES, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _step(view: View, attempt: _Attempt) -> Result:
    """Mark pods, then make the request, or look what has become of it."""
    before: list[Write] = [*deleted(attempt.others), *_marks(attempt)]
    if attempt.request is None:
        then = _asked(view, attempt)
    elif is_leaving(attempt.request):
        then = NOTHING
    else:
        then = _followed(view, attempt, attempt.request)
    return Result([*before, *then.writes], then.again)


def _marks(attempt: _Attempt) -> Iterator[Write]:
    texts = {CONSUMES: attempt.name, CONSUMED_CLASS: attempt.chosen.name}
    yield from (_annotated(pod, texts) for pod in attempt.gang.lacking if not texts.items() <= annotations_of(pod).items())


def _asked(view: View, attempt: _Attempt) -> Result:
    """Make the request, once its time has come and all pods have."""
    gang = attempt.gang
    lacking = gang.lacking
    if not lacking or not gang.could_start:
        return NOTHING
    texts = [annotations_of(item).get(RETRY_AT, "") for item in (gang.about, *gang.pods)]
    due = max([*(moment_of(text) or 0.0 for text in texts if text), *(_created(pod) + ARRIVAL_SECONDS for pod in gang.pods)])
    if view.now < due:
        return Result(again=due)
    writes = made(gang, attempt.chosen, attempt.name, pod_sets(gang, lacking))
    text = f"asked for nodes for {len(lacking)} pods by ProvisioningRequest {attempt.name} of the class {attempt.chosen.name}"
    return Result([*writes, RecordEvent(gang.about, REQUESTED, text)])


def _created(document: Document) -> float:
    return moment_of(str(meta_of(document).get("creationTimestamp") or "")) or 0.0


# --- what has become of a request ----------------------------------------------------------------------------------------


def _followed(view: View, attempt: _Attempt, request: Document) -> Result:
    end = end_of(request)
    if end is not None:
        return _failed(view, attempt, end)
    if not is_of_class(request, attempt.chosen) or not _covers(attempt, request):
        return Result(_cleared(view, attempt.gang.place))  # its end brings us back, and then another one is made
    since = annotations_of(request).get(UNNEEDED_SINCE)
    if attempt.gang.lacking and not _is_too_large(attempt, request):
        return Result([_annotated(request, {UNNEEDED_SINCE: None})] if since is not None else [])
    if since is None:
        now = moment_text(int(view.now))
        return Result([_annotated(request, {UNNEEDED_SINCE: now})], view.now + UNNEEDED_SECONDS)
    due = (moment_of(since) or 0.0) + UNNEEDED_SECONDS
    return Result(again=due) if view.now < due else Result(_cleared(view, attempt.gang.place))


def _covers(attempt: _Attempt, request: Document) -> bool:
    """Tell whether a request asks for all pods that lack nodes."""
    asked = counts_of(request)
    return all(asked.get(name, 0) >= count for name, count in _counts(attempt, attempt.gang.lacking).items())


def _is_too_large(attempt: _Attempt, request: Document) -> bool:
    """Tell whether a request asks for pods that are gone; those that have been bound since it was made are not."""
    consumers = [pod for pod in attempt.gang.pods if annotations_of(pod).get(CONSUMES) == attempt.name or lacks_nodes(pod)]
    there = _counts(attempt, consumers)
    return any(there.get(name, 0) < count for name, count in counts_of(request).items())


def _counts(attempt: _Attempt, pods: Sequence[Document]) -> dict[str, int]:
    return {f"{attempt.name}-{digest}": found.count for digest, found in pod_sets(attempt.gang, pods).items()}


def _failed(view: View, attempt: _Attempt, end: Document) -> Result:
    """Delete a request of which nothing comes, by which its nodes are given back, and remember when to make the next one."""
    wait = min(FIRST_RETRY_SECONDS * 2 ** min(attempt.failures, 10), LONGEST_RETRY_SECONDS)
    due, gang = moment_text(int(view.now + wait)), attempt.gang
    why = str(end.get("message") or end.get("reason") or "no reason is given").rstrip(".")
    given_back = "it is deleted, so that nodes that came for it are given back"
    text = f"ProvisioningRequest {attempt.name}: {end['type']}: {why}; {given_back}, and nodes are asked for again at {due}"
    return Result([
        RecordEvent(gang.about, FAILED, text, is_warning=True, is_expected=True),
        _annotated(gang.about, {FAILURES: str(attempt.failures + 1), RETRY_AT: due}), *_cleared(view, gang.place),
    ])  # fmt: skip
