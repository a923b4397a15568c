"""What `phalanx try` does with its input: the cluster, the submission entered on trial, one session, and everything shown."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import monotonic

from phalanx.cli import output
from phalanx.cli.explanation_text import explanation_lines
from phalanx.cli.grouping import settings_for
from phalanx.cli.intake_notes import write_absences, write_notes
from phalanx.cli.remedy_output import lines_of_difference, lines_of_findings
from phalanx.cli.session_input import SessionInput, read_input
from phalanx.cli.try_ import TryOptions
from phalanx.errors import SnapshotError
from phalanx.explain.gang_status import GangStatus
from phalanx.explain.reason_text import counted
from phalanx.live.catalogue import connected
from phalanx.model.listing import listed
from phalanx.store.input_files import documents_of, warnings_about
from phalanx.store.submission import submitted
from phalanx.whatif.changes import parse_all
from phalanx.whatif.submission_trial import SubmissionTrial, SubmittedGang, try_submission
from phalanx.whatif.trial_cluster import TrialCluster

INDENT = "  "
MOST_PODS = 6
"""Pods that are named beside a node."""


def try_out(asked: TryOptions) -> bool:
    """Try a submission and show what becomes of it; return whether all of it starts."""
    new, changes = documents_of(asked.paths), parse_all(asked.changes)
    given = read_input(asked, asked.cluster_files, asked.policy)
    namespace = asked.reach.namespace or given.intake.namespace
    settings = settings_for(asked.names)
    submission = submitted([document for _, document in new], given.documents, settings, now=given.now, namespace=namespace)
    trial = TrialCluster(given.documents, given.cluster, connected(given.policy), given.now)
    found = try_submission(trial, submission, changes, clock=monotonic, budget_seconds=asked.timeout)
    for text in warnings_about(new):
        output.warning(text)
    write(found, asked.form, _written_notes(given, found))
    if not found.gangs and not submission.refused:
        raise SnapshotError("nothing to decide: what is submitted makes no pods now")
    return found.starts


def _written_notes(given: SessionInput, found: SubmissionTrial) -> list[str]:
    """Write and return notes on the cluster with what is submitted, which may name what is not there and have what was missed."""
    snapshot, more = found.snapshot, found.submission.documents
    missing = given.intake.missing(snapshot, more)
    for text in found.submission.problems:
        output.note(text)
    return [*found.submission.problems, *write_notes(given, snapshot, missing), *write_absences(given, snapshot, more)]


def write(found: SubmissionTrial, form: str, notes: Sequence[str]) -> None:
    """Show what becomes of a submission; programs get the notes with it."""
    if form != "table":
        output.write_data({**found.document(), "notes": list(notes)}, form)
        return
    for name, text in found.submission.refused:
        output.say(f"{name} would be rejected: {text}")
    sources = Counter(gang.source for gang in found.gangs)
    for gang in found.gangs:
        output.write_lines(_gang_lines(gang, _title(gang, is_only=sources[gang.source] == 1)))
    if found.others:
        output.write_lines(lines_of_difference(found.others))


def _title(gang: SubmittedGang, *, is_only: bool) -> str:
    """Return what a user calls a gang: what was submitted; the name of its group is made up, and shown to tell several apart."""
    if not gang.source:
        return gang.key
    return gang.source if is_only else f"{gang.source} (gang {gang.key.partition('/')[2]})"


def _gang_lines(gang: SubmittedGang, title: str) -> Iterator[str]:
    if gang.explanation is None:
        yield f"{title} is not known to any scheduler here"
    elif gang.starts:
        later = " once others have left" if gang.explanation.headline else ""
        verb = "runs already" if gang.explanation.status is GangStatus.RUNS else f"would start{later}"
        nodes = set(gang.node_by_pod.values())
        yield f"{title} {verb}: {counted(len(gang.node_by_pod), 'pod')} on {counted(len(nodes), 'node')}"
        yield from _node_lines(gang)
        yield from _eviction_lines(gang)
    else:
        yield from explanation_lines(replace(gang.explanation, gang=title), output.Terminal.of_stdout())
        yield from (INDENT + text for text in lines_of_findings(gang.findings))


def _node_lines(gang: SubmittedGang) -> Iterator[str]:
    for node in sorted(set(gang.node_by_pod.values())):
        pods = [pod.partition("/")[2] for pod, place in gang.node_by_pod.items() if place == node]
        yield f"{INDENT}on {node}: {listed(pods, MOST_PODS)}"


def _eviction_lines(gang: SubmittedGang) -> Iterator[str]:
    counts = Counter((item.task.gang or item.task.key, item.action) for item in gang.evictions)
    for (victim, action), count in sorted(counts.items()):
        yield f"{INDENT}evicts {victim}: {counted(count, 'pod')}, by the action {action}"
