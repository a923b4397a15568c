"""What was measured, kept row by row in a JSON file, and the section of the page of results that is made from it.

A row is always measured as a whole: all contenders in turn, in one run. A later run replaces the rows that it measures and leaves
the others, so every row says when and where it was measured.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

import msgspec
from benchmarks.race.rows import HEADLINES, ROWS, Load

LIMIT, US = "raw", "phalanx"
NONE = "–"


class Outcome(msgspec.Struct, frozen=True):
    """What one contender did in one round: numbers by name, and what went wrong, if anything did."""

    contender: str
    round: int
    numbers: dict[str, float]
    problem: str = ""


class MeasuredRow(msgspec.Struct, frozen=True):
    """All rounds of all contenders on one row."""

    key: str
    load: Load
    title: str
    where: str
    """Machine, date and load: what else this depends on."""
    outcomes: list[Outcome]

    def contenders(self) -> list[str]:
        """Return who took part, in the order of their first appearance in the list of all."""
        return list(dict.fromkeys(outcome.contender for outcome in self.outcomes))

    def median(self, contender: str, number: str) -> float | None:
        """Return the median of a number over the rounds; none if a round has none: who fails once is not fast."""
        found = [outcome.numbers.get(number) for outcome in self.outcomes if outcome.contender == contender]
        known = [value for value in found if value is not None]
        return median(known) if known and len(known) == len(found) else None

    def headline(self, contender: str) -> float | None:
        """Return the number by which contenders are compared."""
        return self.median(contender, HEADLINES[self.load])

    def problems(self, contender: str) -> list[str]:
        """Return what went wrong, each thing once."""
        return list(dict.fromkeys(o.problem for o in self.outcomes if o.contender == contender and o.problem))


class Results(msgspec.Struct):
    """Everything that was measured, and the titles of contenders by name."""

    titles: dict[str, str]
    rows: list[MeasuredRow] = []

    def replace(self, row: MeasuredRow) -> None:
        """Put a row in its place, instead of an older one."""
        order = {known.key: number for number, known in enumerate(ROWS)}
        self.rows = sorted([*(old for old in self.rows if old.key != row.key), row], key=lambda each: order[each.key])


def read(path: Path) -> Results:
    """Read results; none where there is no file."""
    return msgspec.json.decode(path.read_bytes(), type=Results) if path.exists() else Results({})


def write(path: Path, results: Results) -> None:
    """Keep results."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that so many per cent do not exceed; of a few values, the 99th is the largest."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


# --- the section --------------------------------------------------------------------------------------------------------------

Written = Callable[[float], str]


def seconds(value: float) -> str:
    """Write a time with three digits or so."""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{value * 100:.1f} %"


def _plain_seconds(value: float) -> str:
    return f"{value:.1f}"


Column = tuple[str, str, Written]
"""Heading, number, how it is written."""
_USE: tuple[Column, ...] = (("CPU s", "cpu", _plain_seconds), ("peak MiB", "memory", _whole), ("requests", "requests", _whole))
_PART: Column = ("longest in part", "part_seconds", seconds)
_WAITS: tuple[Column, ...] = (("p50", "p50", seconds), ("p99", "p99", seconds))
_CPU: Column = ("CPU", "cpu_per_second", _share)
COLUMNS: dict[Load, tuple[Column, ...]] = {
    "wave": (("time", "seconds", seconds), *_USE, _PART),
    "arrivals": (*_WAITS, _CPU, *_USE, _PART),
    "overload": (("time", "seconds", seconds), *_USE, _PART, ("in part at the end", "part_gangs", _whole)),
    "backlog": (*_WAITS, _CPU, ("CPU when nothing ends", "idle_cpu_per_second", _share), *_USE),
}


def ratio(value: float | None, base: float | None) -> str:
    """Write how many times as much one is as the other, if both are known."""
    return f"{value / base:.2f}" if value is not None and base else NONE


def table(row: MeasuredRow, titles: dict[str, str]) -> str:
    """Return the table of one row: medians, ratios, and the headline of every round."""
    columns = COLUMNS[row.load]
    heads = ["contender", *(head for head, _, _ in columns), "against raw", "phalanx against it", "all rounds"]
    lines = [f"### {row.key}: {row.title}", "", row.where, "", _line(heads), _line(["---"] * len(heads))]
    ours, limit = row.headline(US), row.headline(LIMIT)
    for name in row.contenders():
        mine = row.headline(name)
        values = [(row.median(name, number), written) for _, number, written in columns]
        cells = [NONE if value is None else written(value) for value, written in values]
        lines.append(_line([titles.get(name, name), *cells, ratio(mine, limit), ratio(ours, mine), _rounds(row, name)]))
    notes = [f"- {titles.get(name, name)}: {problem}" for name in row.contenders() for problem in row.problems(name)]
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def _rounds(row: MeasuredRow, name: str) -> str:
    found = (o.numbers.get(HEADLINES[row.load]) for o in row.outcomes if o.contender == name)
    return ", ".join(NONE if value is None else seconds(value) for value in found)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def section(results: Results) -> str:
    """Return the section with all rows."""
    head = (
        "By `make race`, which also draws docs/figures/race.svg; docs/explanation/race.md says what is measured and how. Medians\n"
        "over the rounds of one run; ratios are those of `time` or `p50`.\n"
    )
    return "\n".join([head, *(table(row, results.titles) for row in results.rows)])
