"""Every command of the pages on operators is typed beside the operator, and shows what its page says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import wait_until
from tests.operators.pages import BY_MODE, FOLDER, WITHOUT
from tests.support.desk import Desk, commands_of
from tests.support.operator_lane import WAIT_SECONDS
from tests.support.operator_mode import OperatorMode

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300)]


def type_all(page: str, plane: ControlPlane, folder: Path) -> None:
    """Type the commands of a page on a cluster without pods, and remove the namespaces that they made."""
    with removed_afterwards(plane), Desk(folder, plane.kubeconfig) as desk:
        for command in commands_of(FOLDER / f"{page}.md"):
            desk.type(command)


@contextmanager
def removed_afterwards(plane: ControlPlane) -> Iterator[None]:
    assert wait_until(lambda: not plane.kubectl("get", "pods", "-A", "-o", "name"), WAIT_SECONDS, step=0.5), "pods of another test"
    before = namespaces(plane)
    try:
        yield
    finally:
        plane.kubectl("delete", "namespace", "--timeout=60s", "--ignore-not-found", *(namespaces(plane) - before or {"none"}))


def namespaces(plane: ControlPlane) -> set[str]:
    return {item["metadata"]["name"] for item in json.loads(plane.kubectl("get", "namespaces", "-o", "json"))["items"]}


@pytest.mark.parametrize(("mode", "page"), BY_MODE, ids=[f"{mode.label}-{page}" for mode, page in BY_MODE], scope="module")
def test_the_commands_of_a_page_show_what_it_says_beside_its_operator(
    mode: OperatorMode, page: str, ground: ControlPlane, tmp_path: Path
) -> None:
    type_all(page, ground, tmp_path)


@pytest.mark.parametrize("page", WITHOUT)
def test_the_commands_of_a_page_show_what_it_says_beside_phalanx_alone(page: str, scheduled: ControlPlane, tmp_path: Path) -> None:
    type_all(page, scheduled, tmp_path)
