"""The kinds of steps that searches record: network domains, victims with the votes about them, and scenarios of the profile kai."""

from collections.abc import Mapping, Sequence

import msgspec

from phalanx.model.listing import listed
from phalanx.session.trace import TraceEvent, TrialEvent
from phalanx.session.trace_events import Amounts, amounts_text

UNCOUNTED = -1
"""Where nobody counted how many tasks have room in a domain."""

# --- domains ---------------------------------------------------------------------------------------------------------------


class DomainsOrdered(TraceEvent, frozen=True):
    """The domains that a gang may use, in groups; a group is tried if none of those before it works."""

    at_level, event = 4, "domains"
    gang: str
    action: str
    groups: Sequence[Sequence[str]]

    @property
    def text(self) -> str:
        """The domains, group by group."""
        groups = "; then ".join(listed(group) for group in self.groups)
        return f"domains for gang {self.gang} in {self.action}: {groups}"


class NoDomain(TraceEvent, frozen=True):
    """No domain is allowed to a gang, or none could have room."""

    at_level, event = 3, "no domain"
    sentence = "no domain can take gang {gang} in {action}: {reason}"
    gang: str
    action: str
    reason: str


class _PartEvent(TrialEvent, frozen=True, kw_only=True):
    """A step about a gang, or about a part of it."""

    part: str = ""
    """The sub-group; empty for the whole gang."""


class _DomainEvent(_PartEvent, frozen=True):
    """A step about a domain for a gang, or for a part of it."""

    gang: str
    domain: str

    @property
    def where(self) -> str:
        """The domain, and the part if it is about one."""
        return f"{self.domain} with its part {self.part}" if self.part else self.domain

    @property
    def unmarked(self) -> str:
        """The sentence without the mark."""
        return self.sentence.format_map({**self.fields, "domain": self.where})


class DomainTried(_DomainEvent, frozen=True):
    """A gang, or a part of it, is tried in a domain."""

    at_level, event, sentence = 3, "domain", "try gang {gang} in {domain} ({action})"
    action: str


class DomainRefused(_DomainEvent, frozen=True):
    """A domain is not tried because it has too little room by a first check, or may not be used."""

    at_level, event, sentence = 3, "domain refused", "gang {gang} does not fit into {domain}: {reason}"
    reason: str
    placed: int = UNCOUNTED
    """How many of its tasks have room there."""
    needed: int = 0


class DomainLeft(_DomainEvent, frozen=True):
    """A domain does not work."""

    at_level, event, sentence = 3, "domain left", "gang {gang} leaves {domain}: {reason}"
    reason: str
    placed: int = UNCOUNTED
    """How many of its tasks had a node there."""
    needed: int = 0


class DomainWorks(TraceEvent, frozen=True):
    """A gang fits into a domain; others may score higher."""

    at_level, event, sentence = 3, "domain works", "gang {gang} fits into {domain}, score {score:g}"
    gang: str
    domain: str
    score: float


class DomainSpared(TraceEvent, frozen=True):
    """A domain is not tried because it cannot win."""

    at_level, event = 5, "domain spared"
    sentence = "{domain} is not tried for gang {gang}: it scores {bound:g} at most, and the best so far {best:g}"
    gang: str
    domain: str
    bound: float
    best: float


class DomainChosen(_DomainEvent, frozen=True):
    """The domain in which a gang is placed."""

    at_level, event, sentence = 3, "domain chosen", "gang {gang} goes to {domain}"


# --- victims ---------------------------------------------------------------------------------------------------------------


class MayNotEvict(TraceEvent, frozen=True):
    """Nobody is evicted for a task."""

    at_level, event, sentence = 4, "may not evict", "task {task} cannot {action}: {reason}"
    gang: str
    task: str
    action: str
    reason: str


class NoTaskLeft(TraceEvent, frozen=True):
    """No task of a starving gang waits for a node."""

    at_level, event, sentence = 3, "no task", "gang {gang}: no waiting task to {action} for"
    gang: str
    action: str


class NodeConsidered(TrialEvent, frozen=True):
    """Who runs on a node and could go, before plugins are asked."""

    at_level, trial_level, event = 3, 5, "node"
    gang: str
    task: str
    node: str
    running: int
    spared: Mapping[str, int]
    """How many are none, by reason."""

    @property
    def unmarked(self) -> str:
        """How many are candidates, and why the others are not."""
        candidates = self.running - sum(self.spared.values())
        why = "; ".join(f"{count} {reason}" for reason, count in self.spared.items())
        head = f"consider task {self.task} on node {self.node}: {candidates} of {self.running} running task(s) are candidates"
        return f"{head}{f'; not: {why}' if why else ''}"


class VictimsVoted(TraceEvent, frozen=True):
    """What comes out of the votes about victims."""

    at_level, event = 4, "victims"
    gang: str
    task: str
    hook: str
    candidates: int
    votes: Mapping[str, Sequence[str] | None]
    """The tasks that each plugin lets go; None for no say."""
    victims: Sequence[str]
    concerned: Sequence[str]

    @property
    def gangs(self) -> tuple[str, ...]:
        """The gang that needs room, and those that may lose tasks."""
        return (self.gang, *self.concerned)

    @property
    def text(self) -> str:
        """The victims, and how many each plugin lets go."""
        said = ", ".join(f"{name} {'no say' if vote is None else len(vote)}" for name, vote in self.votes.items())
        victims = f": {listed(self.victims)}" if self.victims else ""
        return f"{len(self.victims)} of {self.candidates} task(s) may go for {self.task}{victims} ({said or 'nobody asked'})"


