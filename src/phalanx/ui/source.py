"""Where a cluster that is looked at comes from: one protocol, whether it is followed, recorded or read from files."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from phalanx.model.kinds import Document
from phalanx.model.watch_event import WatchEvent
from phalanx.session.cycle import Profile
from phalanx.state.snapshot import Snapshot
from phalanx.ui.seen import SeenCluster

Listener = Callable[[WatchEvent], None]


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session that was held, to be looked at again."""

    number: int
    now: float
    placed: int
    pipelined: int
    evicted: int
    sample: Sequence[str] = ()
    """Some of what it decided, in a sentence each."""

    @property
    def key(self) -> str:
        """How it is asked for."""
        return str(self.number)


@dataclass(frozen=True, slots=True)
class SessionInput:
    """What a session was held on, and by which rules."""

    snapshot: Snapshot
    profile: Profile
    title: str


class SessionShelf(Protocol):
    """The last sessions of a cluster."""

    def kept(self) -> Sequence[KeptSession]:
        """Return them, the latest first."""
        ...

    def take(self, key: str) -> SessionInput | None:
        """Return what one was held on; None if it is not kept any more. It may take a while, and is called in a thread."""
        ...


class ClusterSource(Protocol):
    """A cluster that can be looked at. Nothing of it costs anything before `follow` and after `leave`."""

    @property
    def title(self) -> str:
        """What is looked at, in a few words."""
        ...

    @property
    def kind(self) -> str:
        """What it is: ``cluster``, ``files`` or ``recording``."""
        ...

    @property
    def profile(self) -> Profile:
        """By whose rules reasons are given."""
        ...

    @property
    def schedulers(self) -> tuple[str, ...]:
        """The names of the schedulers whose pods are ours; those of all that we know if there are none."""
        ...

    @property
    def now(self) -> float:
        """What time it is there, in seconds since 1970."""
        ...

    @property
    def problem(self) -> str:
        """Why what is seen may be old, in a sentence; empty if all is well."""
        ...

    @property
    def sessions(self) -> SessionShelf | None:
        """The last sessions; None where none are kept."""
        ...

    def follow(self, changed: Callable[[], None]) -> None:
        """Begin to look: call `changed` whenever another look would show something else."""
        ...

    def leave(self) -> None:
        """Nobody looks any more."""
        ...

    async def look(self, version: str) -> SeenCluster:
        """Return the cluster as it is."""
        ...

    def objects(self) -> Iterable[Document]:
        """Return all objects."""
        ...

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with every change of an object; returns what ends that."""
        ...

    async def events(self, namespace: str, names: Collection[str]) -> list[Document]:
        """Return the events about objects of these names in a namespace; raises Forbidden where they may not be listed."""
        ...
