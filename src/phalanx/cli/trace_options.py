"""The options of all commands that print the trace of sessions."""

import re
from collections.abc import Sequence

import click

LEVELS = ("3", "4", "5")
VERBOSITY_HELP = "Print the trace of sessions: 3 what happened, 4 also orders, votes and trials, 5 also each node and plugin."
GANG_HELP = "With -v 3 or more, trace only what concerns this gang; may be repeated."


def refuse_gangs_without_trace(gangs: Sequence[str], *, is_traced: bool) -> None:
    """Refuse a gang that is no name of one, and any without a trace that it could narrow."""
    if gangs and not is_traced:
        raise click.UsageError("--gang: it narrows the trace; add -v 3, -v 4 or -v 5")
    for name in gangs:
        if not re.fullmatch(r"[^/\s]+/[^/\s]+", name):
            raise click.UsageError(f"--gang: {name!r} is no name of a gang; write NAMESPACE/NAME, for example research/bert")
