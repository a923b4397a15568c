"""The examples on the page of reason codes are sentences that the program gives, but for names and numbers."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phalanx.explain.eviction_reasons import EVICTIONS
from phalanx.explain.verdict_reasons import LACKS, VERDICTS
from tests.scenarios.test_explained import SITUATIONS, explained

ROOT = Path(__file__).resolve().parents[2]
PART = 15
"""So many characters in a row of an example stand in the code that makes the sentence."""
EXAMPLE_BY_CODE = {item.code: item.example for item in (*VERDICTS, *LACKS, *EVICTIONS)}
WITHOUT_SENTENCE = {"NotStarving", "NoNodeFits"}
"""The first is never shown, the second has the words of whoever refused."""
NOT_IN_SITUATIONS = {
    "BackedOff",
    "BetterOffThanVictim",
    "ClaimInUse",
    "ClaimOfOtherQueue",
    "EvictedBefore",
    "EvictionCostsMore",
    "ExtenderFailed",
    "ExtenderRefused",
    "LegacyMig",
    "MinimumRuntime",
    "NoLabels",
    "NoNodeSuits",
    "NobodyAsked",
    "NodeAffinityConflict",
    "NominatedBefore",
    "RoomReserved",
    "StartReserved",
    "NotEnoughFresh",
    "NotRunning",
    "NothingInCommon",
    "OverFairShare",
    "Preemptable",
    "Protected",
    "QueueDepth",
    "QueueNotLeaf",
    "RolledBack",
    "SchedulerFault",
    "Stale",
    "TierMissing",
    "TimeDivision",
    "VictimWithinShare",
}
"""No situation is about these, or about another sentence with the same code."""
VARYING = re.compile(
    r"'[^']*'|\d{4}-\d\d-\d\dT[\d:]+Z|[\w.-]+/[\w.-]+|\d+(?:\.\d+)?(?:Gi|%)?|\b(?:gang)?(?:preempt|reclaim)\b|\bcpu\b"
)
"""Names, times, amounts, resources, and which action it is."""


def pattern(example: str) -> re.Pattern[str]:
    """Return what a sentence like the example has to match."""
    fixed = (re.escape(part) for part in VARYING.split(example))
    return re.compile(r"(?:'[^']*'|\S+)".join(fixed))


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("examples")
    return "\n".join(text for situation in SITUATIONS for text in shown(explained(situation, _new(folder, situation.path.stem))))


def _new(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def shown(found: dict[str, Any]) -> Iterator[str]:
    """Yield everything that an explanation says."""
    yield found["why"]
    for stage in found["stages"]:
        yield from _texts(stage["lines"])


def _texts(lines: list[dict[str, Any]]) -> Iterator[str]:
    for line in lines:
        yield line["text"]
        yield from _texts(line.get("lines", []))


def written_sentences() -> str:
    """Return the sources in which sentences are made, each line joined to the next as in long texts."""
    tables = ("reasons.py", "eviction_reasons.py")
    files = (file for file in (ROOT / "src" / "phalanx").rglob("*.py") if file.name not in tables)
    return "\n".join(file.read_text() for file in files)


def test_every_code_has_an_example() -> None:
    assert {code for code, example in EXAMPLE_BY_CODE.items() if not example} == WITHOUT_SENTENCE


def test_examples_are_what_the_program_says(sentences: str) -> None:
    examples = {code: example for code, example in EXAMPLE_BY_CODE.items() if example}
    unsaid = {code for code, example in examples.items() if not pattern(example).search(sentences)}
    assert unsaid == NOT_IN_SITUATIONS


def test_examples_of_which_there_is_no_situation_are_written_in_the_code() -> None:
    source = written_sentences()
    for example in (EXAMPLE_BY_CODE[code] for code in NOT_IN_SITUATIONS):
        assert any(example[start : start + PART] in source for start in range(len(example) - PART + 1)), example
