"""The pages about a migration: what they say about the same step is the same, and the controllers that they name exist."""

import re
from pathlib import Path

import pytest

from phalanx.cli.run import CONTROLLER_SETS
from phalanx.controllers.builtin import ControllerSettings, standard_controllers
from phalanx.sim.sshkeys import pair_for

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
RUN = (HOWTO / "run-on-a-cluster.md").read_text()
CONTROLLERS = re.compile(r"--controllers (\S+)")


def commands(page: str) -> set[str]:
    """Return the lines of the shell fences of a page."""
    fences = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    return {line for fence in fences for line in fence.splitlines()}


@pytest.mark.parametrize("name", ["from-volcano", "from-kai"])
def test_the_commands_that_hand_over_a_cluster_are_on_both_pages(name: str) -> None:
    last = commands((HOWTO / f"{name}.md").read_text().partition("## Let it schedule")[2])
    assert last
    assert last <= commands(RUN)


def test_controllers_that_are_switched_off_exist() -> None:
    known = {item.name for item in standard_controllers(pair_for, ControllerSettings(), has_admission=True)} | set(CONTROLLER_SETS)
    named = {name.removeprefix("-") for text in CONTROLLERS.findall(RUN) for name in text.split(",")}
    assert named
    assert named <= known
