"""The figures are those that the script draws."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "figures"
MOST_BYTES = 150_000
"""Of a picture: who clones the project gets all that there ever were."""
FIGURES = runpy.run_path(str(FOLDER / "draw.py"))["FIGURES"]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_up_to_date(name: str) -> None:
    assert (FOLDER / f"{name}.svg").read_text() == FIGURES[name]().svg(), "run: python docs/figures/draw.py"


def test_every_picture_is_used_and_small() -> None:
    pages = "".join(page.read_text() for page in FOLDER.parent.rglob("*.md"))
    pictures = sorted((FOLDER.parent / "pictures").glob("*"))
    assert [file.name for file in pictures if f"pictures/{file.name}" not in pages] == []
    assert [file.name for file in pictures if file.stat().st_size > MOST_BYTES] == []


def test_every_figure_is_drawn_and_used() -> None:
    assert {file.stem for file in FOLDER.glob("*.svg")} == set(FIGURES)
    pages = "".join(page.read_text() for page in FOLDER.parent.rglob("*.md"))
    assert [name for name in FIGURES if f"figures/{name}.svg" not in pages] == []
