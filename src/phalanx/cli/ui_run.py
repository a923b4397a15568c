"""What `phalanx ui` does: it finds out what to show, and serves it until it is told to end."""

import asyncio
import signal
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from phalanx.cli import output
from phalanx.cli.intake_notes import notes_of
from phalanx.cli.policy_options import asked_policy
from phalanx.cli.session_input import read_input
from phalanx.cli.ui import UiOptions
from phalanx.cli.ui_questions import QUESTIONS
from phalanx.dev.worker_process import end_with_parent
from phalanx.live.catalogue import connected
from phalanx.model.listing import listed
from phalanx.session.policy import Policy
from phalanx.ui.moments import RecordedMoments
from phalanx.ui.recorded.folder import RecordedFolder, RecordedRules
from phalanx.ui.serving.answers import ANSWERS, OTHERS
from phalanx.ui.serving.mounted import with_page
from phalanx.ui.serving.page import PATH, Page, PageSetup
from phalanx.ui.showing import Showing, ShowingSetup
from phalanx.ui.still import StillObjects, StillSource
from phalanx.web.server import serving

SETUP = ShowingSetup(connected, end_with_parent, output.note)


async def serve(asked: UiOptions) -> None:
    """Serve the page until SIGTERM or Ctrl-C."""
    is_over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_over.set)
    async with shown(asked) as page:
        application = with_page(Page(page, ANSWERS, OTHERS))
        async with serving(application, host=asked.host, port=asked.port) as address:
            click.echo(f"{page.title}: {address}{PATH}/")
            output.note("the page changes nothing; Ctrl-C ends it")
            if asked.opens:
                webbrowser.open(f"{address}{PATH}/")
            await is_over.wait()


@asynccontextmanager
async def shown(asked: UiOptions) -> AsyncIterator[PageSetup]:
    """Yield what is to be shown."""
    if asked.files:
        source = _files(asked)
        yield PageSetup(source.title, Showing(source, SETUP), extra=QUESTIONS)
    elif asked.log:
        moments = _recording(asked)
        await moments.recording.moment(asked.at or "")  # a wrong one is refused now
        yield PageSetup(asked.log, moments=moments, extra=QUESTIONS)


def _files(asked: UiOptions) -> StillSource:
    given = read_input(asked, asked.files, asked.policy)
    title = listed([Path(path).name for path in asked.files])
    objects = StillObjects(title, given.documents, given.cluster, given.now, given.intake.refused_groups, notes_of(given))
    return StillSource(objects, connected(given.policy), connected, given.names)


def _recording(asked: UiOptions) -> RecordedMoments:
    assert asked.log is not None, "asked only where there is one"
    rules = RecordedRules(_policy(asked), asked.names)
    return RecordedMoments(RecordedFolder(Path(asked.log), SETUP, rules))


def _policy(asked: UiOptions) -> Policy | None:
    """Return the rules that were asked for; None for those of the recording."""
    return asked_policy(asked.config, asked.profile) if asked.config or asked.profile else None
