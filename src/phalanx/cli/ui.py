"""`phalanx ui`: a page to look at a cluster, a recording or files, in a browser."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.connection import cluster_options
from phalanx.cli.policy_options import SessionOptions

EXAMPLES = """\b
Examples:
  phalanx ui --context my-cluster --open
  phalanx ui -f examples/deadlock
  phalanx ui --log recording --at 03:12
  phalanx ui --results results
"""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class UiOptions(SessionOptions):
    """What was typed."""

    results: str | None
    host: str
    port: int
    opens: bool
    tls_cert_file: str | None
    tls_private_key_file: str | None
    hosts: tuple[str, ...]

    @property
    def is_exposed(self) -> bool:
        """Tell whether other machines can reach the page."""
        return self.host not in LOOPBACK

    @property
    def asks_cluster(self) -> bool:
        """Tell whether a live cluster is shown."""
        return self.reach.is_named or not (self.files or self.log or self.results)

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together, and pages that everybody could read."""
        policy_options.refuse_two_policies(self.config, self.profile)
        policy_options.refuse_stdin_twice(*self.sources)
        if self.at and not self.log:
            raise click.UsageError("--at: says a moment of a recording; name the recording with --log DIR")
        if self.files and self.log:
            raise click.UsageError("-f and --log: both say which cluster is shown; leave out one of them")
        if self.files and self.reach.is_named:
            raise click.UsageError("-f: the page shows files or a live cluster; leave out --server and --context")
        if bool(self.tls_cert_file) != bool(self.tls_private_key_file):
            raise click.UsageError("--tls-cert-file and --tls-private-key-file: a certificate and its key go together; name both")
        self._refuse_exposure()

    def _refuse_exposure(self) -> None:
        if not self.is_exposed:
            return
        if not self.tls_cert_file:
            raise click.UsageError(
                f"--host {self.host}: tokens would be sent in the clear; add --tls-cert-file and --tls-private-key-file"
            )
        if not self.asks_cluster:
            raise click.UsageError(
                f"--host {self.host}: nobody can be asked who may see files and recordings; leave it out, or show a live cluster"
            )


@click.command(epilog=EXAMPLES)
@policy_options.cluster_files
@cluster_options()
@policy_options.config
@policy_options.profile
@policy_options.scheduler_names
@policy_options.moment
@click.option(
    "--results", type=click.Path(file_okay=False), metavar="DIR",
    help="Show the simulations whose results are in this folder, also while they run; see 'phalanx simulate --results'.",
)  # fmt: skip
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
    help="Address to serve the page at. Beyond this machine it needs TLS, and readers need a token of the cluster.",
)  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port of the page; 0 picks a free one.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@click.option("--tls-cert-file", metavar="FILE", help="Certificate of the page in PEM, read again when it changes.")
@click.option("--tls-private-key-file", metavar="FILE", help="Private key of --tls-cert-file in PEM.")
@click.option(
    "--allowed-host", "hosts", multiple=True, metavar="NAME",
    help="Name by which browsers may call the page; may be repeated. By default the names in the certificate.",
)  # fmt: skip
def command(**options: Any) -> None:  # Any: as click read them
    """Show a cluster in a browser: what runs, what waits and why, what would help. Nothing is changed.

    The page is served on this machine until Ctrl-C. It shows a live cluster, files, or any moment of a recording; of a live cluster
    it needs the permission to list and watch what sessions read.
    """
    import asyncio

    from phalanx.cli.ui_run import serve

    asked = UiOptions(**options, form="table")
    asked.refuse_clashes()
    asyncio.run(serve(asked))
