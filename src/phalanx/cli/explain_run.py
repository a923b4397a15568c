"""What `phalanx explain` does with its input: one session on it, and the explanation of one gang."""

from collections.abc import Sequence
from time import monotonic

from phalanx.cli import output
from phalanx.cli.explain import ExplainOptions
from phalanx.cli.explanation_text import explanation_lines
from phalanx.cli.gang_choice import chosen_gang, owners_by_gang
from phalanx.cli.intake_notes import write_absences, write_notes
from phalanx.cli.remedy_output import what_if_lines
from phalanx.cli.session_input import read_input
from phalanx.errors import SnapshotError
from phalanx.explain.explanation import rejected_group
from phalanx.explain.tree import Explanation
from phalanx.live.catalogue import connected
from phalanx.whatif.answer import WhatIf, what_if
from phalanx.whatif.changes import parse_all
from phalanx.whatif.trial_cluster import TrialCluster


def explain(asked: ExplainOptions) -> bool:
    """Explain a gang; return whether it has its minimum, or gets it as a whole once others have left."""
    given = read_input(asked, asked.files, asked.policy)
    intake, snapshot = given.intake, given.snapshot()
    notes = write_notes(given, snapshot, intake.missing(snapshot))
    key = chosen_gang(asked.gang, asked.reach.namespace, owners_by_gang(given, snapshot))
    notes += write_absences(given, snapshot, but=key)
    trial = TrialCluster(given.documents, given.cluster, connected(given.policy), given.now)
    answer = what_if(trial, key, parse_all(asked.changes), clock=monotonic, budget_seconds=asked.timeout)
    rejected = intake.refused_groups.get(key)
    found = answer.explanation if rejected is None else rejected_group(key, rejected)
    if found is None:
        raise SnapshotError(f"there is no gang {key} {'once these changes are made' if asked.changes else 'in the input'}")
    write_explanation(found, asked.form, answer, notes)
    return answer.trial.starts(key)


def write_explanation(found: Explanation, form: str, answer: WhatIf, notes: Sequence[str] = ()) -> None:
    """Write an explanation, and what would start the gang, for people or for programs."""
    screen = output.Terminal.of_stdout()
    if form == "table":
        output.write_lines([*explanation_lines(found, screen), *what_if_lines(answer)])
    else:
        output.write_data({**found.document(), **answer.document(), **({"notes": list(notes)} if notes else {})}, form)
