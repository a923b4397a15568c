"""Which tests stay together in one process of pytest-xdist, and which of them begin first.

Tests of a control plane stay together, and so do those of the browser: few of them are started. All others stay together with
those of their file, so that what a file prepares for its tests is prepared once; files in which every test stands alone and some
take long are divided. What takes longest begins first, or it would go on alone when the other processes have ended.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

PLANE = "tests/integration/"
"""They share one control plane, and are the longest of all."""
OTHER_PLANES = "other control planes"
"""What compares answers of API servers, what kills them, and what runs real operators: each has a control plane of its own."""
BROWSER = "tests/browser/"
DIVIDED = ("tests/docs/test_commands.py",)
FIRST = (PLANE, OTHER_PLANES, *DIVIDED, BROWSER)


class Together(LoadScopeScheduling):  # type: ignore[misc]  # untyped there
    """Gives groups to whichever process is free, in the order in which they are collected."""

    def __init__(self, config: pytest.Config, log: Any) -> None:  # Any: untyped there
        """Keep the order, in which a group of many quick tests is not before a long one of few."""
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(test: str) -> str:
    """Return what a test, by its id, stays together with."""
    file = test.partition("::")[0]
    if file == "tests/chaos/test_storm.py" or file.startswith("tests/operators/") or _asks_a_real_one(test):
        return OTHER_PLANES
    if file in DIVIDED:
        return test
    return next((folder for folder in (PLANE, BROWSER) if file.startswith(folder)), file)


def _asks_a_real_one(test: str) -> bool:
    return test.startswith("tests/contract/") and "[real" in test


def place_of(test: str) -> int:
    """Return which place a test has, by its id, in the order in which groups begin."""
    group = group_of(test)
    return next((place for place, start in enumerate(FIRST) if group.startswith(start)), len(FIRST))
