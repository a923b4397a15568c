"""Which gang a pod belongs to, where groups of several dialects are in one cluster.

A gang is known by ``namespace/name``. Groups of two dialects may have the same name; the first that comes keeps it, the other is
known as ``namespace/name@dialect``. A pod that carries the marks of several dialects belongs to the only one of these groups that
is there; if there are two, it belongs to none, and is told so. In some dialects pods alone make a gang: the oldest of them says
what it is, in whatever order they become known, and it goes with the last that says anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from phalanx.core.cluster import ClusterState
from phalanx.dialects.links import Link
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.task import GangKey, Task


@dataclass(frozen=True, slots=True)
class Saying:
    """What a pod says of its gang."""

    gang: Gang
    rank: tuple[bool, float, str]
    """The lowest counts."""


class Groups:
    """Enters groups into the state and finds them for pods."""

    def __init__(self, state: ClusterState) -> None:
        """Begin without groups."""
        self._state = state
        self._keys: dict[Link, GangKey] = {}
        """Group objects that are there."""
        self._dialect_by_name: dict[str, str] = {}
        """Who came first to a name; kept for good, so that keys do not change."""
        self._said: dict[GangKey, dict[str, Saying]] = {}
        """What pods say of gangs that they make."""
        self._speaker: dict[GangKey, str] = {}
        """Whose word counts."""
        self._gang_by_pod: dict[str, GangKey] = {}
        """Of the pods that say something."""

    def put(self, gang: Gang) -> None:
        """Enter a group object."""
        link = Link(gang.dialect, gang.key)
        is_new = link not in self._keys
        key = self._keys[link] = self._claim(link)
        self._state.put_gang(gang if key == gang.key else replace(gang, key=key))
        if is_new:
            self._send_home(link)

    def remove(self, dialect: str, group: str) -> None:
        """Take a group object away."""
        key = self._keys.pop(Link(dialect, group), None)
        if key is not None:
            self._state.drop_gang(key)
            self._agree(key)

    def choose(self, links: Sequence[Link]) -> Link | None:
        """Return the group of a pod among those that it names."""
        there = [link for link in links if link in self._keys]
        if len(there) > 1:
            named = " and ".join(f"{link.group} ({link.dialect})" for link in there)
            raise SnapshotError(f"metadata: it belongs to two groups, {named}; remove the mark of one of them")
        return there[0] if there else links[0] if links else None

    def key_of(self, link: Link) -> GangKey:
        """Return the gang that a group is, or will be when it comes."""
        owner = self._dialect_by_name.get(link.group, link.dialect)
        return GangKey(link.group if owner == link.dialect else f"{link.group}@{link.dialect}")

    def _claim(self, link: Link) -> GangKey:
        self._dialect_by_name.setdefault(link.group, link.dialect)
        return self.key_of(link)

    def _send_home(self, link: Link) -> None:
        """Give pods of other dialects that waited under the same name a key of their own."""
        strangers = [task for task in self._state.members(GangKey(link.group)).values() if _is_stranger(task, link)]
        for task in strangers if self._dialect_by_name[link.group] == link.dialect else ():
            self._state.put_task(replace(task, gang=GangKey(f"{link.group}@{task.dialect}")))

    # --- gangs that pods make ----------------------------------------------------------------------------------------

    def make(self, gang: Gang, pod: str, *, comes_first: bool = False) -> None:
        """Note how a pod describes its gang: the oldest pod counts, and before all others those that come first."""
        link = Link(gang.dialect, gang.key)
        key = self._claim(link)
        saying = Saying(gang if key == gang.key else replace(gang, key=key), (not comes_first, gang.created, pod))
        said, speaker = self._said.setdefault(key, {}), self._speaker.get(key)
        said[pod], self._gang_by_pod[pod] = saying, key
        if link not in self._keys and (speaker is None or saying.rank <= said[speaker].rank or speaker == pod):
            self._agree(key)

    def leave(self, pod: str) -> None:
        """Forget what a pod said; a gang goes with the last pod that says something."""
        key = self._gang_by_pod.pop(pod)
        del self._said[key][pod]
        if self._speaker.get(key) == pod:
            self._agree(key)

    def gang_of(self, pod: str) -> GangKey | None:
        """Return the gang of which a pod says something."""
        return self._gang_by_pod.get(pod)

    def agreed(self, key: GangKey) -> Gang | None:
        """Return the description of a gang that counts."""
        return self._said[key][self._speaker[key]].gang if key in self._speaker else None

    def sayings(self, key: GangKey) -> dict[str, Gang]:
        """Return what pods say of a gang, by pod."""
        return {pod: saying.gang for pod, saying in self._said.get(key, {}).items()}

    def is_made(self, key: GangKey) -> bool:
        """Tell whether pods alone make a gang."""
        return key in self._speaker

    def _agree(self, key: GangKey) -> None:
        """Let the right description count."""
        said, before = self._said.get(key), self._speaker.pop(key, None)
        if said:
            speaker = self._speaker[key] = min(said, key=lambda pod: said[pod].rank)
            self._state.put_gang(said[speaker].gang)
            return
        self._said.pop(key, None)
        if before is not None:
            self._state.drop_gang(key)


def _is_stranger(task: Task, link: Link) -> bool:
    return task.dialect not in ("", link.dialect)
