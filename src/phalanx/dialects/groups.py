"""Which gang a pod belongs to, where groups of several dialects are in one cluster.

A gang is known by ``namespace/name``. Groups of two dialects may have the same name; the first that comes keeps it, the other is
known as ``namespace/name@dialect``. A pod that carries the marks of several dialects belongs to the only one of these groups that
is there; if there are two, it belongs to none, and is told so. In some dialects pods alone make a gang: its first pod says what
it is, and it goes with the last.
"""

from collections.abc import Sequence
from dataclasses import replace

from phalanx.core.cluster import ClusterState
from phalanx.dialects.links import Link
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.task import GangKey, Task


class Groups:
    """Enters groups into the state and finds them for pods."""

    def __init__(self, state: ClusterState) -> None:
        """Begin without groups."""
        self._state = state
        self._keys: dict[Link, GangKey] = {}
        """Group objects that are there."""
        self._dialect_by_name: dict[str, str] = {}
        """Who came first to a name; kept for good, so that keys do not change."""
        self._made: dict[GangKey, str] = {}
        """Gangs that a pod made, and which one."""

    def put(self, gang: Gang) -> None:
        """Enter a group object."""
        link = Link(gang.dialect, gang.key)
        is_new = link not in self._keys
        key = self._keys[link] = self._claim(link)
        self._made.pop(key, None)
        self._state.put_gang(gang if key == gang.key else replace(gang, key=key))
        if is_new:
            self._send_home(link)

    def remove(self, dialect: str, group: str) -> None:
        """Take a group object away."""
        key = self._keys.pop(Link(dialect, group), None)
        if key is not None:
            self._state.drop_gang(key)

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

    def make(self, gang: Gang, pod: str) -> None:
        """Enter a gang that a pod describes, unless another pod did: the first one counts."""
        link = Link(gang.dialect, gang.key)
        key = self._claim(link)
        if link in self._keys or self._made.get(key, pod) != pod:
            return
        self._made[key] = pod
        self._state.put_gang(gang if key == gang.key else replace(gang, key=key))

    def leave(self, key: GangKey) -> None:
        """A pod has left a gang: one that pods made goes with the last."""
        if key in self._made and not self._state.members(key):
            del self._made[key]
            self._state.drop_gang(key)


def _is_stranger(task: Task, link: Link) -> bool:
    return task.dialect not in ("", link.dialect)
