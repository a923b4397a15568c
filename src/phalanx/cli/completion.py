"""`phalanx completion`: a shell completion script."""

import click
from click.shell_completion import get_completion_class

from phalanx.cli import COMPLETE_VARIABLE


@click.command(epilog="\b\nExamples:\n  source <(phalanx completion bash)\n  phalanx completion fish | source")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a shell completion script."""
    script = get_completion_class(shell)
    assert script is not None, f"click has no completion for {shell}"
    click.echo(script(ctx.find_root().command, {}, "phalanx", COMPLETE_VARIABLE).source())
