"""Settings by resource: a name, or a pattern that ends in a star."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TypeVar

Setting = TypeVar("Setting")


def setting_for(name: str, settings: Mapping[str, Setting]) -> Setting | None:
    """Return the setting of a resource: its own, else that of the longest pattern that matches; None if there is none."""
    if name in settings:
        return settings[name]
    patterns = [pattern for pattern in settings if pattern.endswith("*") and fnmatchcase(name, pattern)]
    return settings[max(patterns, key=len)] if patterns else None
