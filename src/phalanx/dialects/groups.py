"""Which gang a pod belongs to, where groups of several dialects are in one cluster.

A gang is known by ``namespace/name``. Groups of two dialects may have the same name; the first that comes keeps it, the other is
known as ``namespace/name@dialect``. A pod that carries the marks of several dialects belongs to the only one of these groups that
is there; if there are two, it belongs to none, and is told so. In some dialects pods alone make a gang (`pod_gangs.py`). In some,
several groups are one gang (`gang_groups.py`): it is known by the first of them that is there, and their pods have the names of the
groups as roles.
"""

from collections.abc import Sequence
from dataclasses import replace

from phalanx.dialects.gang_groups import Bundles
from phalanx.dialects.group_references import Link
from phalanx.dialects.pods import own_role
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.task import GangKey, Task
from phalanx.state.cluster import ClusterState


class Groups:
    """Enters groups into the state and finds them for pods."""

    def __init__(self, state: ClusterState) -> None:
        """Begin without groups."""
        self._state = state
        self._objects: set[Link] = set()
        """Group objects that are there."""
        self._dialect_by_name: dict[str, str] = {}
        """Who came first to a name; kept for good, so that keys do not change."""
        self._made: dict[Link, Gang] = {}
        """Groups as pods describe them; they count where there is no object."""
        self._bundles: dict[str, Bundles] = {}
        """By dialect."""
        self._homes: dict[Link, GangKey] = {}
        """Groups that are in a bundle, and the gang that it is."""

    def put(self, gang: Gang) -> None:
        """Enter a group object."""
        link = Link(gang.dialect, gang.key)
        is_new = not self.is_there(link)
        self._objects.add(link)
        self._enter(link, gang, is_new=is_new)

    def remove(self, dialect: str, group: str) -> None:
        """Take a group object away."""
        link = Link(dialect, group)
        if link not in self._objects:
            return
        self._objects.discard(link)
        if link in self._made:
            self._enter(link, self._made[link])
        else:
            self._drop(link)

    def make(self, gang: Gang) -> None:
        """Enter a group as pods describe it."""
        link = Link(gang.dialect, gang.key)
        is_new = not self.is_there(link)
        self._made[link] = gang
        if link not in self._objects:
            self._enter(link, gang, is_new=is_new)

    def unmake(self, link: Link) -> None:
        """Take a group away that no pod describes any more."""
        if self._made.pop(link, None) is not None and link not in self._objects:
            self._drop(link)

    def made(self, link: Link) -> Gang | None:
        """Return a group as pods describe it."""
        return self._made.get(link)

    def is_there(self, link: Link) -> bool:
        """Tell whether a group is there, as an object or made by pods."""
        return link in self._objects or link in self._made

    def _enter(self, link: Link, gang: Gang, *, is_new: bool = False) -> None:
        self._dialect_by_name.setdefault(link.group, link.dialect)
        self._regroup(link.dialect, self._bundles.setdefault(link.dialect, Bundles()).put(gang))
        if is_new:
            self._send_home(link)

    def _drop(self, link: Link) -> None:
        others, before = self._bundles[link.dialect].remove(link.group), self.key_of(link)
        self._move(link, self._alone(link), "")
        self._state.drop_gang(before)
        self._regroup(link.dialect, others)

    # --- bundles -----------------------------------------------------------------------------------------------------

    def _regroup(self, dialect: str, groups: Sequence[str]) -> None:
        """Enter the gangs that these groups are, or are parts of, and give their pods the right one."""
        bundles = self._bundles[dialect]
        for group in groups:
            link, before, whole = Link(dialect, group), self.key_of(Link(dialect, group)), bundles.whole(group)
            key = self._alone(Link(dialect, bundles.leader(group)))
            self._move(link, key, group if whole.pieces else "")
            if before != key and not self._is_taken(before, dialect):
                self._state.drop_gang(before)
            self._state.put_gang(whole if key == whole.key else replace(whole, key=key))

    def _is_taken(self, key: GangKey, dialect: str) -> bool:
        """Tell whether a group is known by a key, or a bundle."""
        link = Link(dialect, key.partition("@")[0])
        return key in self._homes.values() or (self.is_there(link) and self.key_of(link) == key)

    def _move(self, link: Link, key: GangKey, role: str) -> None:
        """Let the pods of a group belong to another gang, or have another role in it."""
        before, old = self.key_of(link), self.role_of(link)
        if role:
            self._homes[link] = key
        else:
            self._homes.pop(link, None)
        members = self._state.members(before).values() if (before, old) != (key, role) else ()
        for task in [task for task in members if _is_of(task, link)]:
            self._state.put_task(replace(task, gang=key, role=role or own_role(task.annotations, task.shape.labels)))

    def role_of(self, link: Link) -> str:
        """Return the role that pods have by their group; empty unless it is one of a bundle."""
        return link.group if link in self._homes else ""

    def choose(self, links: Sequence[Link]) -> Link | None:
        """Return the group of a pod among those that it names."""
        there = [link for link in links if link in self._objects]
        if len(there) > 1:
            named = " and ".join(f"{link.group} ({link.dialect})" for link in there)
            raise SnapshotError(f"metadata: it belongs to two groups, {named}; remove the mark of one of them")
        return there[0] if there else links[0] if links else None

    def key_of(self, link: Link) -> GangKey:
        """Return the gang that a group is, or will be when it comes."""
        return self._homes.get(link) or self._alone(link)

    def _alone(self, link: Link) -> GangKey:
        owner = self._dialect_by_name.get(link.group, link.dialect)
        return GangKey(link.group if owner == link.dialect else f"{link.group}@{link.dialect}")

    def _send_home(self, link: Link) -> None:
        """Give pods of other dialects that waited under the same name a key of their own."""
        strangers = [task for task in self._state.members(GangKey(link.group)).values() if _is_stranger(task, link)]
        for task in strangers if self._dialect_by_name[link.group] == link.dialect else ():
            self._state.put_task(replace(task, gang=GangKey(f"{link.group}@{task.dialect}")))


def _is_of(task: Task, link: Link) -> bool:
    return (task.dialect, task.group) == (link.dialect, link.group)


def _is_stranger(task: Task, link: Link) -> bool:
    return task.dialect not in ("", link.dialect)
