"""The files of the page: read once, served with a tag of their content, so that a browser asks whether they are still the same."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web

TYPES = {
    "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}  # fmt: skip
INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file."""

    content: bytes
    type: str
    tag: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Return all files by their path below the page."""
    return dict(_below(files("phalanx").joinpath("ui", "static"), ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, StaticFile]]:
    found: list[tuple[str, StaticFile]] = []
    for item in folder.iterdir():
        if item.is_dir():
            found += _below(item, f"{prefix}{item.name}/")
        elif (type_ := TYPES.get(item.name.rpartition(".")[2])) is not None:
            content = item.read_bytes()
            found.append((f"{prefix}{item.name}", StaticFile(content, type_, f'"{sha256(content).hexdigest()[:20]}"')))
    return found


def answer_file(request: web.Request) -> web.Response:
    """Answer with a file; with nothing but its tag where the browser has it."""
    found = static_files().get(request.match_info.get("path", "") or INDEX)
    if found is None:
        return web.json_response({"error": "there is no such page"}, status=404)
    headers = {"ETag": found.tag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == found.tag:
        return web.Response(status=304, headers=headers)
    response = web.Response(body=found.content, headers={**headers, "Content-Type": found.type})
    response.enable_compression()
    return response
