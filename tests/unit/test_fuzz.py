"""Inputs that once broke something are tried again, and each fuzzer tries a few that are the same in every run."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.mutations import inputs, mutated
from tests.fuzz.targets import TARGETS

SAVED = Path(__file__).parents[1] / "data" / "fuzz"
FILES = sorted(path for path in SAVED.rglob("*") if path.is_file())


def test_saved_inputs_belong_to_a_fuzzer() -> None:
    assert {path.parent.name for path in FILES} <= set(TARGETS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.timeout(20)
def test_an_input_that_once_broke_something_breaks_nothing(path: Path) -> None:
    TARGETS[path.parent.name].check(path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_of_a_fuzzer_break_nothing(name: str) -> None:
    for data in TARGETS[name].seeds:
        TARGETS[name].check(data)


@pytest.mark.parametrize("name", TARGETS)
@settings(deadline=None, max_examples=40)
@given(st.data())
def test_a_few_inputs_break_nothing(name: str, data: st.DataObject) -> None:
    TARGETS[name].check(data.draw(inputs(TARGETS[name].seeds)))


def test_mutations_are_the_same_for_the_same_seed() -> None:
    seeds = TARGETS["cel"].seeds
    assert mutated(seeds, Random(7)) == mutated(seeds, Random(7))
