"""What becomes of objects as if they were submitted now: one session with them, and what would start those that wait."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from phalanx.explain.tree import Explanation
from phalanx.model.kinds import kind_of, object_key
from phalanx.session.decision import Eviction
from phalanx.state.snapshot import Snapshot
from phalanx.store.submission import Submission
from phalanx.whatif.answer import found_remedies
from phalanx.whatif.difference import GangDifference, difference
from phalanx.whatif.remedy import Findings
from phalanx.whatif.search import Clock
from phalanx.whatif.trial_cluster import Change, Edit, Trial, TrialCluster


@dataclass(frozen=True, slots=True)
class SubmittedGang:
    """What a session decides for a gang that is submitted."""

    key: str
    source: str
    """What was submitted that it comes from, as "Job ml/train"; empty if its group was."""
    starts: bool
    """It has its minimum, or gets it as a whole once others have left."""
    node_by_pod: dict[str, str]
    """Where its pods would run."""
    evictions: Sequence[Eviction]
    """Who would have to go for it."""
    explanation: Explanation | None
    findings: Findings
    """What would start it, if it waits."""

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        found = {} if self.explanation is None else self.explanation.document()
        evictions = [
            {"pod": item.task.key, "gang": item.task.gang or "", "node": item.task.node, "action": item.action}
            for item in self.evictions
        ]
        remedies = {} if self.starts else {"wouldStart": self.findings.document()}
        return {
            "gang": self.key,
            "object": self.source,
            "starts": self.starts,
            "nodes": self.node_by_pod,
            "evictions": evictions,
            **found,
            **remedies,
        }


@dataclass(frozen=True, slots=True)
class SubmissionTrial:
    """What becomes of a submission."""

    gangs: Sequence[SubmittedGang]
    others: Sequence[GangDifference]
    """What else would change."""
    submission: Submission
    snapshot: Snapshot
    """The cluster with it, before the session."""
    changes: Sequence[Change] = ()
    """What is assumed to be different besides."""

    @property
    def starts(self) -> bool:
        """Tell whether all of it is taken and starts."""
        return bool(self.gangs) and all(gang.starts for gang in self.gangs) and not self.submission.refused

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "starts": self.starts, **({"if": [change.text for change in self.changes]} if self.changes else {}),
            "gangs": [gang.document() for gang in self.gangs],
            "others": [found.document() for found in self.others],
            "refused": [{"object": name, "message": text} for name, text in self.submission.refused],
            "notes": list(self.submission.problems),
        }  # fmt: skip


def try_submission(
    cluster: TrialCluster, submission: Submission, changes: Sequence[Change] = (), *, clock: Clock, budget_seconds: float
) -> SubmissionTrial:
    """Hold a session with what is submitted and some changes, and take all back; the time is shared by all gangs that wait."""
    before = cluster.decide()
    keys = [str(key) for key in submission.gangs]
    deadline = clock() + budget_seconds
    with cluster.changed(list(_edits(cluster, submission))), cluster.with_changes(changes):
        snapshot, trial = cluster.snapshot(), cluster.decide(traced=keys)
        gangs = []
        for number, key in enumerate(submission.gangs):
            share = (deadline - clock()) / (len(keys) - number)
            gangs.append(_gang(cluster, trial, key, submission.sources.get(key, ""), _Search(clock, share)))
    others = [found for found in difference(before, trial) if found.gang not in keys]
    return SubmissionTrial(gangs, others, submission, snapshot, changes)


class _Search(NamedTuple):
    """How long to look for what would start a gang."""

    clock: Clock
    seconds: float


def _edits(cluster: TrialCluster, submission: Submission) -> Iterator[Edit]:
    for kind, key in submission.removed:
        found = cluster.find(kind, key)
        if found is not None:
            yield Edit(found, None)
    for document in submission.documents:
        kind = kind_of(document)
        key = object_key(document) if kind.is_namespaced else str(document["metadata"]["name"])
        yield Edit(cluster.find(kind, key), document)


def _gang(cluster: TrialCluster, trial: Trial, key: str, source: str, allowed: _Search) -> SubmittedGang:
    does_start, findings = trial.starts(key), Findings((), 0)
    if not does_start:
        findings = found_remedies(cluster, key, trial, clock=allowed.clock, budget_seconds=allowed.seconds)
    evictions = [item for part in trial.parts for item in part.decisions.evictions.values() if item.preemptor == key]
    return SubmittedGang(key, source, does_start, _places(trial, key), evictions, trial.explanation(key), findings)


def _places(trial: Trial, key: str) -> dict[str, str]:
    """Return the nodes of a gang's pods, those included that wait until others have left."""
    reading = trial.reading(key)
    members = {str(task.task.key) for task in reading.gang.tasks} if reading is not None else set()
    found = {} if reading is None else {**reading.decisions.pipelined, **reading.decisions.binds}
    running = {} if reading is None else {str(task.task.key): task.task.node for task in reading.gang.tasks if task.task.node}
    return {**running, **{str(pod): node for pod, node in sorted(found.items()) if str(pod) in members}}
