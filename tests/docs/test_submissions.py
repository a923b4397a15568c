"""The page of submitted objects names every kind of which something is made."""

import re
from pathlib import Path

import pytest

from phalanx.controllers.owner_pods.controller import STAND_INS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "submissions.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize(("group", "kind"), STAND_INS)
def test_a_kind_of_which_something_is_made_has_a_row(group: str, kind: str) -> None:
    firsts = [row.split("|")[1] for row in ROWS]
    assert [first for first in firsts if f"`{kind}`" in first and group in re.split(r"[(), ]+", first)]
