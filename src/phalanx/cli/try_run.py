"""What `phalanx try` does with its input: the cluster, the submission entered on trial, one session, and everything shown."""

from collections import Counter
from collections.abc import Iterator
from time import monotonic

import click

from phalanx.cli import output
from phalanx.cli.explanation_text import explanation_lines
from phalanx.cli.grouping import settings_for
from phalanx.cli.policy_options import asked_policy
from phalanx.cli.remedy_output import lines_of_difference, lines_of_findings
from phalanx.cli.session_input import read_input
from phalanx.cli.try_ import TryOptions
from phalanx.errors import SnapshotError
from phalanx.explain.reason_text import counted
from phalanx.live.catalogue import connected
from phalanx.model.listing import listed
from phalanx.store.input_files import documents_of
from phalanx.store.submission import submitted
from phalanx.whatif.submission_trial import SubmissionTrial, SubmittedGang, try_submission
from phalanx.whatif.trial_cluster import TrialCluster

INDENT = "  "
MOST_PODS = 6
"""Pods that are named beside a node."""


def try_out(asked: TryOptions) -> bool:
    """Try a submission and show what becomes of it; return whether all of it starts."""
    new = [document for _, document in documents_of(asked.paths)]
    given = read_input(asked, asked.cluster_files, asked_policy(asked.config, asked.profile))
    submission = submitted(new, given.documents, settings_for(asked.names), now=given.now)
    trial = TrialCluster(given.documents, given.cluster, connected(given.policy), given.now)
    found = try_submission(trial, submission, clock=monotonic, budget_seconds=asked.timeout)
    write(found, asked.form)
    return found.starts


def write(found: SubmissionTrial, form: str) -> None:
    """Show what becomes of a submission."""
    if form != "table":
        output.write_data(found.document(), form)
        return
    for text in found.submission.problems:
        output.note(text)
    for name, text in found.submission.refused:
        click.echo(f"{name} would be rejected: {text}")
    if not found.gangs and not found.submission.refused:
        raise SnapshotError("nothing to decide: what is submitted makes no pods now")
    for gang in found.gangs:
        click.echo("\n".join(_gang_lines(gang)))
    if found.others:
        click.echo("\n".join(lines_of_difference(found.others)))


def _gang_lines(gang: SubmittedGang) -> Iterator[str]:
    if gang.explanation is None:
        yield f"{gang.key} is not known to any scheduler here"
    elif gang.starts:
        later = " once others have left" if gang.explanation.headline else ""
        nodes = set(gang.node_by_pod.values())
        yield f"{gang.key} would start{later}: {counted(len(gang.node_by_pod), 'pod')} on {counted(len(nodes), 'node')}"
        yield from _node_lines(gang)
        yield from _eviction_lines(gang)
    else:
        yield from explanation_lines(gang.explanation, output.Terminal.of_stdout())
        yield from (INDENT + text for text in lines_of_findings(gang.findings))


def _node_lines(gang: SubmittedGang) -> Iterator[str]:
    for node in sorted(set(gang.node_by_pod.values())):
        pods = [pod.partition("/")[2] for pod, place in gang.node_by_pod.items() if place == node]
        yield f"{INDENT}on {node}: {listed(pods, MOST_PODS)}"


def _eviction_lines(gang: SubmittedGang) -> Iterator[str]:
    counts = Counter((item.task.gang or item.task.key, item.action) for item in gang.evictions)
    for (victim, action), count in sorted(counts.items()):
        yield f"{INDENT}evicts {victim}: {counted(count, 'pod')}, by the action {action}"
