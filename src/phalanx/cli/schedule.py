"""`phalanx schedule`: decide one session on a snapshot, change nothing."""

import sys

import click


@click.command()
@click.option("--batch", is_flag=True, help="Read one JSON request per line from stdin, answer each with one line.")
def command(batch: bool) -> None:
    """Decide one session on a snapshot of a cluster and show what it would do."""
    from phalanx.cli.batch import answers

    for line in answers(sys.stdin.buffer):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
