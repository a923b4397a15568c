"""Which gang a pod belongs to, where groups of several dialects are in one cluster.

A gang has the key ``namespace/name``. Groups of two dialects may have the same name: the first that comes keeps the key, the other
gets ``namespace/name@dialect``. A pod that refers to groups of several dialects belongs to the only one of them that exists; if two
exist it belongs to none, and says so. In some dialects pods alone make a gang (`pod_gangs.py`). In some, several groups make one
gang (`gang_groups.py`): it has the key of the first of them that exists, and the groups are the roles of its pods.
"""

from collections.abc import Sequence
from dataclasses import replace

from phalanx.dialects.bind_requests import FAILED_BINDS, failed_binds
from phalanx.dialects.gang_groups import GangGroups
from phalanx.dialects.group_references import GroupReference
from phalanx.dialects.pods import own_role
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.task import GangKey, Task
from phalanx.state.cluster import ClusterState


class Groups:
    """Enters groups into the state and finds them for pods."""

    def __init__(self, state: ClusterState) -> None:
        """Start without groups."""
        self._state = state
        self._objects: set[GroupReference] = set()
        """Group objects that exist."""
        self._dialect_by_name: dict[str, str] = {}
        """The dialect that came first to a name; never forgotten, so that keys do not change."""
        self._described: dict[GroupReference, Gang] = {}
        """Groups as pods describe them; they count where there is no object."""
        self._gang_groups: dict[str, GangGroups] = {}
        """By dialect."""
        self._gang_by_group: dict[GroupReference, GangKey] = {}
        """Groups that are in a gang group, and the gang that it makes."""

    def put(self, gang: Gang) -> None:
        """Enter a group object."""
        if FAILED_BINDS in gang.annotations:
            gang = replace(gang, failed_binds=failed_binds(gang.annotations))
        group = GroupReference(gang.dialect, gang.key)
        is_new = not self.exists(group)
        self._objects.add(group)
        self._enter(group, gang, is_new=is_new)

    def remove(self, dialect: str, key: str) -> None:
        """Remove a group object; what pods say of the group counts from now on."""
        group = GroupReference(dialect, key)
        if group not in self._objects:
            return
        self._objects.discard(group)
        if group in self._described:
            self._enter(group, self._described[group])
        else:
            self._drop(group)

    def put_described(self, gang: Gang) -> None:
        """Enter a group as pods describe it."""
        group = GroupReference(gang.dialect, gang.key)
        is_new = not self.exists(group)
        self._described[group] = gang
        if group not in self._objects:
            self._enter(group, gang, is_new=is_new)

    def remove_described(self, group: GroupReference) -> None:
        """Remove a group that no pod describes any more."""
        if self._described.pop(group, None) is not None and group not in self._objects:
            self._drop(group)

    def described(self, group: GroupReference) -> Gang | None:
        """Return a group as pods describe it."""
        return self._described.get(group)

    def exists(self, group: GroupReference) -> bool:
        """Tell whether a group exists, as an object or described by pods."""
        return group in self._objects or group in self._described

    def has_any_beside(self, dialect: str) -> bool:
        """Tell whether there are groups of other dialects than this one."""
        return any(not groups.is_empty for name, groups in self._gang_groups.items() if name != dialect)

    def _enter(self, group: GroupReference, gang: Gang, *, is_new: bool = False) -> None:
        self._dialect_by_name.setdefault(group.group, group.dialect)
        self._regroup(group.dialect, self._gang_groups.setdefault(group.dialect, GangGroups()).put(gang))
        if is_new:
            self._separate_dialects(group)

    def _drop(self, group: GroupReference) -> None:
        others, before = self._gang_groups[group.dialect].remove(group.group), self.key_of(group)
        self._move(group, self._own_key(group), "")
        self._state.drop_gang(before)
        self._regroup(group.dialect, others)

    # --- gang groups -------------------------------------------------------------------------------------------------

    def _regroup(self, dialect: str, names: Sequence[str]) -> None:
        """Enter the gangs that these groups make, alone or with others, and move their pods to them."""
        gang_groups = self._gang_groups[dialect]
        for name in names:
            group, whole = GroupReference(dialect, name), gang_groups.whole(name)
            before, key = self.key_of(group), self._own_key(GroupReference(dialect, gang_groups.leader(name)))
            self._move(group, key, name if whole.pieces else "")
            if before != key and not self._is_taken(before, dialect):
                self._state.drop_gang(before)
            self._state.put_gang(whole if key == whole.key else replace(whole, key=key))

    def _is_taken(self, key: GangKey, dialect: str) -> bool:
        """Tell whether some group or gang group still has this key."""
        group = GroupReference(dialect, key.partition("@")[0])
        return key in self._gang_by_group.values() or (self.exists(group) and self.key_of(group) == key)

    def _move(self, group: GroupReference, key: GangKey, role: str) -> None:
        """Move the pods of a group to another gang, or give them another role in it."""
        before, old = self.key_of(group), self.role_of(group)
        if role:
            self._gang_by_group[group] = key
        else:
            self._gang_by_group.pop(group, None)
        members = self._state.members(before).values() if (before, old) != (key, role) else ()
        for task in [task for task in members if _is_of(task, group)]:
            self._state.put_task(replace(task, gang=key, role=role or own_role(task.annotations, task.labels)))

    def role_of(self, group: GroupReference) -> str:
        """Return the role that pods have by their group; empty unless it is in a gang group."""
        return group.group if group in self._gang_by_group else ""

    def choose(self, named: Sequence[GroupReference]) -> GroupReference | None:
        """Return the group of a pod among those that it refers to."""
        existing = [group for group in named if group in self._objects]
        if len(existing) > 1:
            names = " and ".join(f"{group.group} ({group.dialect})" for group in existing)
            raise SnapshotError(f"metadata: it belongs to two groups, {names}; remove the mark of one of them")
        return existing[0] if existing else named[0] if named else None

    def key_of(self, group: GroupReference) -> GangKey:
        """Return the gang of a group, or the one that it will have once it exists."""
        return self._gang_by_group.get(group) or self._own_key(group)

    def _own_key(self, group: GroupReference) -> GangKey:
        """Return the key that a group has outside of gang groups."""
        first = self._dialect_by_name.get(group.group, group.dialect)
        return GangKey(group.group if first == group.dialect else f"{group.group}@{group.dialect}")

    def _separate_dialects(self, group: GroupReference) -> None:
        """Move pods of other dialects that waited under the name of a new group to a key of their own dialect."""
        if self._dialect_by_name[group.group] != group.dialect:
            return
        for task in [task for task in self._state.members(GangKey(group.group)).values() if _is_of_another_dialect(task, group)]:
            self._state.put_task(replace(task, gang=GangKey(f"{group.group}@{task.dialect}")))


def _is_of(task: Task, group: GroupReference) -> bool:
    return (task.dialect, task.group) == (group.dialect, group.group)


def _is_of_another_dialect(task: Task, group: GroupReference) -> bool:
    return task.dialect not in ("", group.dialect)
