"""`phalanx queue`: open and close queues."""

from typing import Any

import click

from phalanx.cli.connection import QueueName, Reach, cluster_options


@click.group(
    epilog="\b\nExamples:\n  phalanx queue close research\n  phalanx queue open research vision",
    no_args_is_help=True,
)
def command() -> None:
    """Open and close queues."""


@command.command(
    name="open",
    short_help="Let gangs of queues be admitted again.",
    epilog="\b\nExamples:\n  phalanx queue open research\n  phalanx queue open research vision --context staging",
)
@click.argument("names", nargs=-1, required=True, type=QueueName(), metavar="NAME...")
@cluster_options("Namespace of the Command that is written.")
@click.pass_context
def open_(ctx: click.Context, names: tuple[str, ...], reach: Reach) -> None:
    """Open queues: their gangs are admitted again, and those of the queues below that were closed with them."""
    _carry_out(ctx, reach, names, opens=True)


@command.command(
    short_help="Admit no more gangs of queues.",
    epilog="\b\nExamples:\n  phalanx queue close research\n  phalanx queue close research vision --context staging",
)
@click.argument("names", nargs=-1, required=True, type=QueueName(), metavar="NAME...")
@cluster_options("Namespace of the Command that is written.")
@click.pass_context
def close(ctx: click.Context, names: tuple[str, ...], reach: Reach) -> None:
    """Close queues: no more gangs of theirs, and of the queues below, are admitted. What runs goes on."""
    _carry_out(ctx, reach, names, opens=False)


def _carry_out(ctx: click.Context, reach: Reach, names: tuple[str, ...], **options: Any) -> None:  # Any: passed on
    from phalanx.cli.queue_run import carry_out

    if not carry_out(reach, names, **options):
        ctx.exit(1)
