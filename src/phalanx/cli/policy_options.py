"""The options of all commands that say by which rules and for whom is scheduled."""

import click

PATH = click.Path(allow_dash=True)

config = click.option(
    "--config", type=PATH, metavar="FILE", help="Configuration file to use, such as a volcano-scheduler.conf."
)  # fmt: skip
profile = click.option("--profile", metavar="NAME", help="Built-in profile to use; phalanx by default.")
gates = click.option(
    "--gate", "gates", multiple=True, metavar="NAME", help="Scheduling gate of gangs besides phalanx.dev/gang; may be repeated."
)
scheduler_names = click.option(
    "--scheduler-name", "names", multiple=True, metavar="NAME",
    help="Schedule pods with this schedulerName; may be repeated. All schedulers whose gangs are read by default.",
)  # fmt: skip
