"""What `phalanx explain` does with its input: one session on it, and the explanation of one gang."""

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic

import click

from phalanx.cli import output
from phalanx.cli.cluster_input import read_cluster
from phalanx.cli.explain import ExplainOptions
from phalanx.cli.explanation_text import explanation_lines
from phalanx.cli.gang_choice import chosen_gang
from phalanx.cli.grouping import grouped
from phalanx.cli.intake_notes import write_notes
from phalanx.cli.remedy_output import what_if_lines
from phalanx.cli.session_time import session_time
from phalanx.config.policies import DEFAULT_PROFILE, policy_of_profile
from phalanx.config.schedulers import our_schedulers
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.explain.explanation import rejected_group
from phalanx.explain.tree import Explanation
from phalanx.explain.why import missing_groups
from phalanx.live.catalogue import connected
from phalanx.model.kinds import GROUP_KINDS, Document, object_key
from phalanx.session.policy import Policy
from phalanx.state.snapshot import Snapshot
from phalanx.store.input_files import Intake, policy_of_file
from phalanx.whatif.answer import WhatIf, what_if
from phalanx.whatif.changes import parse_all
from phalanx.whatif.trial_cluster import TrialCluster

GROUP = "PodGroup "


@dataclass(frozen=True, slots=True)
class ExplainInput:
    """A cluster that was read, ready to be decided about."""

    intake: Intake
    documents: list[Document]
    snapshot: Snapshot
    policy: Policy
    trial: TrialCluster

    @property
    def rejected(self) -> dict[str, str]:
        """The groups that could not be read, each with the reason."""
        return {name.removeprefix(GROUP): text for name, text in self.intake.refused if name.startswith(GROUP)}

    def gangs(self) -> dict[str, set[str]]:
        """Return all gangs, also those that nobody describes or that were rejected, with the names of what owns them."""
        snapshot = self.snapshot
        known = [*snapshot.gangs, *missing_groups(snapshot), *self.rejected]
        owners: dict[str, set[str]] = {str(key): set() for key in known}
        for key, members in snapshot.members.items():
            if key in owners:
                owners[key].update(_names(task.owners for task in members.values()))
        for document in self.documents:
            if document["kind"] in GROUP_NAMES and object_key(document) in owners:
                owned = document["metadata"].get("ownerReferences") or ()
                owners[object_key(document)].update(str(owner.get("name")) for owner in owned)
        return owners


GROUP_NAMES = frozenset(kind.kind for kind in GROUP_KINDS)


def _names(owners: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[2] for several in set(owners) for name in several.split(",") if name}


def explain(asked: ExplainOptions) -> bool:
    """Explain a gang; return whether it has its minimum, or gets it as a whole once others have left."""
    given = explain_input(asked)
    write_notes(given.intake, given.snapshot, given.policy, given.intake.missing(given.snapshot))
    key = chosen_gang(asked.gang, asked.reach.namespace, given.gangs())
    for name, text in given.intake.refused:
        if name != f"{GROUP}{key}":
            output.note(f"rejected: {text}")
    answer = what_if(given.trial, key, parse_all(asked.changes), clock=monotonic, budget_seconds=asked.timeout)
    found = rejected_group(key, given.rejected[key]) if key in given.rejected else answer.explanation
    if found is None:
        raise SnapshotError(f"there is no gang {key} {'once these changes are made' if asked.changes else 'in the input'}")
    write_explanation(found, asked.form, answer)
    return answer.trial.starts(key)


def write_explanation(found: Explanation, form: str, answer: WhatIf) -> None:
    """Write an explanation, and what would start the gang, for people or for programs."""
    screen = output.Terminal.of_stdout()
    if form == "table":
        lines = [*explanation_lines(found, screen), *what_if_lines(answer)]
        click.echo("\n".join(lines), color=screen.has_colour)
    else:
        output.write_data({**found.document(), **answer.document()}, form)


def explain_input(asked: ExplainOptions) -> ExplainInput:
    """Read what was named."""
    policy = policy_of_file(asked.config) if asked.config else policy_of_profile(asked.profile or DEFAULT_PROFILE)
    at = None if asked.now is None else session_time(asked.now)
    cluster = ObjectCluster(ignored_provisioners=policy.flags.ignored_provisioners, schedulers=our_schedulers(asked.names))
    intake = read_cluster(asked.files, asked.reach, cluster)
    now = intake.now if at is None else at
    documents = grouped(intake, asked.names, now)
    trial = TrialCluster(documents, cluster, connected(policy), now)
    return ExplainInput(intake, documents, cluster.snapshot(now), policy, trial)
