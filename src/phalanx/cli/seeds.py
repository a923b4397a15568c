"""Seeds as they are typed: one as 7, several as 1..20."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import click


def seeds_of(text: str) -> range:
    """Read seeds: ``7`` or ``1..2000``."""
    first, dots, last = text.partition("..")
    if not first.isdigit() or (dots and not last.isdigit()):
        raise ValueError(f"{text!r} are no seeds; write one as 7, or several as 1..200")
    found = range(int(first), int(last if dots else first) + 1)
    if not found:
        raise ValueError(f"{text!r}: the last seed comes before the first; write 1..200")
    return found


class Seeds(click.ParamType[range]):
    """Seeds; the command gets a range."""

    name = "seeds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:  # Any: as click declares it
        """Return the seeds that were typed."""
        if isinstance(value, range):
            return value
        try:
            return seeds_of(str(value))
        except ValueError as problem:
            raise click.UsageError(f"{param.opts[-1] if param is not None else self.name}: {problem}", ctx) from None


def seeds_text(seeds: Iterable[int]) -> str:
    """Write seeds in the same way, several ranges between commas: ``1..4, 9``."""
    runs = [
        [seed for _, seed in run] for _, run in groupby(enumerate(sorted(seeds)), key=lambda numbered: numbered[1] - numbered[0])
    ]
    return ", ".join(_run_text(run) for run in runs)


def _run_text(run: Sequence[int]) -> str:
    return str(run[0]) if len(run) == 1 else f"{run[0]}..{run[-1]}"
