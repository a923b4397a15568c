"""What a session decided, as plain data: everything that is carried out, and where every gang stands.

Of the gangs only those are written that stand elsewhere than after the last session, and figures of queues as a digest. Whoever
compares two sessions makes both records in the same way, from the same checkpoint on.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from hashlib import blake2b
from typing import Any

import msgspec

from phalanx.model.task_status import Status
from phalanx.session.decision import ClaimGrant, Decisions, Outcome
from phalanx.session.shard_decisions import ShardDecisions

Record = dict[str, Any]  # Any: as msgpack has it
DIGEST_BYTES = 8
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
        self._stands: dict[tuple[str, str], list[Any]] = {}  # Any: see _stand

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
        changed: Record = {}
        for outcome in outcomes:
            place, stand = (shard, outcome.state.key), _stand(outcome)
            if self._stands.get(place) != stand:
                self._stands[place] = changed[place[1]] = stand
        return changed


def _stand(outcome: Outcome) -> list[Any]:  # Any: texts and numbers
    """Return where a gang stands: its phase, its members by status, and who refused it why."""
    state = outcome.state
    counts = {NAMES[number]: count for number, count in enumerate(state.tally.counts) if count}
    return [state.phase, counts, [f"{verdict.plugin}/{verdict.reason}" for verdict in state.verdicts]]


def _grant(grant: ClaimGrant) -> list[Any]:  # Any: texts and numbers
    return [[astuple(device) for device in grant.devices], [task.key for task in grant.users]]


def encoded(record: Record) -> bytes:
    """Return a record byte for byte, for comparisons."""
    return _ENCODER.encode(record)
