"""The one rule by which run times are known: what pods, their group and their queue say, the first that says something first.

    expected    `phalanx.dev/duration` of a pod, else of the group, else `phalanx.dev/default-duration` of the queue
    maximum     the least of `phalanx.dev/max-duration` of pod, group and queue, activeDeadlineSeconds of a pod and of an owner,
                Kueue's label

The first pod speaks for all: pods of one gang come from one template. What cannot be read counts as not said, and is told.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf

from phalanx.model.duration import range_in, seconds_in
from phalanx.model.gang import Gang
from phalanx.model.moment import moment_of
from phalanx.model.queue import Queue
from phalanx.model.run_times import UNKNOWN, RunTimes
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.model.work_annotations import DEFAULT_DURATION, DURATION, FROM, KUEUE_MAXIMUM, MAX_DURATION, OWNER_DEADLINE
from phalanx.state.finished_runs import ENOUGH, likeness, quantile
from phalanx.state.snapshot import Snapshot

LOW, HIGH = 0.1, 0.9
"""Between these parts of the runs of gangs like it the end of a gang is guessed."""
Said = tuple[float, float, str]
"""Shortest, longest, and who says so."""


def run_times(gang: Gang | None, task: Task | None, queue: Queue | None, *, since: float = 0.0) -> RunTimes:
    """Return the run time of a gang, given a pod of it and its queue, and when it began or could begin, if that is known."""
    pod, labels = ({}, {}) if task is None else (task.annotations, task.labels)
    group, queued = {} if gang is None else gang.annotations, {} if queue is None else queue.annotations
    whose = "group" if gang is None or gang.has_object else "pod"
    faults: list[str] = []
    expected = _all((("pod", pod, DURATION), (whose, group, DURATION), ("queue", queued, DEFAULT_DURATION)), faults)
    limits = _all([(owner, texts, MAX_DURATION) for owner, texts in (("pod", pod), (whose, group), ("queue", queued))], faults)
    limits += _all([("pod", labels, KUEUE_MAXIMUM)], faults)
    if task is not None and task.deadline < inf:
        limits.append((task.deadline, task.deadline, "activeDeadlineSeconds"))
    limits += _owner_deadline(group, since, faults)
    if not (expected or limits or faults):
        return UNKNOWN
    shortest, longest, source = expected[0] if expected else (inf, inf, "")
    _, maximum, limit = min(limits, default=(inf, inf, ""))
    return RunTimes(shortest, longest, maximum, source, limit, tuple(faults))


def _owner_deadline(group: Mapping[str, str], since: float, faults: list[str]) -> list[Said]:
    """Return what is left of the deadline of an owner, which counts from its own start; all of it if that has passed already."""
    text = group.get(OWNER_DEADLINE)
    if text is None:
        return []
    span, _, moment = text.partition(FROM)
    seconds, start = seconds_in(span), moment_of(moment) if moment else 0.0
    if seconds is None or start is None:
        faults.append(f"{OWNER_DEADLINE} of the group: {text!r} is not a duration; remove it, and its controller writes it again")
        return []
    left = seconds - max(since - start, 0.0) if since and start else seconds
    found = left if left > 0 else seconds
    return [(found, found, "activeDeadlineSeconds of its owner")]


def begun(gang: Gang, members: Mapping[TaskKey, Task]) -> float:
    """Return since when a gang has had its minimum running; 0 when nobody says, or when it has not."""
    moments = sorted(task.started for task in members.values() if task.status is Status.RUNNING and task.started)
    return moments[max(gang.min_member, 1) - 1] if len(moments) >= max(gang.min_member, 1) else 0.0


def speaker(members: Mapping[TaskKey, Task]) -> Task | None:
    """Return the pod that speaks for all pods of a gang: the first by name."""
    return members[min(members)] if members else None


def _all(places: Iterable[tuple[str, Mapping[str, str], str]], faults: list[str]) -> list[Said]:
    """Return what is said in these places: object, its annotations or labels, and the key."""
    found: list[Said] = []
    for owner, texts, key in places:
        text = texts.get(key)
        if text is None:
            continue
        seconds = range_in(text)
        if seconds is None:
            faults.append(f"{key} of the {owner}: {text!r} is not a duration; write for example '90s', '2h30m' or '30m..2h'")
        else:
            found.append((*seconds, f"{key} of the {owner}"))
    return found


class RunTimesBook:
    """The run times of the gangs of a snapshot, each read once."""

    def __init__(self, snapshot: Snapshot, *, is_predicted: bool = False) -> None:
        """Start with nothing read; with `is_predicted` gangs that say nothing take as long as others like them took."""
        self._snapshot, self._is_predicted = snapshot, is_predicted
        self._known: dict[GangKey, RunTimes] = {}

    def of(self, key: GangKey) -> RunTimes:
        """Return the run time of a gang; unknown for one that is not there."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(key)
        return found

    def _read(self, key: GangKey) -> RunTimes:
        gang = self._snapshot.gangs.get(key)
        if gang is None:
            return UNKNOWN
        members, found = self._snapshot.members_of(key), self._snapshot.run_times.get(key)
        if found is None:
            since = begun(gang, members) or self._snapshot.now if OWNER_DEADLINE in gang.annotations else 0.0
            found = run_times(gang, speaker(members), self._snapshot.queues.get(gang.queue), since=since)
        return self._predicted(key, len(members), found) if self._is_predicted and found.longest == inf else found

    def _predicted(self, key: GangKey, size: int, found: RunTimes) -> RunTimes:
        """Return what gangs like it took, from the shortest tenth to the longest, beside the maximum that is said."""
        label = likeness(key, size)
        runs = self._snapshot.finished_runs.get(label, ())
        if len(runs) < ENOUGH:
            return found
        source = f"{len(runs)} finished gangs like {label}"
        return replace(found, shortest=quantile(runs, LOW), longest=quantile(runs, HIGH), source=source, is_guess=True)
