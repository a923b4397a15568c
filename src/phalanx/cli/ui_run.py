"""What `phalanx ui` does: it finds out what to show, and serves it until it is told to end."""

import asyncio
import os
import signal
import time
import webbrowser
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import click

from phalanx.cli import PLUGIN, output
from phalanx.cli.connection import choose
from phalanx.cli.intake_notes import notes_of
from phalanx.cli.policy_options import asked_policy
from phalanx.cli.session_input import read_input
from phalanx.cli.ui import UiOptions
from phalanx.cli.ui_questions import SETUP, Worlds, cluster_questions, recording_questions
from phalanx.config.schedulers import our_schedulers
from phalanx.live.catalogue import connected
from phalanx.live.page_access import PageAccess
from phalanx.live.page_cluster import FollowedCluster
from phalanx.live.page_names import names_in
from phalanx.live.page_serving import PageAddress, page_served
from phalanx.live.serving_certificate import ServingCertificate
from phalanx.model.kinds import EVENT
from phalanx.model.listing import listed
from phalanx.session.policy import Policy
from phalanx.sim.served_results import ResultFolder
from phalanx.store.kube.client import ANSWER_SECONDS
from phalanx.ui import PATH
from phalanx.ui.moments import RecordedMoments
from phalanx.ui.recorded.folder import RecordedFolder, RecordedRules
from phalanx.ui.serving.access import Access, Open
from phalanx.ui.serving.answers import served
from phalanx.ui.serving.mounted import with_page
from phalanx.ui.serving.page import Page
from phalanx.ui.serving.reader import PageSetup
from phalanx.ui.showing import Showing
from phalanx.ui.still import StillObjects, StillSource


async def serve(asked: UiOptions) -> None:
    """Serve the page until SIGTERM or Ctrl-C, or until the cluster cannot be followed any more."""
    is_over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_over.set)
    async with AsyncExitStack() as stack:
        page = await Shown(asked, stack).setup()
        application = with_page(Page(lambda: served(page), _names(asked)))
        where = await stack.enter_async_context(page_served(application, _address(asked), output.note))
        address = f"{where}{PATH}/{f'#/overview?at={asked.at}' if asked.at else ''}"
        click.echo(f"{page.title}: {address}")
        output.note("the page changes nothing; Ctrl-C ends it")
        if asked.opens:
            webbrowser.open(address)
        await is_over.wait()


def _address(asked: UiOptions) -> PageAddress:
    certificate, key = asked.tls_cert_file, asked.tls_private_key_file
    read = ServingCertificate(Path(certificate), Path(key)) if certificate and key else None
    return PageAddress(asked.host, asked.port, read)


def _names(asked: UiOptions) -> tuple[str, ...]:
    own = names_in(Path(asked.tls_cert_file)) if asked.tls_cert_file else ()
    return (*own, *(name.lower() for name in asked.hosts))


class Shown:
    """What was asked to be shown, and what has to go on for it."""

    def __init__(self, asked: UiOptions, stack: AsyncExitStack) -> None:
        """Leave what goes on to the stack."""
        self._asked, self._stack = asked, stack

    async def setup(self) -> PageSetup:
        """Return what is shown, and to whom."""
        asked, access = self._asked, Open()
        found = PageSetup("simulations", access, simulations=ResultFolder(Path(asked.results)) if asked.results else None)
        if asked.log:
            extra = recording_questions(Worlds(asked.log, asked.config, asked.profile))
            found = replace(found, title=Path(asked.log).resolve().name, moments=await self._moments(asked.log), extra=extra)
        if asked.files:
            source = self._files()
            return replace(found, title=source.title, showing=Showing(source, SETUP), extra=cluster_questions())
        return await self._live(found) if asked.asks_cluster else found

    def _files(self) -> StillSource:
        asked = self._asked
        given = read_input(asked, asked.files, asked.policy)
        given.intake.skipped.pop(EVENT.kind, None)  # sessions do not read them, but the page shows them
        title = listed([Path(path).name for path in asked.files])
        objects = StillObjects(title, given.documents, given.cluster, given.now, given.intake.refused_groups, notes_of(given))
        return StillSource(objects, connected(given.policy), connected, given.names)

    async def _moments(self, folder: str) -> RecordedMoments:
        asked = self._asked
        policy: Policy | None = asked_policy(asked.config, asked.profile) if asked.config or asked.profile else None
        moments = RecordedMoments(RecordedFolder(Path(folder), SETUP, RecordedRules(policy, asked.names)))
        await moments.recording.moment(asked.at or "")  # a wrong one is refused now
        return moments

    async def _live(self, found: PageSetup) -> PageSetup:
        asked = self._asked
        reached = choose(asked.reach, is_plugin=click.get_current_context().find_root().info_name == PLUGIN, environment=os.environ)
        client = await self._stack.enter_async_context(
            reached.client(is_frugal=True, answer_seconds=asked.reach.request_timeout or ANSWER_SECONDS)
        )
        await client.version()  # a cluster that is not there is an error now
        source = FollowedCluster(
            client, asked.reach.context or client.server, connected(asked_policy(asked.config, asked.profile)), connected,
            schedulers=asked.names, ours=our_schedulers(asked.names), report=output.note,
        )  # fmt: skip
        await self._stack.enter_async_context(_followed(source))
        access: Access = PageAccess(client, time.monotonic) if asked.is_exposed else Open()
        extra = {**found.extra, **cluster_questions()}
        return replace(found, title=source.title, access=access, showing=Showing(source, SETUP), extra=extra)


@asynccontextmanager
async def _followed(source: FollowedCluster) -> AsyncIterator[None]:
    """Follow a cluster inside the block."""
    task = asyncio.create_task(source.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
