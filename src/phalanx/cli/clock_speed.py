"""How fast a clock goes that is not the one on the wall: a factor such as 60x, as `--speed` takes it."""

import click

FASTEST = 1_000_000.0
"""Seconds in one; beyond, and far below one in so many, moments cannot be told apart any more."""


def speed_of(text: str, example: str) -> float:
    """Return a factor that was typed; `example` says what to write instead of what is none."""
    try:
        found = float(text.removesuffix("x"))
    except ValueError:
        raise click.UsageError(f"--speed: {text!r} is not a factor; write for example {example}") from None
    if found <= 0.0:
        raise click.UsageError(f"--speed: time does not stand still; write for example {example}")
    if not 1.0 / FASTEST <= found <= FASTEST:  # which is not true of NaN either
        raise click.UsageError(
            f"--speed: {text!r} is not between {1.0 / FASTEST:f} and {FASTEST:,.0f}; write for example {example}"
        )
    return found
