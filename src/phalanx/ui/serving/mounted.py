"""The page as a part of an application: below its path, which a browser is led to."""

from aiohttp import web

from phalanx.ui import PATH
from phalanx.ui.serving.guard import HEADERS
from phalanx.ui.serving.page import Page


def with_page(page: Page) -> web.Application:
    """Return an application that serves nothing but the page."""
    application = web.Application()
    mount(application, page)
    application.router.add_get("/", _to_page)
    return application


def mount(application: web.Application, page: Page) -> None:
    """Serve the page below its path; this has to come before whatever takes all paths."""
    application.router.add_get(PATH, _to_page)
    application.add_subapp(f"{PATH}/", page.application())


def mount_refusal(application: web.Application, reason: str) -> None:
    """Say at its path why the page is not served."""

    async def refuse(request: web.Request) -> web.StreamResponse:
        return web.Response(text=f"{reason}\n", status=403, headers=HEADERS)

    application.router.add_get(PATH, refuse)
    application.router.add_get(f"{PATH}/{{path:.*}}", refuse)


async def _to_page(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound(f"{PATH}/")
