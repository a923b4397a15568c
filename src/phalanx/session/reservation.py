"""Reserved starts: what the plugin `reservation` wants, what `allocate` makes of it, and what is told of it."""

from dataclasses import dataclass, field

from phalanx.model.listing import listed
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey


@dataclass(frozen=True, slots=True)
class ReservationSettings:
    """For whom room is reserved, and for how long others may use it."""

    depth: int = 1
    """So many waiting gangs have a reserved start, the first in line."""
    starvation_seconds: float = 12 * 3600.0
    """A gang without a known start that has waited for so long gets nodes drained; `inf`: never."""
    drain_seconds: float = 600.0
    """On nodes that are drained only gangs may start that end within so many seconds."""
    is_predicted: bool = False
    """Run times that nobody says are those of finished gangs like it."""
    for_starved_alone: bool = False
    """Only a gang that has waited for `starvation_seconds` has a reserved start, and nobody because it is the first in line."""


@dataclass(slots=True)
class ReservedStart:
    """A gang that waits, when and where it starts, and who goes ahead of it."""

    gang: GangKey
    priority: int
    """Of the gang: more important ones need not leave it its room."""
    start: float
    """Seconds since 1970; of a gang for which nodes are drained, until when others may be on them."""
    nodes: tuple[str, ...]
    domain: str = ""
    """The network domain or node label that it has to stay in; empty for any nodes."""
    is_drained: bool = False
    """Nobody knows when the room is there: what is free on its nodes is kept, and nothing long starts there."""
    ahead: list[GangKey] = field(default_factory=list)
    """Gangs that started out of turn in this session."""
    held_back: list[GangKey] = field(default_factory=list)
    """Gangs for which there was room that is kept for this one."""

    @property
    def text(self) -> str:
        """Return when and where it starts, and how many go ahead, as a person would say it."""
        where = self.domain or listed(self.nodes)
        when = f"{where} drained for it" if self.is_drained else f"reserved from {moment_text(int(self.start))} on {where}"
        ahead = len(self.ahead)
        return when if not ahead else f"{when}; {ahead} {'gang goes' if ahead == 1 else 'gangs go'} ahead meanwhile"

    def document(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "start": moment_text(int(self.start)), "nodes": list(self.nodes), "domain": self.domain, "drained": self.is_drained,
            "ahead": list(self.ahead), "heldBack": list(self.held_back),
        }  # fmt: skip
