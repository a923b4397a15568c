"""Which cluster a command talks to, and how it does: the address that `phalanx up` left, or one that was named."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from phalanx.model.kinds import Kind
    from phalanx.store.kube.client import Client

VARIABLE = "PHALANX_SERVER"
START = "start one with 'phalanx up', or name one with --server"
Result = TypeVar("Result")

server_option = click.option(
    "--server", metavar="URL", help="The cluster to talk to; the one of 'phalanx up' unless said otherwise."
)
namespace_option = click.option(
    "-n", "--namespace", default="default", show_default=True, metavar="NAME", help="Look in this namespace."
)


def address_file() -> Path:
    """Return the file in which the address of a running cluster is left for other commands."""
    folder = os.environ.get("XDG_RUNTIME_DIR") or Path.home() / ".cache"
    return Path(folder) / "phalanx" / "server.json"


def leave_address(server: str) -> None:
    """Tell other commands where the cluster is."""
    file = address_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"server": server, "pid": os.getpid()}))


def take_address_back(server: str) -> None:
    """Remove the address, unless another cluster has left its own since."""
    if _left_address() == server:
        address_file().unlink(missing_ok=True)


def _left_address() -> str:
    try:
        return str(json.loads(address_file().read_text())["server"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def ask(server: str | None, question: Callable[["Client"], Awaitable[Result]]) -> Result:
    """Ask the cluster something and return the answer."""
    import asyncio

    from phalanx.errors import Unreachable
    from phalanx.store.kube.client import Client

    address = server or os.environ.get(VARIABLE) or _left_address()
    if not address:
        raise Unreachable(f"no cluster at {address_file()}: {START}")
    if not address.startswith(("http://", "https://")):
        raise Unreachable(f"no cluster at {address!r}: write a URL such as http://127.0.0.1:8001")

    async def asked() -> Result:
        async with Client(address) as client:
            return await question(client)

    try:
        return asyncio.run(asked())
    except Unreachable as problem:
        raise Unreachable(f"no cluster at {address}: {START}") from problem


def kinds_of(word: str) -> list["Kind"]:
    """Return the kinds that a word means; of kinds with the same name Kubernetes' own comes alone."""
    from difflib import get_close_matches

    from phalanx.errors import ConfigError
    from phalanx.model.kinds import kinds_called, names

    found = kinds_called(word)
    if not found:
        known = ["gangs", *names()]
        close = get_close_matches(word.lower(), known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        raise ConfigError(f"unknown kind {word!r}; {hint}")
    return [kind for kind in found if not kind.group] or found


def is_gang(word: str) -> bool:
    """Tell whether a word means gangs, which are no objects of their own."""
    return word.lower() in ("gang", "gangs")


def title(kind: "Kind", name: str) -> str:
    """Return an object as kubectl names it: ``podgroup.scheduling.volcano.sh/train``."""
    return f"{kind.kind.lower()}{f'.{kind.group}' if kind.group else ''}/{name}"


def split_name(kind: str, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return a kind and its names, also when they were typed as ``pod/train-0``."""
    word, _, name = kind.partition("/")
    return word, ((name, *names) if name else names)


async def find(client: "Client", word: str, namespace: str, name: str) -> tuple["Kind", dict[str, Any]]:
    """Return an object of a kind; if it is not there, say where one of that name is."""
    from phalanx.errors import Missing

    problem: Missing | None = None
    for kind in kinds_of(word):
        try:
            return kind, dict(await client.get(kind, namespace, name))
        except Missing as missing:
            problem = missing
    assert problem is not None
    raise Missing(f"{problem}{await _elsewhere(client, word, name)}") from problem


async def _elsewhere(client: "Client", word: str, name: str) -> str:
    for kind in kinds_of(word):
        items = (await client.list(kind, fields=f"metadata.name={name}")).items if kind.is_namespaced else []
        if items:
            return f" in this namespace; there is one with -n {items[0]['metadata']['namespace']}"
    return ""
