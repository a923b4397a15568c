"""One change of one object, as it is typed: ``KIND/NAME=STATE`` or ``KIND/NAME.FIELD.KEY=VALUE``.

Names and keys may have dots, so a field is found by its name: the first of the kind's fields that stands between two dots.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.kinds import Document, Kind, object_key
from phalanx.model.listing import listed
from phalanx.model.resources import amount_of, quantity_text
from phalanx.whatif.trial_cluster import Edit, TrialCluster

MOST_NAMES = 8
"""Names that an error lists."""
NONE = "none"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
"""Of taints and tolerations."""


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """What would be different about one object."""

    name: str
    field: str = ""
    """Empty where the object itself changes: it is gone, or new, or in another state."""
    key: str = ""
    """What follows the field, such as a resource or a label."""
    value: str = ""

    word: ClassVar[str]
    """What such an object is called in a change."""
    states: ClassVar[tuple[str, ...]] = ()
    fields: ClassVar[Mapping[str, str]] = {}
    """What may be changed, each with an example of a value."""

    @property
    def text(self) -> str:
        """The change as one types it."""
        return f"{self.word}/{'.'.join(filter(None, (self.name, self.field, self.key)))}={self.value}"

    @classmethod
    def read(cls, target: str, value: str) -> Self:
        """Read what stands behind ``KIND/`` and behind the equals sign."""
        found = re.search(rf"\.({'|'.join(cls.fields)})(?:\.|$)", target) if cls.fields else None
        if found is None:
            return cls(target, value=value)
        return cls(target[: found.start()], found[1], target[found.end() :], value)

    def edits(self, cluster: TrialCluster) -> list[Edit]:
        """Return the objects that it changes."""
        raise NotImplementedError

    def gone(self, *documents: Document) -> list[Edit]:
        """Return the objects as removed; raises where another state was typed, one that the kind does not have."""
        if self.value != "gone":
            raise self.unknown_state()
        return [Edit(document, None) for document in documents]

    # --- errors ------------------------------------------------------------------------------------------------------

    def refuse(self, problem: str) -> ConfigError:
        """Return the error that says what is wrong with the change."""
        return ConfigError(f"change {self.text!r}: {problem}")

    def unknown(self, names: Iterable[str]) -> ConfigError:
        """Say that there is no such object; a field that does not exist looks like a part of the name."""
        known = sorted(names)
        owner = next((name for name in known if self.name.startswith(f"{name}.")), None)
        if owner is not None and not self.field:
            wrong = self.name.removeprefix(f"{owner}.").partition(".")[0]
            return self.refuse(f"{self.word} {owner!r} has no field {wrong!r} to change; {close_to(wrong, self.fields, 'fields')}")
        return self.refuse(f"there is no {self.word} {self.name!r}; {close_to(self.name, known, 'there are')}")

    def unknown_state(self) -> ConfigError:
        """Say which states an object of the kind can be in."""
        return self.refuse(f"{self.value!r} is no state of a {self.word}; write one of: {', '.join(self.states)}")

    def unknown_resource(self, cluster: TrialCluster) -> ConfigError | None:
        """Say that nothing has the resource in `key`; None where something has."""
        known = cluster.resources
        if not self.key or self.key in known:
            return None
        return self.refuse(f"nothing here has the resource {self.key!r}; {close_to(self.key, known, 'there are')}")

    # --- values ------------------------------------------------------------------------------------------------------

    def whole_number(self, before: object = 0, *, least: int | None = None) -> int:
        """Return the value as a whole number: a new one, or so many more than before."""
        try:
            number = int(self.value) + (int(str(before or 0)) if self.value.startswith("+") else 0)
        except ValueError:
            raise self.refuse(f"{self.value!r} is not a whole number; write for example {self._example()}") from None
        if least is not None and number < least:
            raise self.refuse(f"{number} is too small; the least is {least}")
        return number

    @property
    def is_step(self) -> bool:
        """Tell whether the value is so much more or less than before."""
        return self.value[:1] in ("+", "-")

    def bound(self, before: object) -> str | None:
        """Return the value as an upper bound; there is nothing to add to where there is none."""
        if self.is_step and before is None and self.key:
            raise self.refuse(
                f"{self.word} {self.name!r} has no {self.field} of {self.key} that could grow; write the whole amount"
            )
        return self.quantity(before)

    def switch(self) -> bool:
        """Return the value as true or false."""
        if self.value not in ("true", "false"):
            raise self.refuse(f"{self.value!r} is neither 'true' nor 'false'")
        return self.value == "true"

    def quantity(self, before: object) -> str | None:
        """Return the value as an amount of the resource in `key`: a new one, or more or less than before; None for none."""
        if self.value == NONE:
            return None
        if not self.key:
            raise self.refuse(f"which resource? write for example {self.word}/{self.name}.{self.field}.cpu={self.value}")
        amount = self._amount(self.value) + (self._amount(before or 0) if self.is_step else 0)
        return quantity_text(self.key, max(amount, 0))

    def _amount(self, quantity: object) -> int:
        try:
            return amount_of(self.key, quantity)
        except SnapshotError as problem:
            raise self.refuse(f"{problem}; write for example {self._example()}") from problem

    def _example(self) -> str:
        return repr(f"{self.word}/{self.name}.{self.field}{'.' + self.key if self.key else ''}={self.fields.get(self.field, '1')}")


def namespaced(name: str) -> str:
    """Return a name with its namespace, `default` where there is none."""
    return name if "/" in name else f"default/{name}"


def found_in(cluster: TrialCluster, change: ObjectChange, kind: Kind) -> Document:
    """Return the object that a change is about."""
    found = cluster.find(kind, namespaced(change.name))
    if found is None:
        raise change.unknown(map(object_key, cluster.all_of(kind)))
    return found


def close_to(word: str, known: Iterable[str], there_are: str) -> str:
    """Say which known word is meant, or which ones there are."""
    names = sorted(known)
    close = get_close_matches(word, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"{there_are}: {listed(names, MOST_NAMES) or 'none'}"


def edited(document: Document, *path: str, to: Any) -> dict[str, Any]:  # Any: a part of an object
    """Return an object with one field set, or without it for None; the object itself is not touched."""
    first, *rest = path
    inner = edited(document.get(first) or {}, *rest, to=to) if rest else to
    others = {key: value for key, value in document.items() if key != first}
    return others if inner is None else {**document, first: inner}


def part(document: Document, *path: str) -> Any:  # Any: a part of an object
    """Return a field of an object; None where it is not there."""
    found: Any = document
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
