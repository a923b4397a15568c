"""Every situation in `explained/`: the first lines name the cause and the thing, and the remedy that is given starts the gang."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.whatif.remedy import Remedy
from phalanx.whatif.search import search
from tests.support.situations import Situation, situations

SITUATIONS = situations()
MOST_LINES = 6
"""Of the stage that decides, so many lines count as the first ones."""

UNNAMED: dict[str, str] = {}
"""Situations whose first lines miss something, each with what they miss. One that is explained well must go from here."""

UNREMEDIED: dict[str, str] = {}
"""Situations with a remedy in the language of changes for which none is found, each with what is not tried."""
ENOUGH_SECONDS = 60.0
"""No search may stop early, however slow the machine."""

each = pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.path.stem)


def explained(situation: Situation, folder: Path) -> dict[str, Any]:
    """Return the explanation as the command writes it for programs, without a search for what would start the gang."""
    arguments = ["explain", situation.gang, *situation.options(folder), "-o", "json", "--timeout", "0"]
    result = CliRunner().invoke(main, arguments, prog_name="phalanx")
    assert result.exit_code == 3, result.output
    found = msgspec.json.decode(result.stdout)
    assert isinstance(found, dict)
    return found


def first_lines(found: dict[str, Any]) -> str:
    """Return the headline and the first lines of the stage that decides."""
    decisive: list[dict[str, Any]] = next((stage["lines"] for stage in found["stages"] if stage["ok"] is False), [])
    return "\n".join([found["why"], *islice(_texts(decisive), MOST_LINES)])


def all_lines(found: dict[str, Any]) -> str:
    """Return the lines of all stages."""
    return "\n".join(text for stage in found["stages"] for text in _texts(stage["lines"]))


def _texts(lines: list[dict[str, Any]]) -> Iterator[str]:
    for line in lines:
        yield line["text"]
        yield from _texts(line.get("lines", []))


def misses(situation: Situation, found: dict[str, Any]) -> list[str]:
    """Return what the first lines do not say and should, and what they say and should not."""
    header, text, whole = situation.header, first_lines(found), all_lines(found)
    missing = [words for words in header["first"] if not has_any(text, words)]
    missing += [words for words in header.get("also", ()) if not has_any(whole, words)]
    wrong = [f"not {words}" for words in header.get("not", ()) if has_any(text, words)]
    status = header.get("status", "Waits")
    return [*missing, *wrong, *([] if found["status"] == status else [f"status {status}"])]


def has_any(text: str, words: str) -> bool:
    """Tell whether a text has one of the words between which '|' stands, in upper or lower case."""
    return any(word.casefold() in text.casefold() for word in words.split("|"))


def test_there_are_enough_situations_and_each_says_where_it_comes_from() -> None:
    assert len(SITUATIONS) >= 80
    assert all(situation.header["source"] and situation.header["first"] and situation.header["fix"] for situation in SITUATIONS)
    assert {situation.path.stem for situation in SITUATIONS} >= UNNAMED.keys() | UNREMEDIED.keys()


@each
def test_the_first_lines_name_cause_and_thing(situation: Situation, tmp_path: Path) -> None:
    found = explained(situation, tmp_path)
    missed = misses(situation, found)
    if situation.path.stem in UNNAMED:
        assert missed, "explained well now: take it from UNNAMED"
    else:
        assert not missed, first_lines(found)


@each
def test_what_ends_the_wait_starts_the_gang(situation: Situation) -> None:
    assert not situation.cluster().decide().starts(situation.gang)
    trial = situation.after_its_remedy()
    reading = trial.explanation(situation.gang)
    assert trial.starts(situation.gang), reading and reading.headline


@each
def test_what_is_found_to_start_the_gang_starts_it(situation: Situation) -> None:
    remedies = found_remedies(situation)
    for remedy in remedies:
        with situation.cluster().with_changes(remedy.changes) as cluster:
            assert cluster.decide().starts(situation.gang), remedy.text
    if situation.path.stem in UNREMEDIED:
        assert not remedies, "a remedy is found now: take it from UNREMEDIED"
    elif situation.edited() == situation:
        assert remedies, situation.header["fix"]


def found_remedies(situation: Situation) -> Sequence[Remedy]:
    """Return what the engine finds, and see that its trials left nothing behind."""
    cluster = situation.cluster()
    trial = cluster.decide(traced=[situation.gang])
    found = search(cluster, situation.gang, trial, clock=monotonic, budget_seconds=ENOUGH_SECONDS)
    before, after = trial.explanation(situation.gang), cluster.decide(traced=[situation.gang]).explanation(situation.gang)
    assert (before and before.headline) == (after and after.headline)
    return found.remedies
