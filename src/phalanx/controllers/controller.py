"""What every controller is: it looks at objects through a view and says what to write; somebody else writes it.

A controller keeps nothing between two looks. Whatever it must remember stands on objects, so that another one can go on after a
crash at any point. It is asked about one key at a time, whenever an object that concerns the key has changed, and at the moment
it asked for itself; being asked once too often changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from phalanx.model.kinds import POD, Document, Kind


@dataclass(frozen=True, slots=True)
class Create:
    """A new object; one of that name that is there already is no fault."""

    document: Document


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of parts of an object, as a JSON merge patch: of its status, or of everything else.

    With `metadata.resourceVersion` in the patch it is refused if somebody else was faster. Conditions of pods are many people's:
    a patch names those that change, and the others stay.
    """

    kind: Kind
    namespace: str
    name: str
    patch: Document
    is_status: bool = False

    @property
    def is_by_type(self) -> bool:
        """Tell whether conditions are changed one by one, by their type, as a strategic merge patch does."""
        return self.kind is POD and self.is_status


@dataclass(frozen=True, slots=True)
class Delete:
    """The end of an object; with a uid only if it is still the same one. One that is gone already is no fault."""

    kind: Kind
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Evict:
    """The end of a pod, as far as disruption budgets allow, and why."""

    namespace: str
    name: str
    uid: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Bind:
    """A node for a pod."""

    namespace: str
    name: str
    node: str
    uid: str = ""
    annotations: Mapping[str, str] | None = None
    """What the pod gets with its node, by the same request."""


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """An event about an object; the same one again is counted, not repeated."""

    about: Document
    reason: str
    message: str
    is_warning: bool = False
    is_expected: bool = False
    """It belongs to the course of things, such as the end of a patience or a bind that is tried again; there is nothing to mend."""
    code: str = ""
    """The reason code, for programs, where the reason is a general word."""


@dataclass(frozen=True, slots=True)
class Try:
    """A write that may well be refused: then what `refused` makes of the reason is written instead, and the rest is left out."""

    write: Create | Patch | Delete | Evict | Bind
    refused: Callable[[str], Sequence["Write"]]


Write = Create | Patch | Delete | Evict | Bind | RecordEvent | Try


@dataclass(frozen=True, slots=True)
class Key:
    """What a controller is asked about: an object of its main kind, which may be gone."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Result:
    """What to write, in this order; after a refusal the rest is left out, and the key is looked at again a little later."""

    writes: Sequence[Write] = ()
    again: float | None = None
    """The moment, in seconds since 1970, at which to look again though nothing has changed."""


NOTHING = Result()


class View(Protocol):
    """The objects as they are; nothing that is returned may be changed."""

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def find(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """Return one object, or None."""
        ...

    def within(self, kind: Kind, namespace: str = "") -> Sequence[Document]:
        """Return the objects of a kind in a namespace, or everywhere, in the order of their keys."""
        ...

    def owned(self, uid: str, kind: Kind) -> Sequence[Document]:
        """Return the objects of a kind that name this owner, in the order of their keys."""
        ...

    def is_hidden(self, kind: Kind) -> bool:
        """Tell whether nobody lets us look at a kind, so that its objects may well be there."""
        ...

    def is_served(self, kind: Kind) -> bool:
        """Tell whether there can be objects of a kind at all: whoever defines it is installed."""
        ...


class Controller(Protocol):
    """Keeps one kind of object, and what belongs to it, as it should be."""

    @property
    def name(self) -> str:
        """As logs and metrics name it."""
        ...

    @property
    def watches(self) -> Sequence[Kind]:
        """The kinds whose changes it wants to hear of."""
        ...

    @property
    def brings_back(self) -> Sequence[Kind]:
        """The kinds of owners whose lost pods it makes anew itself."""
        ...

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the keys to look at because this object has changed or gone."""
        ...

    def reconcile(self, view: View, key: Key) -> Result:
        """Say what to write so that things are as they should be."""
        ...


@runtime_checkable
class Patient(Controller, Protocol):
    """A controller whose work grows with the cluster: it looks a little after the first of many changes, at all of them at once."""

    @property
    def patience_seconds(self) -> float:
        """From a change to the look at it."""
        ...
