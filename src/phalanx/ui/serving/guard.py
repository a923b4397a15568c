"""What holds for every answer: it may only be shown by itself, load only its own files, and is given only to whom it is for.

There are no cookies: whoever may see something shows a token with every request, and a page of somebody else has none. What is
checked besides keeps pages of others, and names that somebody has made point here, from reading what needs no token on loopback.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from ipaddress import ip_address

from aiohttp import web
from aiohttp.typedefs import Middleware

from phalanx.ui import API

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOCAL = ("localhost", "127.0.0.1", "::1")
METHODS = ("GET", "HEAD", "POST")
JSON = "application/json"
FRIENDLY_SITES = ("same-origin", "none")
"""What a browser says of a request that the page itself made, or that somebody typed."""


def refusal(request: web.Request, names: Collection[str]) -> tuple[int, str] | None:
    """Return the status and the reason why a request is refused; `names` are those of this server besides its addresses."""
    try:
        host = (request.url.host or "").lower()
    except ValueError as problem:
        return 400, f"host {request.host!r}: no name or address with a port: {problem}"
    local = request.transport.get_extra_info("sockname")[0] if request.transport is not None else ""
    if not _is_ours(host, names, is_local=local in LOCAL):
        known = ", ".join([*LOCAL[:2], *names])
        return 403, f"host {host!r} is not this server; it is called {known}; --allowed-host adds a name"
    origin = request.headers.get("Origin", "")
    if origin and origin != f"{request.scheme}://{request.host}":
        return 403, f"requests from pages of {origin!r} are not allowed"
    if request.headers.get("Sec-Fetch-Site", "none") not in FRIENDLY_SITES and not _is_link(request):
        return 403, "requests from pages of another site are not allowed"
    if request.method not in METHODS:
        return 405, f"{request.method} is not allowed: the page changes nothing; write GET, or POST for a question"
    if request.method == "POST" and request.content_type != JSON:
        return 415, f"the body of the request is {request.content_type!r}; write {JSON}"
    return None


def _is_link(request: web.Request) -> bool:
    """Tell whether somebody follows a link to the page; to ask something by a link would make this server work for strangers."""
    return request.headers.get("Sec-Fetch-Mode") == "navigate" and not request.path.startswith(f"{API}/")


def _is_ours(host: str, names: Collection[str], *, is_local: bool) -> bool:
    """Tell whether somebody means this server; an address can be trusted, as no name can be made to point to it."""
    if host in LOCAL or host in names:
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return not is_local


def guarding(names: Collection[str]) -> Middleware:
    """Return a middleware that refuses strangers and puts its headers on every answer."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        refused = refusal(request, names)
        if refused is not None:
            response: web.StreamResponse = web.json_response({"error": refused[1]}, status=refused[0])
        else:
            response = await handler(request)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return guard
