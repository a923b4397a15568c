"""The page of `phalanx run`: at the port of its metrics, to this machine or to tokens, and loaded when somebody opens it."""

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp.web import Application

    from phalanx.cli.run import RunOptions
    from phalanx.live.app import Live
    from phalanx.live.serving import Address
    from phalanx.store.kube.client import Client
    from phalanx.ui.serving.reader import Served

LOOPBACK = ("127.0.0.1", "::1", "localhost")
CLOSED = (
    "the page is served to this machine alone, or to tokens: listen on 127.0.0.1, or add --authentication token with "
    "--tls-cert-file and --tls-private-key-file"
)


def with_page(address: "Address | None", asked: "RunOptions", live: "Live", client: "Client") -> "Address | None":
    """Return an address at which the page is served too."""
    if address is None:
        return None
    from phalanx.ui.serving.mounted import mount, mount_refusal
    from phalanx.ui.serving.page import Page

    if address.access is None and address.host not in LOOPBACK:
        return replace(address, prepare=lambda application: mount_refusal(application, CLOSED))

    def prepare(application: "Application") -> None:
        mount(application, Page(lambda: _served(asked, live, client), _names(asked)))

    return replace(address, prepare=prepare)


def _names(asked: "RunOptions") -> tuple[str, ...]:
    """Return what the server is called: the names in its certificate."""
    if not asked.tls_cert_file:
        return ()
    from pathlib import Path

    from phalanx.live.page_names import names_in

    return names_in(Path(asked.tls_cert_file))


def _served(asked: "RunOptions", live: "Live", client: "Client") -> "Served":
    import time

    from phalanx.cli.ui_questions import SETUP, cluster_questions
    from phalanx.live.page_access import PageAccess
    from phalanx.live.page_scheduler import PACE, SchedulerSource
    from phalanx.ui.serving.access import Access, Open
    from phalanx.ui.serving.answers import served
    from phalanx.ui.serving.reader import PageSetup
    from phalanx.ui.showing import Showing

    source, setup = SchedulerSource(live, client, asked.names), replace(SETUP, pace=PACE)
    access: Access = Open() if asked.authentication == "none" else PageAccess(client, time.monotonic)
    return served(PageSetup(source.title, access, Showing(source, setup), extra=cluster_questions()))
