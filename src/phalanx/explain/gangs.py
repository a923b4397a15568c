"""The gangs of a running cluster as documents: what `phalanx get gangs` and `phalanx describe gang` show.

They are read from the cluster as it is now. The reason why one waits comes from the last session that looked at it, or, for
commands that run no session, from what was recorded about it.
"""

from collections.abc import Callable, Mapping, Set
from typing import Any

from phalanx.dialects.status import condition_document
from phalanx.dialects.traits import dialect_status
from phalanx.explain.cause_key import CauseKey, cause_of, cause_of_text
from phalanx.explain.gang_status import GangStatus, gang_status, is_empty, is_taken_away, minimum_of
from phalanx.explain.held_back import has_foreign, held_back
from phalanx.explain.missing_groups import missing_groups
from phalanx.explain.reason_code import reason_code
from phalanx.explain.recorded import refusal
from phalanx.explain.why import why
from phalanx.model.gang import Gang
from phalanx.model.kinds import GROUP_BY_DIALECT, split_key
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey, Task
from phalanx.model.task_status import HOLDING, Status
from phalanx.session.decision import Decisions, Outcome
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

API_VERSION = "phalanx.dev/v1alpha1"


class GangBook:
    """Keeps the reason why each gang waits, from the last session that looked at it."""

    def __init__(self) -> None:
        """Start without a session."""
        self._why: dict[GangKey, str] = {}
        self._codes: dict[GangKey, str] = {}
        self._reported: dict[GangKey, CauseKey | None] = {}
        """The causes that were reported, without those that have an event of their own, such as a timeout."""

    def note(
        self, snapshot: Snapshot, decisions: Decisions, behind_gates: Mapping[GangKey, str], *, reported: Set[GangKey] = frozenset()
    ) -> dict[GangKey, str]:  # fmt: skip
        """Remember a session, and why gangs wait behind our gate; return the gangs for which the reason to wait is a new one.

        Gangs in `reported` have an event of their own in this session: what they waited for before is not new after it. Nobody
        waits in a gang without pods, nor in one that its owner takes away.
        """
        self._why = {key: text for key, text in self._why.items() if key in snapshot.gangs}
        self._reported = {key: cause for key, cause in self._reported.items() if key in snapshot.gangs}
        outcomes = {GangKey(outcome.state.key): outcome for outcome in decisions.outcomes}
        found = {key: behind_gates.get(key) or why(outcome, snapshot) for key, outcome in outcomes.items()}
        self._why |= found
        self._codes = {key: code for key, code in self._codes.items() if key in snapshot.gangs}
        self._codes |= {key: reason_code(outcome, snapshot) for key, outcome in outcomes.items()}
        causes = {
            key: _cause(outcomes[key], snapshot, text, is_behind_gate=key in behind_gates)
            for key, text in found.items()
            if key not in reported
        }
        changed = [key for key, cause in causes.items() if cause is not None and self._reported.get(key) != cause]
        self._reported |= causes
        return {key: found[key] for key in changed if not _is_left_by_its_owner(outcomes[key].state)}

    def documents(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return all gangs, each that waits with the reason that the last session gave."""
        return gang_list(snapshot, lambda state: self._reason(state, snapshot), lambda state: self.code(GangKey(state.key)))

    def reason(self, gang: GangKey, snapshot: Snapshot) -> str:
        """Return why a gang of the cluster waits, from the last session that looked at it; empty if it did not wait then."""
        if gang in self._why:
            return self._why[gang]
        return _unseen(GangState(snapshot.gangs[gang], ((task, -1) for task in snapshot.members_of(gang).values())), snapshot)

    def code(self, gang: GangKey) -> str:
        """Return the reason code of a gang, from the last session that looked at it."""
        return self._codes.get(gang, "")

    def _reason(self, gang: GangState, snapshot: Snapshot) -> str:
        key = GangKey(gang.key)
        return self._why[key] if key in self._why else _unseen(gang, snapshot)


def _unseen(gang: GangState, snapshot: Snapshot) -> str:
    """Say why no session has looked at a gang."""
    if has_foreign(gang.tasks):
        return "; ".join(held_back(gang, snapshot.surroundings.schedulers))
    return "no session has looked at it yet"


def _cause(outcome: Outcome, snapshot: Snapshot, text: str, *, is_behind_gate: bool) -> CauseKey | None:
    """Return why a gang waits; None when it does not. What a session behind our gate found is known by its sentence alone."""
    if not text:
        return None
    return cause_of_text(text) if is_behind_gate else cause_of(outcome, snapshot)


def _is_left_by_its_owner(gang: GangState) -> bool:
    return is_empty(gang) or is_taken_away(gang)


def gang_list(
    snapshot: Snapshot, why: Callable[[GangState], str], code: Callable[[GangState], str] = lambda state: ""
) -> dict[str, Any]:  # fmt: skip
    """Return all gangs as one list, by namespace and name; those that pods name and nobody describes come last.

    `why` is asked about gangs that wait, and those of which a part waits. So is `code` for their reason code, in place of which the
    condition of the group stands where it is not known.
    """
    items = [_document(snapshot, key, why, code) for key in sorted(snapshot.gangs)]
    items += [_missing(snapshot, key, text) for key, text in missing_groups(snapshot).items()]
    return {"apiVersion": API_VERSION, "kind": "GangList", "metadata": {}, "items": items}


def _document(
    snapshot: Snapshot, key: GangKey, why: Callable[[GangState], str], code: Callable[[GangState], str]
) -> dict[str, Any]:  # fmt: skip
    gang = snapshot.gangs[key]
    members = sorted(snapshot.members_of(key).values(), key=lambda task: task.key)
    state = GangState(gang, ((task, -1) for task in members))
    namespace, name = split_key(key)
    refused, waits = refusal(gang), _waits(state)
    return {
        "apiVersion": API_VERSION, "kind": "Gang",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": moment_text(int(gang.created))},
        "dialect": gang.dialect, "group": _group_of(gang), "queue": gang.queue,
        "phase": dialect_status(gang).current_phase(state), "status": gang_status(state).value,
        "minimum": minimum_of(state), "placed": state.tally.total(HOLDING), "running": state.tally.counts[Status.RUNNING],
        "reason": (code(state) or (refused.reason if refused is not None else "")) if waits else "",
        "why": why(state) if waits else "",
        "conditions": [condition_document(item) for item in gang.conditions],
        "members": [_member(task) for task in members],
    }  # fmt: skip


def _missing(snapshot: Snapshot, key: GangKey, text: str) -> dict[str, Any]:
    """Return a gang that nobody describes: its pods, and what they wait for."""
    members = sorted(snapshot.members_of(key).values(), key=lambda task: task.key)
    namespace, name = split_key(key)
    return {
        "apiVersion": API_VERSION, "kind": "Gang", "metadata": {"name": name, "namespace": namespace},
        "dialect": members[0].dialect, "group": "", "queue": "", "phase": "Pending", "reason": "",
        "status": GangStatus.WAITS.value, "minimum": 0, "placed": 0, "running": 0,
        "why": text, "conditions": [], "members": [_member(task) for task in members],
    }  # fmt: skip


def _group_of(gang: Gang) -> str:
    """Name the API of the group object; where pods alone make a gang, the dialect."""
    kind = GROUP_BY_DIALECT.get(gang.dialect)
    return gang.dialect if kind is None or not gang.has_object else f"{kind.group}/{gang.version or kind.version}"


def _waits(state: GangState) -> bool:
    """Tell whether the gang, or a part of it, has not started."""
    return not gang_status(state).has_minimum or bool(state.tally.counts[Status.PENDING])


def _member(task: Task) -> dict[str, str]:
    word = "Gated" if task.is_gated and task.status is Status.PENDING else task.status.word
    return {"pod": task.name, "status": word, "node": task.node}
