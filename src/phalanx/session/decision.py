"""What a cycle decides, as data. Sinks carry it out, dialects write it down, `explain` tells it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from phalanx.model.storage import GrantedDevice
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.placement import Vector
from phalanx.placement.ledger import Ledger
from phalanx.session.reservation import ReservedStart
from phalanx.session.trace import TraceEvent
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Eviction:
    """A running task that has to go, for whom and why."""

    task: Task
    action: str
    preemptor: str
    message: str


@dataclass(frozen=True, slots=True)
class ClaimGrant:
    """What becomes of a resource claim: its devices and users; without either it is free once those who were evicted have left."""

    devices: tuple[GrantedDevice, ...] = ()
    users: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What a session left on the nodes, one for all gangs of the session."""

    ledger: Ledger
    limits: Mapping[str, Mapping[str, Vector]] = field(default_factory=dict)
    """What queues may still take however large the cluster gets, as in `Decisions`."""
    memo: dict[Hashable, object] = field(default_factory=dict)
    """What was put into words already: gangs that wait for the same are many."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a session leaves for one gang: its state, and whether a plugin guards the gang's minimum."""

    state: GangState
    is_guarded: bool
    """A plugin of the session holds gangs to their minima."""
    now: float = 0.0
    """When the session took place, in seconds since 1970."""
    is_loose: bool = False
    """The policy lets a part of a gang start without the rest."""
    was_tried: bool = False
    """There is no admission: the gang was tried if its queue and its pods are there."""
    says_why: bool = True
    """Somebody reads why the gang waits."""
    seen: Snapshot | None = None
    """The part of the cluster that its scheduler sees, where several share the cluster."""
    aftermath: Aftermath | None = field(default=None, compare=False, repr=False)
    """What the session left on the nodes; None when none looked at the gang."""

    @classmethod
    def left_out(cls, snapshot: Snapshot, key: GangKey, verdict: Verdict) -> "Outcome":
        """Return the outcome of a gang that no session looked at, told why; its members are where they are."""
        numbers = snapshot.nodes.number_by_name
        members = ((task, numbers.get(task.node, -1)) for task in snapshot.members_of(key).values())
        state = GangState(snapshot.gangs[key], members)
        state.verdicts.append(verdict)
        return cls(state, False, snapshot.now)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a gang was left out: what happened, and where in the scheduler."""

    sentence: str
    traceback: str


@dataclass(slots=True)
class Decisions:
    """The result of one cycle."""

    binds: dict[TaskKey, str] = field(default_factory=dict)
    pipelined: dict[TaskKey, str] = field(default_factory=dict)
    evictions: dict[TaskKey, Eviction] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    queues: dict[str, dict[str, Mapping[str, float]]] = field(default_factory=dict)
    limits: dict[str, dict[str, Vector]] = field(default_factory=dict, compare=False, repr=False)
    """What queues of gangs that wait may still take however large the cluster gets, by whose limit it is: theirs, or one above."""
    trace: list[TraceEvent] = field(default_factory=list)
    annotations: dict[TaskKey, dict[str, str]] = field(default_factory=dict)
    """What whoever binds a pod writes on it at the same time, such as the cards that it got."""
    stamps: dict[GangKey, dict[str, str | None]] = field(default_factory=dict)
    """Annotations of groups to write, and with None to remove."""
    binds_by_request: bool = False
    """Every bind is a BindRequest; what binder and controllers write besides is part of the answer."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Options of the policy that whoever carries the decisions out has to know."""
    counts_unplaced: bool = False
    """Members without requests count before they have a place, also for whoever asks whether a gang was bound whole."""
    heeds_tiers: bool = False
    """A plugin of the session keeps gangs within the tiers of HyperNodes that they ask for."""
    claims: dict[str, ClaimGrant] = field(default_factory=dict)
    """Resource claims whose allocation changes."""
    reservations: list[ReservedStart] = field(default_factory=list)
    """Gangs that wait and have a reserved start, the first in line first."""
    faults: dict[GangKey, Fault] = field(default_factory=dict)
    """Gangs that were left out because the session failed on them."""
    is_guarded: bool = False
    """A plugin of the session holds gangs to their minima."""
    again: float | None = None
    """When something is due because of time alone, in seconds since 1970; another session should be held then."""

    depends_on_time: bool = False
    """Another session may decide otherwise though nothing but the time has changed, and nobody knows when."""

    @property
    def is_settled(self) -> bool:
        """Tell whether there is nothing to carry out, and time alone changes nothing before `again`."""
        changes = (self.binds, self.pipelined, self.evictions, self.annotations, self.stamps, self.claims, self.faults)
        return not self.depends_on_time and not any(changes)

    def at(self, now: float) -> "Decisions":
        """Return the same decisions as they would be taken at another time."""
        return replace(self, outcomes=[replace(outcome, now=now) for outcome in self.outcomes])

    def look_again(self, moment: float) -> None:
        """Ask for a session at a moment, unless one is asked for before."""
        self.again = moment if self.again is None else min(self.again, moment)

    def may_change_with_time(self) -> None:
        """Say that another session may decide otherwise although nothing but the time has changed, and nobody knows when."""
        self.depends_on_time = True

    def stamp(self, gang: GangKey, key: str, text: str | None) -> None:
        """Write an annotation of a group, or remove it."""
        self.stamps.setdefault(gang, {})[key] = text
