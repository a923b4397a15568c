"""Label selectors and node selectors: which labels match, evaluated as the API server and its scheduler do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Labels: TypeAlias = Mapping[str, str]

_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,63}")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label key."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Tell whether the labels meet this condition."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":  # a label that is absent has none of the values, as in Kubernetes
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt":
                return value is not None and _compare(value, self.values) > 0
            case "Lt":
                return value is not None and _compare(value, self.values) < 0
        return False

    @property
    def is_valid(self) -> bool:
        """Tell whether a node selector may hold this: known operator, right number of values, legal label values."""
        if not all(_LABEL_VALUE.fullmatch(value) for value in self.values):
            return False
        match self.operator:
            case "In" | "NotIn":
                return bool(self.values)
            case "Exists" | "DoesNotExist":
                return not self.values
            case "Gt" | "Lt":
                return len(self.values) == 1 and _is_integer(self.values[0])
        return False


def _is_integer(text: str) -> bool:
    """Tell whether Kubernetes reads this as a number: whole, of 64 bits."""
    return _INTEGER.fullmatch(text) is not None and -(1 << 63) <= int(text) < 1 << 63


def _compare(value: str, values: tuple[str, ...]) -> int:
    if len(values) != 1 or not _is_integer(value) or not _is_integer(values[0]):
        return 0
    left, right = int(value), int(values[0])
    return (left > right) - (left < right)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; none at all matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Tell whether the labels meet every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def is_empty(self) -> bool:
        """Tell whether the selector asks for nothing."""
        return not self.requirements

    def plus(self, labels: Labels) -> "LabelSelector":
        """Return the selector that also asks for these exact labels."""
        more = tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items()))
        return LabelSelector(self.requirements + more)


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """A set of label conditions and field conditions that must all hold; a term without any matches no node."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Tell whether the term has no condition."""
        return not self.expressions and not self.fields

    @property
    def is_valid(self) -> bool:
        """Tell whether every condition is one that the API server accepts."""
        return all(part.is_valid for part in self.expressions) and all(map(_is_valid_field, self.fields))

    def matches(self, labels: Labels) -> bool:
        """Tell whether a node with these labels meets every condition; conditions on its name are not met."""
        is_about_labels = bool(self.expressions) and not self.fields and self.is_valid
        return is_about_labels and all(part.matches(labels) for part in self.expressions)

    def names(self) -> frozenset[str] | None:
        """Return the node names its fields allow, or None when it has no such field."""
        allowed: frozenset[str] | None = None
        for part in self.fields:
            if part.operator == "In":
                allowed = frozenset(part.values) if allowed is None else allowed & set(part.values)
        return allowed


def _is_valid_field(part: Requirement) -> bool:
    return part.key == "metadata.name" and part.operator in ("In", "NotIn") and len(part.values) == 1
