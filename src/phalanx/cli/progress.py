"""One line on stderr that says how far a command has got; the next one takes its place. Only for terminals."""

import click

from phalanx.cli.streams import own, visible

RETURN, ERASE_REST = own("\r"), own("\033[K")


def show_progress(text: str) -> None:
    """Show a text instead of the one before."""
    click.echo(f"{RETURN}{visible(text)}{ERASE_REST}", nl=False, err=True)


def clear_progress() -> None:
    """Leave the line empty for what follows."""
    click.echo(RETURN + ERASE_REST, nl=False, err=True)
