"""`phalanx record`: records a cluster that other schedulers schedule."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.record_options import RecordOptions, bounds_of, config_typed, size_options

EXAMPLES = """\b
Examples:
  phalanx record recording --context my-cluster
  phalanx record recording --context my-cluster --for 24h --scheduler-name volcano --profile volcano
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCommandOptions(RecordOptions):
    """What was typed."""

    kubeconfig: str | None
    context: str | None
    config: str | None
    profile: str | None
    names: tuple[str, ...]
    seconds: float | None


@click.command(epilog=EXAMPLES)
@click.argument("record", type=click.Path(file_okay=False), metavar="DIR")
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig; by default $KUBECONFIG, ~/.kube/config or the service account.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; the current one by default.")
@click.option(
    "--for", "seconds", type=policy_options.Duration(), metavar="DURATION", help="How long to record; until Ctrl-C by default."
)
@policy_options.config
@policy_options.profile
@policy_options.scheduler_names
@size_options
def command(**options: Any) -> None:  # Any: as click read them
    """Record what happens in a cluster, whoever schedules it, until SIGTERM or Ctrl-C.

    Only lists and watches are requested, and nothing is changed. No secrets, environments, commands or foreign annotations are
    recorded. Ask about a moment with 'phalanx explain NAME --log DIR --at TIME'. The profile or configuration, and the scheduler
    names, are those that such questions are answered with by default.
    """
    import asyncio

    asked = RecordCommandOptions(**options)
    policy_options.refuse_two_policies(asked.config, asked.profile)
    policy_options.asked_policy(asked.config, asked.profile)  # a wrong one is refused before anything is recorded
    asyncio.run(_record(asked))


async def _record(asked: RecordCommandOptions) -> None:
    import asyncio
    import signal
    from pathlib import Path

    from phalanx.cli import output
    from phalanx.config.schedulers import our_schedulers
    from phalanx.live.observing import Observer
    from phalanx.store.kube.connect import access

    is_over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, is_over.set)
    if asked.seconds is not None:
        loop.call_later(asked.seconds, is_over.set)
    assert asked.record is not None, "it is an argument"
    progress = _Progress(asked.record)
    async with access(asked.kubeconfig or "", asked.context or "").client(is_frugal=True) as client:
        config = config_typed(asked.config, asked.profile, ())
        observer = Observer(client, our_schedulers(asked.names), config, report=output.note)
        await observer.run(Path(asked.record), bounds_of(asked), is_over, turned=progress.show)
    progress.finish()


class _Progress:
    """One line that says how much was recorded."""

    def __init__(self, folder: str) -> None:
        import time

        self._folder, self._begun, self._dropped = folder, time.monotonic(), 0

    def show(self, dropped: int) -> None:
        """Show it on a terminal."""
        import sys

        from phalanx.cli.progress import show_progress

        self._dropped = dropped
        if sys.stderr.isatty():
            show_progress(self._text("recording"))

    def finish(self) -> None:
        """Say what there is in the end."""
        import sys

        from phalanx.cli.progress import clear_progress

        if sys.stderr.isatty():
            clear_progress()
        click.echo(self._text("recorded"), err=True)

    def _text(self, verb: str) -> str:
        import time
        from pathlib import Path

        from phalanx.sim.metrics import short_time

        sizes = [path.stat().st_size for path in Path(self._folder).glob("*.phx")]
        lost = f", {self._dropped:,} changes could not be written" if self._dropped else ""
        return f"{verb} {short_time(time.monotonic() - self._begun)} in {self._folder}: {sum(sizes) / 1024:,.0f} KiB{lost}"
