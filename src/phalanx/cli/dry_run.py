"""The option `--dry-run` of commands that change objects, with kubectl's values and words."""

import click

NONE, CLIENT, SERVER = "none", "client", "server"
SUFFIXES = {NONE: "", CLIENT: " (dry run)", SERVER: " (server dry run)"}
"""What is said behind a result."""

dry_run = click.option(
    "--dry-run",
    type=click.Choice((NONE, CLIENT, SERVER)),
    default=NONE,
    show_default=True,
    help="Change nothing: client only says what would be sent, server lets the cluster check it.",
)
