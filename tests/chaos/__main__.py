"""`python -m tests.chaos --seconds 600 --seed 1 --gangs 1000`: a storm on a real control plane; exit 1 if a promise is broken."""

import shutil
import tempfile
from pathlib import Path

import click

from phalanx.dev.go_build import build
from tests.chaos.storm import Plan, Storm


@click.command()
@click.option("--seconds", default=600.0, show_default=True, help="How long load and faults last, without the rest after rounds.")
@click.option("--seed", default=1, show_default=True, help="Of the gangs, the faults and what happens to processes.")
@click.option("--gangs", default=1000, show_default=True, help="How many come at least, if the machine bears it.")
@click.option("--replicas", type=click.IntRange(2, 4), default=3, show_default=True)
@click.option("--keep", is_flag=True, help="Keep the folder with all logs also if nothing is wrong.")
def main(*, seconds: float, seed: int, gangs: int, replicas: int, keep: bool) -> None:
    """Run a storm and say what was found."""
    build()
    folder = Path(tempfile.mkdtemp(prefix="phalanx-chaos-"))
    storm = Storm(Plan(folder, seconds, seed, gangs, replicas))
    try:
        storm.run()
    finally:
        if storm.findings.violations or keep:
            click.echo(f"logs: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
        for line in storm.summary():
            click.echo(line)
    raise SystemExit(1 if storm.findings.violations else 0)


if __name__ == "__main__":
    main()
