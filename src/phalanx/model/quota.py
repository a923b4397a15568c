"""What all pods of a namespace may ask for together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from phalanx.model.resources import Resources, scale_of

_PREFIXES = ("count/", "requests.", "limits.")
"""How names begin that only quotas know: no node offers such a thing, and no pod asks for it."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceQuota:
    """Limits of a namespace and what is used of them, by the names that quotas use.

    The amounts are in the unit of the resource meant: ``requests.memory`` and ``limits.memory`` count bytes as ``memory`` does.
    """

    key: str
    hard: Resources = field(default_factory=dict)
    used: Resources = field(default_factory=dict)
    is_scoped: bool = False
    """It holds for some of the pods only, such as those of a priority class."""

    @property
    def namespace(self) -> str:
        """The namespace it limits."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """The name of the quota."""
        return self.key.partition("/")[2]


def without_quota_names(amounts: Resources) -> dict[str, int]:
    """Return the amounts of resources; those under names that only quotas know are left out."""
    return {name: amount for name, amount in amounts.items() if not name.startswith(_PREFIXES)}


def under_quota_names(amounts: Resources) -> dict[str, int]:
    """Return the amounts under names that only quotas know."""
    return {name: amount for name, amount in amounts.items() if name.startswith(_PREFIXES)}


def plain_name(name: str) -> str:
    """Return the resource that a name in a quota stands for; limits and counts of objects keep their names."""
    return name.removeprefix("requests.")


def unit_name(name: str) -> str:
    """Return the resource in whose unit a name in a quota is counted."""
    return plain_name(name).removeprefix("limits.")


def as_quota_counts(resources: Resources) -> Mapping[str, int]:
    """Return amounts of any names in the units of a quota, by plain names; the larger where two names mean the same."""
    found: dict[str, int] = {}
    for name, amount in resources.items():
        converted = -(-amount * scale_of(unit_name(name)) // scale_of(name))
        found[plain_name(name)] = max(converted, found.get(plain_name(name), 0))
    return found
