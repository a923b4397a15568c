"""The command that prints a snapshot of a cluster: everywhere the same, and for every kind of group and queue."""

import re
from pathlib import Path

import pytest

from phalanx.cli.schedule import EXAMPLES
from phalanx.model.kinds import KINDS
from phalanx.store.snapshot_command import SNAPSHOT_COMMAND

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/reference/command-line.md", "docs/howto/why-does-my-gang-wait.md", "docs/howto/kubectl-plugin.md")
NEEDED = ("Node", "Pod", "PodGroup", "Queue", "PriorityClass", "HyperNode", "Topology")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_shows_the_same_command(page: str) -> None:
    assert SNAPSHOT_COMMAND in (ROOT / page).read_text()


def test_the_help_shows_it_too() -> None:
    assert SNAPSHOT_COMMAND in EXAMPLES


def test_it_chooses_all_kinds_that_a_session_needs() -> None:
    chosen = re.compile(SNAPSHOT_COMMAND.split("'")[1])
    missing = [kind.resource for kind in KINDS if kind.kind in NEEDED and not chosen.search(kind.resource)]
    assert missing == []
    assert [kind.kind for kind in KINDS if kind.kind not in NEEDED and chosen.search(kind.resource)] == []
