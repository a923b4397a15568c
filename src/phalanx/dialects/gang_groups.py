"""Gangs that start together: the groups of a bundle become one gang, in which each of them is a role with a minimum.

A group lists the others of its bundle, and each of them must list the same. One that is listed and not there yet keeps the others
waiting. One that lists a group which is there and lists others is broken, and stands alone until one of the lists is mended.
"""

from collections.abc import Iterable
from dataclasses import replace

from phalanx.model.gang import Counts, Gang, Quorum

STRICTEST_FIRST = (Quorum.FRESH, Quorum.PRESENT, Quorum.ONCE)
LEAST_FIRST = ("Pending", "Inqueue", "Running", "Completed")


class Bundles:
    """Knows the groups of one dialect, each as it stands alone."""

    def __init__(self) -> None:
        """Begin without groups."""
        self._pieces: dict[str, Gang] = {}
        self._listed_by: dict[str, set[str]] = {}

    def put(self, gang: Gang) -> list[str]:
        """Enter a group; return the groups that are there and may stand in another bundle now."""
        concerned = self.remove(gang.key)
        self._pieces[gang.key] = gang
        for name in gang.bundle:
            self._listed_by.setdefault(name, set()).add(gang.key)
        return self._present({*concerned, *self._neighbours(gang.key)})

    def remove(self, group: str) -> list[str]:
        """Take a group away; return the groups that are there and may stand in another bundle now."""
        concerned = self._neighbours(group)
        gang = self._pieces.pop(group, None)
        for name in gang.bundle if gang is not None else ():
            self._listed_by[name].discard(group)
        return self._present(concerned)

    def _neighbours(self, group: str) -> set[str]:
        gang = self._pieces.get(group)
        return {group, *(gang.bundle if gang is not None else ()), *self._listed_by.get(group, ())}

    def _present(self, groups: Iterable[str]) -> list[str]:
        return sorted(group for group in groups if group in self._pieces)

    def leader(self, group: str) -> str:
        """Return the group by whose name a bundle is known, the first that is there; for a group that stands alone itself."""
        gang = self._pieces[group]
        is_alone = not gang.bundle or self._other(gang) is not None
        return group if is_alone else next(name for name in gang.bundle if name in self._pieces)

    def whole(self, group: str) -> Gang:
        """Return the gang that a group is a part of."""
        gang = self._pieces[group]
        other = self._other(gang)
        if other is not None:
            return replace(gang, bundle=(), fault=_disagreement(gang, other))
        return _joined(gang.bundle, self._pieces) if gang.bundle else gang

    def _other(self, gang: Gang) -> Gang | None:
        """Return a group that this one lists and that lists others."""
        listed = (self._pieces[name] for name in gang.bundle if name in self._pieces)
        return next((piece for piece in listed if piece.bundle != gang.bundle), None)


def _disagreement(gang: Gang, other: Gang) -> str:
    theirs = ", ".join(other.bundle) or "nobody else"
    return f"it lists {', '.join(gang.bundle)} as its bundle, but {other.key} lists {theirs}; write the same list on all of them"


def _joined(names: tuple[str, ...], pieces: dict[str, Gang]) -> Gang:
    """Return a bundle as one gang; a group that is not there yet counts as one member, whom nobody can be."""
    there = [pieces[name] for name in names if name in pieces]
    minima = {name: pieces[name].min_member if name in pieces else 1 for name in names}
    limits = [limit for piece in there if (limit := piece.schedule_timeout_seconds) is not None]
    last = min([piece for piece in there if piece.has_object] or there, key=lambda piece: LEAST_FIRST.index(piece.phase))
    return replace(
        there[0], uid="+".join(piece.uid for piece in there), min_member=sum(minima.values()), role_minima=minima,
        created=min(piece.created for piece in there), phase=last.phase, conditions=last.conditions,
        schedule_timeout_seconds=min(limits, default=None), keeps_places=all(piece.keeps_places for piece in there),
        quorum=min((piece.quorum for piece in there), key=STRICTEST_FIRST.index), pieces=tuple(there), reported=_reports(there),
    )  # fmt: skip


def _reports(there: list[Gang]) -> dict[str, Counts]:
    return {piece.key: piece.reported[""] for piece in there if piece.reported is not None}
