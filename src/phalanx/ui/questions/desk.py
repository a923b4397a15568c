"""Where questions are answered: the objects of a cluster in another process, kept up to date, and changes tried on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

import msgspec

from phalanx.config.schedulers import our_schedulers
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import PhalanxError, SnapshotError
from phalanx.model.kinds import Document, object_key
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.ui.views import Json
from phalanx.whatif.trial_cluster import Edit, TrialCluster

ConnectPolicy = Callable[[Policy], Profile]


@dataclass(frozen=True, slots=True)
class Rules:
    """Who decides."""

    policy: Policy
    schedulers: tuple[str, ...]
    connect: ConnectPolicy
    """A function of a module, which is found by its name in another process."""


@dataclass(frozen=True, slots=True)
class Update:
    """What has changed since the last update, or everything."""

    now: float
    put: bytes
    """Objects as JSON."""
    gone: bytes
    """The same of objects that are gone."""
    rules: Rules | None = None
    """With everything: by whose rules questions are answered from now on."""


class Question(Protocol):
    """Something that is asked; it is sent to another process, and so is its answer."""

    def answer(self, desk: "Desk") -> Json:
        """Return the answer as plain data."""
        ...


class Desk:
    """The cluster that questions are about."""

    def __init__(self, update: Update) -> None:
        """Read everything; objects that cannot be understood are left out, as sessions leave them out."""
        assert update.rules is not None, "the first update comes with rules"
        self.rules, self.refused = update.rules, dict[str, str]()
        cluster = ObjectCluster(schedulers=our_schedulers(self.rules.schedulers))
        documents = _decoded(update.put)
        for document in documents:
            self._enter(cluster, document)
        profile = self.rules.connect(self.rules.policy)
        self.cluster = TrialCluster(documents, cluster, profile, update.now)

    def _enter(self, cluster: ObjectCluster, document: Document) -> None:
        try:
            cluster.put(document)
        except SnapshotError as problem:
            if document.get("kind") == "PodGroup":
                self.refused[object_key(document)] = str(problem)

    def take(self, update: Update) -> None:
        """Make the changes of an update."""
        self.cluster.now = update.now
        for document in _decoded(update.gone):
            self.cluster.enter(Edit(document, None))
            self.refused.pop(object_key(document), None)
        for document in _decoded(update.put):
            problem = self.cluster.enter(Edit(None, document))
            if document.get("kind") == "PodGroup":
                self.refused.pop(object_key(document), None)
                if problem is not None:
                    self.refused[object_key(document)] = str(problem)

    @property
    def documents(self) -> Sequence[Document]:
        """All objects as they are now."""
        return list(self.cluster.everything())

    def clock(self) -> float:
        """Return seconds for budgets."""
        return monotonic()


def _decoded(text: bytes) -> list[Document]:
    found: list[Document] = msgspec.json.decode(text)
    return found


# --- the process ---------------------------------------------------------------------------------------------------------

_desks: list[Desk] = []
"""The one of this process."""


def begin() -> None:
    """Forget what the process that this one was made from knew."""
    _desks.clear()


def updated(update: Update) -> None:
    """Bring the desk of this process up to date."""
    if update.rules is not None:
        _desks[:] = [Desk(update)]
    else:
        _desks[0].take(update)


def answered(question: Question) -> bytes:
    """Answer a question in this process."""
    try:
        return msgspec.json.encode(question.answer(_desks[0]))
    except PhalanxError:
        raise
    except Exception as problem:  # not every exception can be sent to another process, and nobody there knows what to do
        raise PhalanxError(f"no answer was found, please report it: {type(problem).__name__}: {problem}") from None
