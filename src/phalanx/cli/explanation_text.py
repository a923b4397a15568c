"""An explanation as lines for a terminal: what becomes of the gang, then stage by stage, the decisive one first."""

import textwrap
from collections.abc import Iterator

import click

from phalanx.cli.output import NARROWEST, Terminal
from phalanx.cli.streams import own, visible
from phalanx.explain.gang_status import GangStatus
from phalanx.explain.tree import Explanation, Line, Stage, StageResult

VERBS = {
    GangStatus.BOUND: "is bound", GangStatus.EMPTY: "waits", GangStatus.EVICTED: "is evicted",
    GangStatus.PIPELINED: "is pipelined", GangStatus.COMPLETED: "has completed",
}  # fmt: skip
"""How a sentence about a gang begins where its status is no verb."""
COLOURS = {True: "green", False: "red", None: "bright_black"}
NAME_WIDTH = max(map(len, Stage))
OFFSET = NAME_WIDTH + 6
"""Where the lines of a stage begin: behind two blanks, a sign, its name and two more."""
SHORT = (Stage.TOPOLOGY, Stage.EVICTIONS, Stage.BIND)
"""What is worth knowing of a gang that has all it asks for: where it is, and who makes room."""


def explanation_lines(found: Explanation, screen: Terminal) -> Iterator[str]:
    """Return an explanation as lines; on a terminal wrapped to its width."""
    yield from _wrapped(_headline(found), screen, 0, 2)
    for result in found.ordered:
        if found.headline or result.stage in SHORT:
            yield from _stage_lines(result, screen)


def _headline(found: Explanation) -> str:
    verb = VERBS.get(found.status, found.status.value.lower())
    if found.headline.startswith(f"{verb} "):
        return f"{found.gang} {found.headline}"
    return f"{found.gang} {verb}: {found.headline}" if found.headline else f"{found.gang} {verb}"


def _stage_lines(result: StageResult, screen: Terminal) -> Iterator[str]:
    well, wrong, open_ = screen.signs
    sign = {True: well, False: wrong, None: open_}[result.ok]
    title = f"  {sign} {result.stage.value.ljust(NAME_WIDTH)}"
    text = "\n".join(part for line in result.lines for part in _tree_lines(line, screen, OFFSET))
    first = title + text[len(title) :]
    yield from (own(click.style(title, fg=COLOURS[result.ok])) + first[len(title) :] if screen.has_colour else first).split("\n")


def _tree_lines(line: Line, screen: Terminal, indent: int) -> Iterator[str]:
    yield from _wrapped(line.text, screen, indent, indent + 2)
    for below in line.lines:
        yield from _tree_lines(below, screen, indent + 2)


def _wrapped(text: str, screen: Terminal, indent: int, hanging: int) -> list[str]:
    """Break a text at the width of the terminal; a pipe gets it in one line."""
    text = visible(text)
    if screen.width is None:
        return [" " * indent + text]
    width = max(screen.width, indent + NARROWEST)
    return textwrap.wrap(
        text, width, initial_indent=" " * indent, subsequent_indent=" " * hanging, break_long_words=False, break_on_hyphens=False
    )  # fmt: skip
