"""What a session decided, as plain data: everything that is carried out, and where every gang stands.

Of the gangs only those are written that stand elsewhere than after the last session, and figures of queues as a digest. Whoever
compares two sessions makes both records in the same way, from the same checkpoint on.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from phalanx.model.task_status import Status
from phalanx.scheduling.gates import PlannedSession
from phalanx.session.decision import ClaimGrant, Decisions, Outcome
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.state.gang_state import GangState

Record = dict[str, Any]  # Any: as msgpack has it
Stand = list[Any]  # Any: texts and numbers
"""Where a gang stands; the same object for all that stand alike, so nobody changes it."""
DIGEST_BYTES = 8
GATES = "gates"
"""Stands where other records name a shard."""
NAMES = [status.name for status in Status]
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True)
class Sealed:
    """The decisions of one part of a session, safe from whoever carries them out."""

    shard: str
    decisions: Decisions


def sealed(parts: Sequence[ShardDecisions]) -> list[Sealed]:
    """Copy what is changed when decisions are carried out; it costs next to nothing."""
    return [Sealed(part.shard, _copy(part.decisions)) for part in parts]


def _copy(decisions: Decisions) -> Decisions:
    return replace(decisions, binds=dict(decisions.binds), outcomes=list(decisions.outcomes))


class DecisionRecords:
    """Makes records of sessions, one after the other."""

    def __init__(self) -> None:
        """Begin before the first session."""
        self._stands: dict[str, dict[str, Stand]] = {}
        """By shard and gang."""

    def forget(self) -> None:
        """Write all gangs again the next time."""
        self._stands = {}

    def record(self, parts: Sequence[Sealed]) -> Record:
        """Return the record of a session; what is empty is left out."""
        found = {part.shard: self._part(part) for part in parts}
        return {name: record for name, record in found.items() if record}

    def _part(self, part: Sealed) -> Record:
        own = part.decisions
        record: Record = {
            "binds": own.binds,
            "pipelined": own.pipelined,
            "evictions": {key: [item.action, item.preemptor, item.message] for key, item in own.evictions.items()},
            "annotations": own.annotations,
            "stamps": own.stamps,
            "claims": {key: _grant(grant) for key, grant in own.claims.items()},
            "faults": sorted(own.faults),
            "again": own.again,
            "queues": blake2b(_ENCODER.encode(own.queues), digest_size=DIGEST_BYTES).digest() if own.queues else b"",
            "gangs": self._changed(part.shard, own.outcomes),
        }
        return {name: value for name, value in record.items() if value or value == 0.0}

    def _changed(self, shard: str, outcomes: Sequence[Outcome]) -> Record:
        found = _stands(outcomes)
        stands = self._stands.setdefault(shard, {})
        changed = {key: stand for key, stand in found.items() if _is_other(stands.get(key), stand)} if stands else found
        stands.update(changed)
        return changed


def _is_other(before: Stand | None, stand: Stand) -> bool:
    """Tell whether a gang stands elsewhere than before; mostly both are the same object."""
    return before is not stand and before != stand


def _stands(outcomes: Sequence[Outcome]) -> Record:
    """Return where all gangs stand; one that waits for nothing mostly stands as the one before it, which is soon seen."""
    found: Record = {}
    phase, counts, stand = None, None, Stand()
    for outcome in outcomes:
        state = outcome.state
        now = state.tally.counts
        if state.verdicts or state.phase != phase or now != counts:
            stand = _stand(state)
            phase, counts = (None, None) if state.verdicts else (state.phase, now)
        found[state.gang.key] = stand
    return found


def _stand(state: GangState) -> Stand:
    """Return where a gang stands: its phase, its members by status, and who refused it why."""
    verdicts = state.verdicts
    refusals = tuple(f"{verdict.plugin}/{verdict.reason}" for verdict in verdicts) if verdicts else ()
    return _stand_of(state.phase, tuple(state.tally.counts), refusals)


@lru_cache(maxsize=4096)
def _stand_of(phase: str, counts: tuple[int, ...], refusals: tuple[str, ...]) -> Stand:
    """Return a stand; thousands of gangs stand alike, and to describe each anew took most of the time of a record."""
    return [phase, {NAMES[number]: count for number, count in enumerate(counts) if count}, list(refusals)]


def _grant(grant: ClaimGrant) -> list[Any]:  # Any: texts and numbers
    return [[astuple(device) for device in grant.devices], [task.key for task in grant.users]]


def plan_record(session: PlannedSession) -> Record:
    """Return the record of a session behind gates: the new plans of pods, and the gangs that have no room."""
    plans = {key: list(msgspec.structs.astuple(plan)) for key, plan in session.plans.items()}
    record: Record = {"plans": plans, "waits": sorted(session.waits)}
    return {GATES: {name: value for name, value in record.items() if value}}


def encoded(record: Record) -> bytes:
    """Return a record byte for byte, for comparisons."""
    return _ENCODER.encode(record)
