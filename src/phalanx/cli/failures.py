"""What ends a command, in a sentence on stderr, and the exit status.

| what | status |
| --- | --- |
| an error that we raise on purpose, a file that cannot be used, no memory, a fault of our own | 1 |
| Ctrl-C | 130 |
| nobody reads stdout any more, as when `head` has enough | 141, and nothing is said |

Only a fault of our own has a traceback, and it is printed when `-v 5` was typed.
"""

import traceback
from collections.abc import Iterator, Sequence

import click

from phalanx.cli.streams import OutputError, visible
from phalanx.errors import PhalanxError

FAILED, INTERRUPTED, PIPE_CLOSED = 1, 130, 141
TRACED_FROM = 5
"""The verbosity at which tracebacks are printed."""
TRACED_BY = ("-v", "--verbosity")
_FIRST = (OutputError, KeyboardInterrupt, PhalanxError)
"""Of several failures at once the first of these is told."""


def tell_failure(problem: BaseException, arguments: Sequence[str]) -> int:
    """Say on stderr what ended a command that was typed with these arguments; return the exit status."""
    cause = cause_of(problem)
    if isinstance(cause, OutputError) and cause.is_pipe_closed:
        return PIPE_CLOSED
    if isinstance(cause, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    details = cause.details if isinstance(cause, PhalanxError) else ()
    click.echo("\n  ".join(map(visible, (f"error: {_sentence(cause)}", *details))), err=True)
    if not isinstance(cause, OutputError | PhalanxError) and verbosity_typed(arguments) >= TRACED_FROM:
        click.echo("".join(traceback.format_exception(problem)), err=True, nl=False)
    return FAILED


def cause_of(problem: BaseException) -> BaseException:
    """Return what failed; of tasks that ran together, the failure from which the others most likely come."""
    return min(_leaves(problem), key=_rank)


def _leaves(problem: BaseException) -> Iterator[BaseException]:
    """Yield the failures of tasks that ran together, one by one."""
    if isinstance(problem, BaseExceptionGroup):
        for part in problem.exceptions:
            yield from _leaves(part)
    else:
        yield problem


def _rank(problem: BaseException) -> int:
    return next((place for place, kind in enumerate(_FIRST) if isinstance(problem, kind)), len(_FIRST))


def _sentence(problem: BaseException) -> str:
    if isinstance(problem, PhalanxError):
        return problem.message
    if isinstance(problem, OutputError):
        return f"cannot write: {problem}"
    if isinstance(problem, MemoryError):
        return "out of memory; the input is too large for this machine, or for the limit of this process"
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror
    rerun = "for the traceback add -v 5, or write it before the name of the command, and please report it"
    if isinstance(problem, RecursionError):
        return f"internal error: objects are nested too deeply, or refer to each other in too long a chain; {rerun}"
    return f"internal error: {type(problem).__name__}: {problem}; {rerun}"


def verbosity_typed(arguments: Sequence[str]) -> int:
    """Return the number behind -v, wherever it was typed; 0 without one."""
    found = 0
    for place, word in enumerate(arguments):
        following = arguments[place + 1] if place + 1 < len(arguments) else ""
        number = following if word in TRACED_BY else word.partition("=")[2] if word.startswith("--verbosity=") else word[2:]
        if word.startswith(TRACED_BY) and number.isdecimal():
            found = max(found, int(number))
    return found
