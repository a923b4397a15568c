"""What `phalanx schedule` does with its input: complete it, group what has no group, hold one session, and show everything."""

from collections.abc import Sequence
from dataclasses import dataclass

from phalanx.cli import output
from phalanx.cli.intake_notes import write_notes
from phalanx.cli.schedule import ScheduleOptions
from phalanx.cli.session_input import SessionInput, read_input
from phalanx.cli.trace_options import LEVELS
from phalanx.config.policies import policy_of_gates
from phalanx.explain.answer import trace, whole_answer, with_plans, with_refused
from phalanx.explain.gang_rows import GangRow, all_rows, gated_rows
from phalanx.explain.no_effect import notes_without_effect
from phalanx.live.catalogue import connected
from phalanx.scheduling.gates import gated_gangs
from phalanx.scheduling.shards import decide
from phalanx.session.policy import Policy
from phalanx.session.shard_decisions import ShardDecisions, together
from phalanx.stepping.stepped_session import SteppedSession
from phalanx.store.input_files import Intake, read_usage
from phalanx.store.left_out import LeftOut, left_out
from phalanx.store.missing_references import MissingReference


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The decisions of one session, and what it did not look at."""

    intake: Intake
    parts: Sequence[ShardDecisions]
    gated: output.GatedRows
    left_out: Sequence[LeftOut]
    missing: Sequence[MissingReference]
    notes: Sequence[str]
    """What was left out or may surprise, in a sentence each."""

    @property
    def rows(self) -> list[GangRow]:
        """Every gang."""
        return all_rows(self.parts, self.gated.rows, self.intake.refused_groups)

    @property
    def is_all_well(self) -> bool:
        """Tell whether every gang has its minimum, and nothing is left out that somebody expects to be scheduled."""
        has_minima = all(row.status.has_minimum for row in self.rows)
        return has_minima and not self.intake.refused and not any(item.is_ours for item in self.left_out)


def scheduled(asked: ScheduleOptions, policy: Policy) -> Scheduled:
    """Hold one session on the input."""
    given = read_input(asked, asked.paths, policy)
    intake = given.intake
    given.cluster.put_history(read_usage(asked.usage))
    snapshot = given.snapshot()
    missing = intake.missing(snapshot)
    unknown = [f"--gang: the input has no gang {name}" for name in asked.gangs if name not in snapshot.gangs]
    notes = [*write_notes(given, snapshot, missing), *unknown]
    for text in unknown:
        output.note(text)
    parts = decide(snapshot, connected(policy), trace_level=int(asked.verbosity or 0), traced_gangs=asked.gangs)
    for key, fault in (item for part in parts for item in part.decisions.faults.items()):
        output.note(f"gang {key}: {fault.traceback if asked.verbosity == LEVELS[-1] else fault.sentence}")
    for text in notes_without_effect((part.snapshot, part.decisions) for part in parts):
        output.note(text)
    return Scheduled(intake, parts, gated_of(given, parts[0]), left_out(intake, snapshot), missing, notes)


def stepped(asked: ScheduleOptions, policy: Policy) -> SteppedSession:
    """Return the session on what was asked for, to be stepped through."""
    given = read_input(asked, asked.paths, policy)
    given.cluster.put_history(read_usage(asked.usage))
    snapshot = given.snapshot()
    write_notes(given, snapshot, given.intake.missing(snapshot))
    return SteppedSession(snapshot, connected(policy))


def gated_of(given: SessionInput, part: ShardDecisions) -> output.GatedRows:
    """Look behind our gates, as `phalanx run` does."""
    found = gated_gangs(connected(policy_of_gates(given.policy)), given.documents, given.now)
    if found is None:
        return output.GatedRows((), part.snapshot, {})
    rows = gated_rows(ShardDecisions("", found.snapshot, found.decisions), found.gangs, found.gate)
    return output.GatedRows(rows, found.snapshot, found.node_by_pod)


def write(found: Scheduled, asked: ScheduleOptions) -> None:
    """Show the decisions in the form that was asked for."""
    if asked.form == "table":
        output.write_trace(together(found.parts))
        output.write_tables(found.parts, output.Terminal.of_stdout(), found.gated, found.rows, found.left_out)
        output.write_refused(found.intake.refused)
        output.write_left_out(found.left_out)
        return
    answer = with_plans(whole_answer(found.parts), found.gated.rows, found.gated.node_by_pod)
    parts = {
        "leftOut": [{"object": item.object, "reason": item.reason, "message": item.message} for item in found.left_out],
        "missing": [item.document(found.intake.absent) for item in found.missing],
        "notes": list(found.notes),
        "trace": trace(together(found.parts)) if asked.verbosity else [],
    }
    always = ("trace",) if asked.verbosity else ()
    more = {name: items for name, items in parts.items() if items or name in always}
    output.write_data({**with_refused(answer, found.intake.refused), **more}, asked.form)
