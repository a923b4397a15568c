"""An explanation as a tree: what a gang went through in a session, stage by stage, and what each stage says about it.

The headline is the sentence of the WHY column, of conditions and events. The stages below it name the things behind the sentence
one by one, in the order in which a gang goes through them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from phalanx.explain.gang_status import GangStatus
from phalanx.state.verdict import Number


class Stage(StrEnum):
    """What a gang goes through, in this order."""

    VALID = "valid"
    """Its members, roles and sub-groups are there."""
    ADMITTED = "admitted"
    """Its queue takes it."""
    TURN = "its turn"
    """Those ahead of it have been served."""
    FITS = "fits"
    """Nodes have room for its tasks and take them."""
    TOPOLOGY = "topology"
    """One domain has room for all of it."""
    EVICTIONS = "evictions"
    """Others may leave for it."""
    BIND = "bind"
    """Its nodes take its pods."""
    HISTORY = "history"
    """Since when it waits, and what changed last."""


DECIDES_FIRST = (Stage.VALID, Stage.ADMITTED, Stage.BIND, Stage.FITS, Stage.TOPOLOGY, Stage.TURN, Stage.EVICTIONS)
"""Of several stages that hold a gang up, the one that somebody has to mend first: without its members no queue helps, without room
nobody's turn does."""


@dataclass(frozen=True, slots=True)
class Line:
    """One statement with the lines that detail it."""

    text: str
    code: str = ""
    """The reason code, if it is a reason."""
    things: Mapping[str, Number] = field(default_factory=dict)
    """What the text names, for programs: names and numbers."""
    lines: tuple["Line", ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as plain data, without what is empty."""
        below = [line.document() for line in self.lines]
        found = {"text": self.text, "code": self.code, "things": dict(self.things), "lines": below}
        return {key: value for key, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a stage says."""

    stage: Stage
    ok: bool | None
    """Whether the gang got through; None where it did not come so far, or the stage has no say."""
    lines: tuple[Line, ...] = ()
    is_cause: bool = False
    """It alone holds the gang up, and what other stages say follows from it: there is room, but not in one domain."""

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"stage": self.stage.value, "ok": self.ok, "lines": [line.document() for line in self.lines]}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a gang waits, or what becomes of it."""

    gang: str
    queue: str
    status: GangStatus
    code: str
    """The reason code; empty if it has its minimum."""
    headline: str
    """Why it waits, in one sentence; empty if nothing of it does."""
    stages: tuple[StageResult, ...]
    more_nodes_help: bool | None = None
    """Whether it lacks nodes, which an autoscaler could bring; None if nobody of it waits."""

    @property
    def ordered(self) -> Iterator[StageResult]:
        """The stages with something to say: the one that decides first, the others in their order."""
        said = [result for result in self.stages if result.lines]
        decisive = self.decisive
        if decisive is not None:
            yield decisive
        yield from (result for result in said if result is not decisive)

    @property
    def decisive(self) -> StageResult | None:
        """The stage that holds the gang up; None where none does."""
        failed = [result for result in self.stages if result.ok is False and result.lines]
        return min(failed, key=lambda result: (not result.is_cause, DECIDES_FIRST.index(result.stage)), default=None)

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        helps = {} if self.more_nodes_help is None else {"moreNodesHelp": self.more_nodes_help}
        return {
            "gang": self.gang, "queue": self.queue, "status": self.status.value, "reason": self.code, "why": self.headline, **helps,
            "stages": [result.document() for result in self.ordered],
        }  # fmt: skip
