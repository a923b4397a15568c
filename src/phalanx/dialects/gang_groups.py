"""Gang groups: PodGroups that start together become one gang, in which each of them is a role with a minimum.

The notion is Koordinator's. A PodGroup lists all members of its gang group, itself among them, and each member must have the same
list. A member that does not exist yet keeps the others waiting, because nobody knows how many pods it needs. A PodGroup whose list
differs from that of an existing member is a gang of its own, with a fault, until one of the lists is corrected: to merge on either
list would make the gang depend on which object came first.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from phalanx.model.gang import Counts, Gang, Quorum
from phalanx.model.resources import Resources, add

STRICTEST_FIRST = (Quorum.FRESH, Quorum.PRESENT, Quorum.ONCE)
LEAST_FIRST = ("Pending", "Inqueue", "Running", "Completed")


class GangGroups:
    """The groups of one dialect as their objects say, and the gangs that they make together."""

    def __init__(self) -> None:
        """Start without groups."""
        self._pieces: dict[str, Gang] = {}
        self._listed_by: dict[str, set[str]] = {}

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no group."""
        return not self._pieces

    def put(self, gang: Gang) -> list[str]:
        """Enter a group; return the existing groups whose gang may have changed."""
        concerned = self.remove(gang.key)
        self._pieces[gang.key] = gang
        for name in gang.gang_group:
            self._listed_by.setdefault(name, set()).add(gang.key)
        return self._present({*concerned, *self._neighbours(gang.key)})

    def remove(self, group: str) -> list[str]:
        """Remove a group; return the existing groups whose gang may have changed."""
        concerned = self._neighbours(group)
        gang = self._pieces.pop(group, None)
        for name in gang.gang_group if gang is not None else ():
            self._listed_by[name].discard(group)
        return self._present(concerned)

    def _neighbours(self, group: str) -> set[str]:
        gang = self._pieces.get(group)
        return {group, *(gang.gang_group if gang is not None else ()), *self._listed_by.get(group, ())}

    def _present(self, groups: Iterable[str]) -> list[str]:
        return sorted(group for group in groups if group in self._pieces)

    def leader(self, group: str) -> str:
        """Return the group whose name the gang has: the first that exists of a gang group, else the group itself."""
        gang = self._pieces[group]
        is_alone = not gang.gang_group or self._other(gang) is not None
        return group if is_alone else next(name for name in gang.gang_group if name in self._pieces)

    def whole(self, group: str) -> Gang:
        """Return the gang that a group makes, alone or with the others of its gang group."""
        gang = self._pieces[group]
        other = self._other(gang)
        if other is not None:
            return replace(gang, gang_group=(), fault=_disagreement(gang, other))
        return _joined(gang.gang_group, self._pieces) if gang.gang_group else gang

    def _other(self, gang: Gang) -> Gang | None:
        """Return an existing group that this one lists and that has another list."""
        listed = (self._pieces[name] for name in gang.gang_group if name in self._pieces)
        return next((piece for piece in listed if piece.gang_group != gang.gang_group), None)


def _disagreement(gang: Gang, other: Gang) -> str:
    own, theirs = ", ".join(gang.gang_group), ", ".join(other.gang_group) or "nobody else"
    return f"it lists {own} as its gang group, but {other.key} lists {theirs}; write the same list on all of them"


def _joined(names: tuple[str, ...], pieces: dict[str, Gang]) -> Gang:
    """Return a gang group as one gang.

    A group that does not exist yet counts as a role with a minimum of one. No pod can have that role, so the gang waits.
    Of everything else the strictest holds: the shortest time limit, the narrowest quorum, the least phase.
    """
    there = [pieces[name] for name in names if name in pieces]
    minima = {name: pieces[name].min_member if name in pieces else 1 for name in names}
    limits = [limit for piece in there if (limit := piece.schedule_timeout_seconds) is not None]
    last = min([piece for piece in there if piece.has_object] or there, key=lambda piece: LEAST_FIRST.index(piece.phase))
    return replace(
        there[0], uid="+".join(piece.uid for piece in there), min_member=sum(minima.values()), role_minima=minima,
        created=min(piece.created for piece in there), phase=last.phase, conditions=last.conditions,
        schedule_timeout_seconds=min(limits, default=None), keeps_places=all(piece.keeps_places for piece in there),
        has_timed_out=any(piece.has_timed_out for piece in there),
        quorum=min((piece.quorum for piece in there), key=STRICTEST_FIRST.index), pieces=tuple(there), reported=_reports(there),
        min_resources=_total(piece.min_resources for piece in there), min_quota=_total(piece.min_quota for piece in there) or {},
    )  # fmt: skip


def _total(amounts: Iterable[Resources | None]) -> Resources | None:
    """Return the sum of what several groups need; None if none of them says."""
    found = [each for each in amounts if each is not None]
    return reduce(add, found) if found else None


def _reports(there: list[Gang]) -> dict[str, Counts]:
    return {piece.key: piece.reported[""] for piece in there if piece.reported is not None}
