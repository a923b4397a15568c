"""A load for simulations, made of what a recording shows: who came when, how long everybody worked, what happened to nodes.

The objects that were there at the beginning are as they were then; gangs that ran have what was left of their duration. Gangs that
came later are fresh, with the annotations that say when they arrive and how long they take. What a load cannot say, or what is a
guess in it, is in its notes.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import Any

from phalanx.config.schedulers import our_schedulers
from phalanx.dialects.fresh_pods import fresh
from phalanx.dialects.group_references import GROUP as GROUP_NAME
from phalanx.dialects.group_references import with_group_name
from phalanx.explain.reason_text import counted
from phalanx.model.duration import seconds_of
from phalanx.model.kinds import GROUP_BY_DIALECT, Document, object_key
from phalanx.model.listing import listed
from phalanx.model.work_annotations import ARRIVES, DURATION
from phalanx.recording.gang_lives import Ending, GangLife, Seat
from phalanx.recording.moment import time_text
from phalanx.recording.observed_work import ObservedWork, SeenObject, scheduler_of

Json = dict[str, Any]  # Any: as JSON has it
TOGETHER_SECONDS = 1.0
"""Pods that come, or end, so soon after each other do so together."""
OWN_QUEUES = ("root", "default")
SINGLE = GROUP_BY_DIALECT["volcano"]
"""The kind of group that single pods get; every profile reads it."""
MOST_NAMED = 5
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
OF_ONE_OBJECT = ("uid", "resourceVersion", "creationTimestamp", "generation", "ownerReferences", "managedFields")


@dataclass(frozen=True, slots=True)
class Load:
    """Objects and a scenario for a simulation."""

    documents: list[Json]
    scenario: Json
    notes: list[str]
    seconds: float
    """How long the recording is."""
    names: Mapping[str, GangLife] = field(default_factory=dict)
    """The gangs of the load by their names in it."""

    @property
    def unmeasured(self) -> int:
        """How many gangs have a duration that was not measured: they still ran or had not started, or were deleted before."""
        return sum(life.duration() is None for life in self.names.values() if life.seats)


def load_of(work: ObservedWork, *, start: float, assumed: float | None = None, runs_on: bool = False) -> Load:
    """Return the load of a recording for a simulation that begins at `start`; gangs of unknown duration take `assumed` seconds.

    Gangs that run at the end take as long as they have run by then; with `runs_on` they do not end, so that a simulation in which
    they start earlier gains nothing from an end that nobody has seen.
    """
    return _Loading(work, start, assumed, runs_on=runs_on).load()


def duration_text(seconds: float) -> str:
    """Return seconds as annotations and scenarios have them."""
    return f"{max(seconds, 0.0):.3f}".rstrip("0").rstrip(".") + "s"


class _Loading:
    """A load while it is made."""

    def __init__(self, work: ObservedWork, start: float, assumed: float | None, *, runs_on: bool) -> None:
        self._work, self._shift, self._assumed, self._runs_on = work, start - work.begun, assumed, runs_on
        self._guesses: Counter[str] = Counter()
        """How durations that nobody saw were found."""
        self._apart: dict[float, list[str]] = {}
        self._failures: list[Json] = []
        self._notes: list[str] = []
        self._names: dict[str, GangLife] = {}
        self._lost: Counter[str] = Counter()
        self._singles: Counter[str] = Counter()
        """Pods without a gang that are gangs of their own in the load, by their names."""
        ended = [(life.queue, seconds) for life in work.lives if (seconds := life.duration()) is not None]
        self._all = [seconds for _, seconds in ended]
        self._by_queue: dict[str, list[float]] = {}
        for queue, seconds in ended:
            self._by_queue.setdefault(queue, []).append(seconds)

    def load(self) -> Load:
        work = self._work
        objects = [*self._others(), *map(self._there, work.nodes.documents.values())]
        gangs = [document for life in work.lives for document in self._gang(life)]
        documents = _with_known_owners([*objects, *gangs, *self._loose()])
        self._say()
        return Load(documents, self._scenario(), self._notes, work.ended - work.begun, self._names)

    # --- objects -----------------------------------------------------------------------------------------------------

    def _others(self) -> Iterator[Json]:
        for seen in self._work.others.values():
            if seen.was_there:
                yield self._there(seen.document)
            else:
                yield _as_made(seen.document) if _comes_by_itself(seen.document) else self._late(seen)

    def _late(self, seen: SeenObject) -> Json:
        return _annotated(_as_made(seen.document), {ARRIVES: self._offset(seen.arrived)})

    def _there(self, document: Document) -> Json:
        """Return an object as it was, with its times as far from the start of the simulation as they were from the beginning."""
        meta = {key: value for key, value in document["metadata"].items() if key not in ("resourceVersion", "managedFields")}
        return dict(_shifted({**document, "metadata": meta}, self._shift))

    def _offset(self, moment: float) -> str:
        return duration_text(moment - self._work.begun)

    def _loose(self) -> Iterator[Json]:
        """Yield pods without a gang: they take room too, and let go of it when they did. Pods of schedulers that are not ours are
        left out if they came during the recording: nobody in a simulation would place them.
        """
        for seen in self._work.loose.values():
            pod, is_over = seen.document, (seen.document.get("status") or {}).get("phase") in ("Succeeded", "Failed")
            has_place = seen.was_there and bool(pod["spec"].get("nodeName"))
            if has_place and not is_over:
                yield self._placed(seen)
            elif is_over:
                self._lost["ended"] += 1
            elif scheduler_of(pod) in self._work.schedulers:
                yield from self._single(seen)
            else:
                self._lost["foreign"] += 1

    def _placed(self, seen: SeenObject) -> Json:
        """Return a pod that has had its node since before the recording; nobody decides about it, and it ends when it did."""
        if seen.ended is not None:
            self._failures.append({"at": self._offset(seen.ended), "pod": object_key(seen.document)})
        return self._there(seen.document)

    def _single(self, seen: SeenObject) -> Iterator[Json]:
        """Yield a pod as a gang of its own, so that our rules place it, and it works for as long as it did."""
        pod = _as_made(fresh(seen.document))
        name, namespace = pod["metadata"]["name"], pod["metadata"].get("namespace") or "default"
        self._singles[f"{namespace}/{name}"] += 1
        number = self._singles[f"{namespace}/{name}"]
        own = name if number == 1 else f"{name}-{number}"
        worked = None if seen.ended is None or seen.running is None else duration_text(seen.ended - seen.running)
        meta = {"name": f"single-{own}", "namespace": namespace}
        group = {"apiVersion": SINGLE.api_version, "kind": SINGLE.kind, "metadata": meta, "spec": {"minMember": 1}}
        yield _annotated(group, {ARRIVES: None if seen.was_there else self._offset(seen.arrived), DURATION: worked})
        yield _annotated({**pod, "metadata": {**pod["metadata"], "name": own}}, {GROUP_NAME: f"single-{own}"})

    # --- gangs -------------------------------------------------------------------------------------------------------

    def _gang(self, life: GangLife) -> Iterator[Json]:
        if life.was_over:
            self._lost["over"] += 1
            return
        self._names[life.name] = life
        duration = self._duration(life)
        is_there = life.ran_before
        for group in life.groups.values():
            document = self._there(group) if is_there else _as_made(group)
            yield _renamed(_annotated(document, self._times(life, duration)), life)
        for seat in life.seats:
            document = self._pod(life, seat, duration)
            yield document
            self._note_failures(seat, document)

    def _times(self, life: GangLife, duration: str | None) -> dict[str, str | None]:
        return {ARRIVES: None if life.ran_before else self._offset(life.submitted), DURATION: duration}

    def _pod(self, life: GangLife, seat: Seat, duration: str | None) -> Json:
        is_there, is_first = life.ran_before, seat.arrived <= self._work.begun
        document = self._there(seat.pod) if is_there and is_first else _as_made(fresh(seat.pod))
        own = self._own_duration(life, seat, duration)
        times: dict[str, str | None] = {DURATION: own, ARRIVES: None}
        if not life.groups:
            times = {**self._times(life, duration), **({DURATION: own} if own else {})}
        document = _renamed(_annotated(document, times), life)
        if is_there and not is_first:
            self._lost["joined"] += 1
        elif seat.arrived - life.submitted > TOGETHER_SECONDS:
            self._apart.setdefault(seat.arrived, []).append(_key(document))
        return document

    def _own_duration(self, life: GangLife, seat: Seat, duration: str | None) -> str | None:
        """Return the duration of a pod that is not that of its gang; None if it is."""
        own, whole = life.duration_of(seat), life.duration()
        if own is None or whole is None or abs(own - whole) <= TOGETHER_SECONDS:
            return None if life.groups else duration
        return duration_text(own)

    def _note_failures(self, seat: Seat, document: Json) -> None:
        self._failures += [{"at": self._offset(moment), "pod": _key(document)} for moment in seat.failures]

    # --- durations ---------------------------------------------------------------------------------------------------

    def _duration(self, life: GangLife) -> str | None:
        """Return how long a gang works; None for ever."""
        known = life.duration()
        if known is not None:
            self._guesses["interrupted"] += len(life.spans) > 1
            return duration_text(known)
        if not life.seats:
            return None
        worked = life.worked(self._work.ended)
        declared = _declared(life)
        if declared is not None and (seconds_of(declared) or worked) >= worked:
            self._guesses["declared"] += 1
            return declared
        if life.ending is Ending.RUNS:
            self._guesses["runs"] += 1
            return None if self._runs_on else duration_text(worked)
        self._guesses["lost" if life.lost else "deleted" if life.ending is Ending.DELETED else "waits"] += 1
        guess = self._guess(life)
        return None if guess is None else duration_text(max(guess, worked))

    def _guess(self, life: GangLife) -> float | None:
        if self._by_queue.get(life.queue):
            self._guesses["by queue"] += 1
            return median(self._by_queue[life.queue])
        if self._all:
            self._guesses["by all"] += 1
            return median(self._all)
        self._guesses["assumed" if self._assumed is not None else "never"] += 1
        return self._assumed

    # --- the scenario ------------------------------------------------------------------------------------------------

    def _scenario(self) -> Json:
        work = self._work
        known = our_schedulers()
        others = sorted(work.schedulers - known)
        found: Json = {
            "apiVersion": "phalanx.dev/v1alpha1", "kind": "Scenario", **self._pace(), **self._delays(),
            **({"binder": True} if work.has_binder else {}),
            **({"controllers": {"schedulers": sorted({*known, *others})}} if others else {}),
            "arrivals": [{"at": self._offset(moment), "pods": pods} for moment, pods in sorted(self._apart.items())],
            "failures": sorted(self._failures, key=lambda item: item["at"]),
            "nodes": [{"at": self._offset(item.at), "node": item.node, "event": item.event} for item in work.nodes.events],
        }  # fmt: skip
        return {name: value for name, value in found.items() if value}

    def _pace(self) -> Json:
        """Return how often sessions are held, as they were: what depends on time alone comes out the same then."""
        header = self._work.header
        pace, scope = (header.pace, header.scope) if header is not None else ({}, {})
        named = {"period": pace.get("gap"), "heartbeat": pace.get("heartbeat"), "settling": pace.get("later")}
        # Where any change lets a session look at all gangs, it is as if none of them rested.
        named["longestRest"] = None if scope.get("wakes_all", True) else scope.get("longest_rest")
        return {name: duration_text(seconds) for name, seconds in named.items() if seconds}

    def _delays(self) -> Json:
        """Return how long things take, as they mostly did; what was not seen is left to the simulation."""
        delays = self._work.delays
        named = {"start": delays.start, "stop": delays.stop}
        found: Json = {name: duration_text(round(median(times), 1)) for name, times in named.items() if times}
        evicted = sum(life.evicted for life in self._work.lives)
        restart = duration_text(round(median(delays.restart), 1)) if delays.restart else "never" if evicted else None
        return {**({"delays": found} if found else {}), **({"restart": restart} if restart else {})}

    # --- notes -------------------------------------------------------------------------------------------------------

    def _say(self) -> None:
        guesses, lost, work = self._guesses, self._lost, self._work
        self._tell(guesses["interrupted"], "gang", "interrupted, with the last run as duration: work is taken to begin anew")
        lasting = "taken to run on" if self._runs_on else "with the time until then as duration"
        self._tell(guesses["runs"], "gang", f"still running at the end of the recording, {lasting}")
        self._tell(guesses["declared"], "gang", f"without an end in the recording, with the annotation {DURATION} as duration")
        self._tell(guesses["waits"], "gang", f"not started by the end of the recording{self._guess_text()}")
        self._tell(guesses["deleted"], "gang", f"deleted before the start, but not in the load{self._guess_text()}")
        self._tell(guesses["lost"], "gang", f"evicted for good, but not in the load{self._guess_text()}")
        self._tell(lost["over"], "gang", "left out: ended before the recording began")
        self._tell(lost["joined"], "pod", "of gangs that ran before the recording, there from the beginning though made later")
        self._tell(self._singles.total(), "pod", "without a gang, in the load as a gang of its own")
        self._tell(lost["foreign"], "pod", "of other schedulers left out that came later: the load leaves more room than there was")
        self._tell(lost["ended"], "pod", "without a gang left out: ended before being seen")
        self._tell(work.refused, "bind", "failed in the recording, but not in the load")
        self._tell_objects((seen for seen in work.others.values() if seen.has_changed), "changed, and in the load as at first")
        self._tell_objects((seen for seen in work.others.values() if seen.is_gone), "gone later, but not in the load")
        if work.nodes.changed:
            names = listed(sorted(work.nodes.changed), MOST_NAMED)
            self._notes.append(f"labels, taints or resources changed, and are in the load as they were first: {names}")
        if work.gaps:
            self._notes.append(f"the recording has {counted(work.gaps, 'gap')}; what happened in it is taken to be at its end")

    def _guess_text(self) -> str:
        texts = {
            "by queue": "the median of the queue", "by all": "the median of all gangs", "assumed": "what --assume says",
            "never": "no end, for want of --assume,",
        }  # fmt: skip
        parts = [f"{text} for {self._guesses[name]}" for name, text in texts.items() if self._guesses[name]]
        return f"; durations of those without an end: {', '.join(parts)}" if parts else ""

    def _tell(self, count: int, noun: str, text: str) -> None:
        if count:
            self._notes.append(f"{counted(count, noun)} {text}")

    def _tell_objects(self, objects: Iterable[SeenObject], text: str) -> None:
        kinds = Counter(str(seen.document["kind"]) for seen in objects)
        if kinds:
            names = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            self._notes.append(f"{counted(kinds.total(), 'object')} {text}: {names}")


def _declared(life: GangLife) -> str | None:
    """Return the duration that the annotations of a gang say."""
    documents = [*life.groups.values(), *(seat.pod for seat in life.seats)]
    texts = ((document["metadata"].get("annotations") or {}).get(DURATION) for document in documents)
    return next((str(text) for text in texts if text), None)


# --- documents -----------------------------------------------------------------------------------------------------------


def _key(document: Document) -> str:
    meta = document["metadata"]
    return f"{meta.get('namespace') or 'default'}/{meta['name']}"


def _comes_by_itself(document: Document) -> bool:
    """Tell whether an object is no work: namespaces come with the first object in them, and two queues with a scheduler."""
    is_own_queue = document["kind"] == "Queue" and document["metadata"]["name"] in OWN_QUEUES
    return document["kind"] == "Namespace" or is_own_queue


def _as_made(document: Document) -> Json:
    """Return an object as somebody made it: without what only one object has, and without a status."""
    meta = {key: value for key, value in document["metadata"].items() if key not in OF_ONE_OBJECT}
    return {**{key: value for key, value in document.items() if key != "status"}, "metadata": meta}


def _annotated(document: Json, annotations: Mapping[str, str | None]) -> Json:
    """Return an object with some annotations instead of those of the same names; without those that are None."""
    meta = document["metadata"]
    others = {key: text for key, text in (meta.get("annotations") or {}).items() if key not in annotations}
    whole = {**others, **{key: text for key, text in annotations.items() if text is not None}}
    kept = {key: value for key, value in meta.items() if key != "annotations"}
    return {**document, "metadata": {**kept, **({"annotations": whole} if whole else {})}}


def _renamed(document: Json, life: GangLife) -> Json:
    """Return a part of a gang under a name of its own where an earlier gang of the recording has the same."""
    if life.number == 1:
        return document
    renamed = {**document, "metadata": {**document["metadata"], "name": f"{document['metadata']['name']}-{life.number}"}}
    group = life.name.partition("@")[0].rpartition("/")[2]
    return with_group_name(renamed, group) if document["kind"] == "Pod" else renamed


def _shifted(value: Any, seconds: float) -> Any:  # Any: as JSON has it
    if isinstance(value, dict):
        return {key: _shifted(item, seconds) for key, item in value.items()}
    if isinstance(value, list):
        return [_shifted(item, seconds) for item in value]
    if not isinstance(value, str) or not MOMENT.fullmatch(value):
        return value
    moment = datetime.fromisoformat(value).replace(tzinfo=UTC)
    return time_text(moment.timestamp() + seconds)


def _with_known_owners(documents: list[Json]) -> list[Json]:
    """Return the objects without owners that are not among them: they would be taken for leftovers."""
    uids = {document["metadata"].get("uid") for document in documents} - {None}
    return [_owned_by(document, uids) for document in documents]


def _owned_by(document: Json, uids: set[Any]) -> Json:
    owners = document["metadata"].get("ownerReferences")
    if not owners:
        return document
    known = [owner for owner in owners if owner.get("uid") in uids]
    meta = {key: value for key, value in document["metadata"].items() if key != "ownerReferences"}
    return {**document, "metadata": {**meta, **({"ownerReferences": known} if known else {})}}
