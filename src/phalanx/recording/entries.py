"""What a recording is made of, one struct for each kind of entry; each is an array with its letter first.

A segment begins with a `Header` and a `Checkpoint`, so that it can be read without those before it. Then come changes in the order
in which the scheduler heard of them, and sessions with what they decided.
"""

from typing import Any

import msgspec
from msgspec import Struct

FORMAT = 3
"""Of the files. Format 1 had each entry behind its length, and format 2 everything of a pod that has landed."""


class Entry(Struct, array_like=True, frozen=True):
    """One line of a recording."""


class Header(Entry, tag="H", frozen=True):
    """Who wrote a segment, and under which rules it decided."""

    format: int
    version: str
    """Of the program."""
    process: str
    """A name for one life of one process: what another one wrote does not go on where this one ended."""
    source: str
    """The command: run, up, simulate or record."""
    segment: int
    now: float
    schedulers: list[str]
    scope: dict[str, Any]  # Any: the fields of Scope
    config: "Config"
    pace: dict[str, float] = {}
    """How often sessions are held: `gap`, `later` and `heartbeat` in seconds; empty where none are."""
    hidden: list[str] = []
    """Kinds that whoever recorded was not allowed to read, so that they are not in the recording."""


class Config(Entry, tag="C", frozen=True):
    """The configuration in force from here on."""

    profile: str
    """The name of a built-in profile; empty if there is a text."""
    text: str
    gates: list[str] = []


class Checkpoint(Entry, tag="K", frozen=True):
    """The cluster as it is known here follows: objects, what is assumed of them, and at last `Carried`."""

    now: float


class Carried(Entry, tag="M", frozen=True):
    """What sessions carry over to the next one; a checkpoint ends with it."""

    resting: list[tuple[str, float, float]]
    """Gangs that sessions leave out, until when, and how long that is."""
    pod_counts: list[tuple[str, int, float]]
    """Gangs that lack pods, how many they have, and since when."""
    is_guarded: bool | None
    """A plugin holds gangs to their minima; None before the first session."""
    reserved: list[str] = []
    """Gangs with a reserved start; recordings before there were any have none."""
    short_since: list[tuple[str, float]] = []
    """Gangs of pods alone that are stale, and since when; older recordings have none."""


class Moment(Entry, tag="t", frozen=True):
    """What follows was heard at this time, in seconds since 1970."""

    now: float


class Put(Entry, tag="+", frozen=True):
    """An object came or changed."""

    object: dict[str, Any]  # Any: as JSON has it


class Changed(Entry, tag="c", frozen=True):
    """An object changed in some fields only; whoever reads a recording gets it as `Put`."""

    api_version: str
    kind: str
    namespace: str
    name: str
    fields: dict[str, dict[str, Any]]  # Any: as JSON has it
    """The fields that are new or other, by the part of the object that they are in."""
    gone: list[tuple[str, str]] = []
    """Parts, each with a field of it that is not there any more."""


class Landed(Entry, tag="l", frozen=True):
    """A pod got its node as we asked for, and nothing else of it changed but its status and what binding writes."""

    namespace: str
    name: str
    node: str
    labels: dict[str, str] | None
    """Those of the topology, which binding writes; None if all its labels are as they were."""
    minima: str | None
    """The annotation with which it was bound; None if it has none."""
    status: dict[str, Any] | None  # Any: as JSON has it
    has_last_status: bool = False
    """Its status is that of the pod which landed last before it, and not written again."""


class Gone(Entry, tag="-", frozen=True):
    """An object went."""

    api_version: str
    kind: str
    namespace: str
    name: str


class Assumed(Entry, tag="a", frozen=True):
    """A pod is taken for what it will be once what was asked for is done."""

    key: str
    uid: str
    status: str
    node: str


class AsDecided(Entry, tag="n", frozen=True):
    """So many pods are assumed to be bound, the next ones of the last session in its order."""

    count: int


class Forgotten(Entry, tag="f", frozen=True):
    """A pod is taken for what its object says; all of them if there is no key."""

    key: str = ""
    uid: str = ""


class RequestAssumed(Entry, tag="q", frozen=True):
    """A bind request is on its way."""

    object: dict[str, Any]  # Any: as JSON has it


class RequestConfirmed(Entry, tag="Q", frozen=True):
    """A bind request was answered: this is there now, or nothing."""

    object: dict[str, Any]  # Any: as JSON has it
    found: dict[str, Any] | None


class Decided(Entry, tag="s", frozen=True):
    """A session was held and decided this."""

    now: float
    asks_all: bool
    decisions: dict[str, Any]  # Any: see decision_record.py
    answers: list[list[tuple[str, dict[str, Any]]]] = []  # Any: see extender_answers.py
    """What extenders answered, in order, for each time that the actions ran."""


class Planned(Entry, tag="p", frozen=True):
    """A session behind scheduling gates was held and planned this."""

    now: float
    plans: dict[str, Any]  # Any: see decision_record.py


class CarriedOut(Entry, tag="w", frozen=True):
    """What became of a decision: bound, refused, evicted, not-evicted or rolled-back."""

    what: str
    pod: str
    detail: str


class Dropped(Entry, tag="d", frozen=True):
    """So many entries were not written, because the writer could not keep up; a new segment follows."""

    count: int


class Ended(Entry, tag="E", frozen=True):
    """The process ended, and knew it."""

    now: float


AnyEntry = (
    Header | Config | Checkpoint | Carried | Moment | Put | Changed | Landed | Gone | Assumed | AsDecided | Forgotten
    | RequestAssumed | RequestConfirmed | Decided | Planned | CarriedOut | Dropped | Ended
)  # fmt: skip
ENCODER = msgspec.msgpack.Encoder()
DECODER = msgspec.msgpack.Decoder(list[AnyEntry])
"""Of one array of a block."""
