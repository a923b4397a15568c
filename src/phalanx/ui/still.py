"""A cluster that does not change: that of files, or of a moment of a recording."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import EVENT, POD, Document
from phalanx.session.cycle import Profile
from phalanx.store.completion import known_kind
from phalanx.ui.dry_look import Connect, DryCluster, DryLooks
from phalanx.ui.object_events import about
from phalanx.ui.seen import SeenCluster
from phalanx.ui.source import Listener, SessionShelf


@dataclass(frozen=True, slots=True)
class StillObjects:
    """Objects as an API server stores them, the cluster that they make, and what is wrong with others."""

    title: str
    documents: Sequence[Document]
    cluster: ObjectCluster
    now: float
    refused: dict[str, str]
    """Groups that cannot be read, each with what is wrong."""
    problems: Sequence[str] = ()


class StillSource:
    """Looks at objects that stay as they are."""

    problem, kind = "", "files"

    def __init__(self, given: StillObjects, profile: Profile, connect: Connect, schedulers: tuple[str, ...] = ()) -> None:
        """Take everything at once; no session is held before somebody looks."""
        self._given, self.title, self.now = given, given.title, given.now
        self.profile, self.schedulers = profile, schedulers
        given.cluster.attach = profile.policy.attach_rules
        self._looks = DryLooks(profile, connect, lambda: given.documents)
        for pod in (document for document in given.documents if known_kind(document) is POD):
            if self._looks.planner.notice(POD, pod, is_gone=False):
                break  # it reads all objects by itself

    @property
    def sessions(self) -> SessionShelf:
        """The session that was held to look."""
        return self._looks.sessions

    def follow(self, changed: Callable[[], None]) -> None:
        """Nothing ever changes."""
        changed()

    def leave(self) -> None:
        """Nothing goes on."""

    async def look(self, version: str) -> SeenCluster:
        """Return the cluster."""
        given = self._given
        return await self._looks.look(version, DryCluster(given.cluster.snapshot(given.now), given.refused, given.problems))

    def objects(self) -> Sequence[Document]:
        """Return all objects."""
        return self._given.documents

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Nothing will ever be heard."""
        return lambda: None

    async def events(self, namespace: str, names: Collection[str]) -> list[Document]:
        """Return those that are among the objects."""
        found = (document for document in self._given.documents if document.get("kind") == EVENT.kind)
        return about(found, namespace, names)
