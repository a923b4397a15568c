"""Commands in Markdown and what they are said to show, for tests that type them.

    $ phalanx simulate examples/deadlock     a command, in a block that says ```console
    ...                                      stands for any lines, and inside a line for any text
    1s      research/bert starts             must be shown after what stands before it

An indented line that begins with `phalanx` is a command too, and shows nothing.
"""

import re
from dataclasses import dataclass, field

ANYTHING = "..."
_TYPED = re.compile(r"(?:\$ |    (?=phalanx ))(\S.*)")


@dataclass(frozen=True, slots=True)
class Transcript:
    """A command, and the lines that a page shows below it."""

    command: str
    shown: list[str] = field(default_factory=list)


def transcripts(page: str) -> list[Transcript]:
    """Return the commands of a page in their order."""
    found: list[Transcript] = []
    is_open = False
    for line in page.splitlines():
        typed = _TYPED.fullmatch(line)
        is_open = not is_open if line.startswith("```console") or (is_open and line == "```") else is_open
        if typed:
            found.append(Transcript(typed[1]))
        elif is_open and found and not line.startswith("```"):
            found[-1].shown.append(line)
    return found


def first_missing(shown: list[str], output: str) -> str | None:
    """Return the first line that should be shown and does not follow; None when all do."""
    left = iter(output.splitlines())
    for line in shown:
        pattern = re.compile(".*".join(map(re.escape, line.rstrip().split(ANYTHING))))
        if line.strip() not in ("", ANYTHING) and not any(pattern.fullmatch(found.rstrip()) for found in left):
            return line
    return None