class VictimsRefused(TraceEvent, frozen=True):
    """The candidates that a plugin does not let go."""

    at_level, event = 4, "victims refused"
    gang: str
    task: str
    plugin: str
    reason: str
    victims: Sequence[str]
    concerned: Sequence[str]

    @property
    def gangs(self) -> tuple[str, ...]:
        """The gang that needs room, and those of the candidates."""
        return (self.gang, *self.concerned)

    @property
    def text(self) -> str:
        """Who is protected, and why."""
        why = f", {self.reason}" if self.reason else ""
        return f"{self.plugin} refuses {len(self.victims)} victim(s) for {self.task}{why}: {listed(self.victims)}"


class SparedGang(msgspec.Struct, frozen=True):
    """A running gang that gives nothing, who says so, and why: the reason follows its name."""

    gang: str
    queue: str
    plugin: str
    code: str
    reason: str
    numbers: Mapping[str, int | float | str]


class NearestNode(msgspec.Struct, frozen=True):
    """The node that comes nearest to having room for a task once all have left who may."""

    node: str
    lacks: Amounts
    """What it lacks even then; nothing where it has room for a task, and there are only too few such nodes."""
    leave: Sequence[str]
    """The tasks that would leave it."""
    places: int
    """How many tasks of those needed would have room on all nodes."""
    needed: int


class NoVictimsFound(TraceEvent, frozen=True):
    """An action that evicts makes no room for a gang: the cause, who may go, and why the others stay."""

    at_level, event = 4, "no victims"
    gang: str
    action: str
    code: str
    reason: str
    may_go: Sequence[str]
    spared: Sequence[SparedGang]
    nearest: NearestNode | None

    @property
    def text(self) -> str:
        """The cause, and how many gangs may go or stay."""
        counts = f"{len(self.may_go)} gang(s) may go, {len(self.spared)} stay"
        return f"{self.action} finds no victims for gang {self.gang}: {self.reason} ({counts})"


class RoomMade(TraceEvent, frozen=True):
    """What evictions on a node make room for."""

    at_level, event = 3, "room made"
    gang: str
    task: str
    node: str
    victims: Sequence[str]
    freed: Amounts
    requested: Amounts

    @property
    def text(self) -> str:
        """What is freed, and what was asked for."""
        freed = f"{len(self.victims)} victim(s) with {amounts_text(self.freed)}"
        return f"room on node {self.node} for task {self.task}: {freed}; requested {amounts_text(self.requested)}"


class RoomNotMade(TraceEvent, frozen=True):
    """A node has too little room even without its victims."""

    at_level, event, sentence = 5, "no room made", "no room on node {node} for task {task}: {reason}"
    gang: str
    task: str
    node: str
    reason: str


# --- the profile kai -------------------------------------------------------------------------------------------------------


class JobTried(TraceEvent, frozen=True):
    """A job has its turn."""

    at_level, event, sentence = 3, "job", "try job {gang} of queue {queue} in {action}: {count} task(s)"
    gang: str
    queue: str
    action: str
    count: int
    bound: int = 0
    """How many pods were placed before it in this session: the first so many of the decisions."""


class JobNotTried(TraceEvent, frozen=True):
    """An action does not search for a job."""

    at_level, event, sentence = 4, "job not tried", "job {gang} is not tried by {action}: {reason}"
    gang: str
    action: str
    reason: str


class JobLeft(TraceEvent, frozen=True):
    """An action did nothing for a job."""

    at_level, event, sentence = 3, "job left", "job {gang} gets nothing from {action}: {reason}"
    gang: str
    action: str
    reason: str


class JobAlike(TraceEvent, frozen=True):
    """A job is like another one that failed."""

    at_level, event, sentence = 4, "alike", "job {gang}: like {twin}, which was tried in vain"
    gang: str
    twin: str


class JobSpared(TraceEvent, frozen=True):
    """A running job gives nothing to another."""

    at_level, event, sentence = 5, "job spared", "job {victim} gives nothing to {gang} in {action}: {reason}"
    gang: str
    victim: str
    action: str
    reason: str

    @property
    def gangs(self) -> tuple[str, ...]:
        """Both jobs."""
        return self.gang, self.victim


class _VictimStep(TrialEvent, frozen=True):
    """Something about victims of other jobs."""

    gang: str
    action: str
    victims: Sequence[str]
    concerned: Sequence[str]

    @property
    def gangs(self) -> tuple[str, ...]:
        """The job that needs room, and those of the victims."""
        return (self.gang, *self.concerned)

    @property
    def unmarked(self) -> str:
        """The sentence with the first few victims."""
        return self.sentence.format_map({**self.fields, "victims": listed(self.victims) or "nobody"})


class VictimsProposed(_VictimStep, frozen=True):
    """The next victims in line."""

    at_level, event, sentence = 4, "victims proposed", "{action} proposes victims for {gang}: {victims}"


class ScenarioTried(_VictimStep, frozen=True):
    """Victims are evicted on trial, and everybody is placed anew."""

    at_level, event, sentence = 4, "scenario", "try scenario for {count} task(s) of {gang} in {action}, victims: {victims}"
    count: int


class ScenarioRefused(_VictimStep, frozen=True):
    """A scenario does not work, or is not fair."""

    at_level, event, sentence = 4, "scenario refused", "scenario for {gang} refused in {action}: {reason}; victims: {victims}"
    reason: str


class ScenarioWorks(_VictimStep, frozen=True):
    """A scenario places the job, or on trial some of its tasks, before it grows."""

    at_level, event = 3, "scenario works"
    sentence = "scenario for {count} task(s) of {gang} works in {action}, evicted or moved: {victims}"
    count: int
