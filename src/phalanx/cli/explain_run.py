"""What `phalanx explain` does with its input: one session on it, and the explanation of one gang."""

from datetime import UTC, datetime
from time import monotonic

import click

from phalanx.cli import output
from phalanx.cli.explain import ExplainOptions
from phalanx.cli.grouping import grouped
from phalanx.cli.remedy_output import what_if_lines
from phalanx.config.policies import DEFAULT_PROFILE, policy_of_profile
from phalanx.config.schedulers import our_schedulers
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.field_values import seconds
from phalanx.errors import SnapshotError
from phalanx.explain.tree import Explanation, Line
from phalanx.live.catalogue import connected
from phalanx.session.policy import Policy
from phalanx.store.input_files import policy_of_file, take_in
from phalanx.whatif.answer import what_if
from phalanx.whatif.changes import parse_all
from phalanx.whatif.trial_cluster import TrialCluster

INDENT = "  "


def explain(asked: ExplainOptions) -> bool:
    """Explain a gang; return whether it has its minimum, or gets it as a whole once others have left."""
    key = asked.gang if "/" in asked.gang else f"default/{asked.gang}"
    answer = what_if(_trial_cluster(asked), key, parse_all(asked.changes), clock=monotonic, budget_seconds=asked.timeout)
    found = answer.trial.explanation(key)
    if found is None:
        raise SnapshotError(f"there is no gang {key} in the input")
    if asked.form == "table":
        click.echo("\n".join([*lines_of(found), *what_if_lines(answer)]))
    else:
        output.write_data({**found.document(), **answer.document()}, asked.form)
    return answer.trial.starts(key)


def _trial_cluster(asked: ExplainOptions) -> TrialCluster:
    policy = _policy(asked)
    now = datetime.now(UTC).timestamp() if asked.now is None else seconds(asked.now, where="--now")
    cluster = ObjectCluster(ignored_provisioners=policy.flags.ignored_provisioners, schedulers=our_schedulers(asked.names))
    intake = take_in(asked.files, cluster, goes_on=True)
    return TrialCluster(grouped(intake, asked.names, now), cluster, connected(policy), now)


def _policy(asked: ExplainOptions) -> Policy:
    return policy_of_file(asked.config) if asked.config else policy_of_profile(asked.profile or DEFAULT_PROFILE)


def lines_of(found: Explanation) -> list[str]:
    """Return an explanation as lines for a terminal."""
    lines = [f"{found.gang} {found.status.value.lower()}: {found.headline}".rstrip(": ")]
    for result in found.ordered:
        lines.append(f"{INDENT}{result.stage.value}")
        lines += [text for line in result.lines for text in _indented(line, 2)]
    return lines


def _indented(line: Line, depth: int) -> list[str]:
    return [INDENT * depth + line.text, *(text for below in line.lines for text in _indented(below, depth + 1))]
