"""What commands look up: the address that `phalanx up` left for them, and the kinds and objects of a cluster by name."""

import json
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from phalanx.model.kinds import Kind
    from phalanx.store.kube.client import Client

Found = TypeVar("Found")
START = "start one with 'phalanx up', or name one with --server or --kubeconfig"


def address_file() -> Path:
    """Return the file in which the address of a running cluster is left for other commands."""
    folder = os.environ.get("XDG_RUNTIME_DIR") or Path.home() / ".cache"
    return Path(folder) / "phalanx" / "server.json"


def leave_address(server: str) -> str:
    """Leave the address of the cluster for other commands; where one runs already, leave that alone and return who it is."""
    first, pid = _left()
    if running_address():
        return f"the cluster at {first} (process {pid})"
    file = address_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"server": server, "pid": os.getpid()}))
    return ""


def take_address_back(server: str) -> None:
    """Remove the address, unless another cluster has left its own since."""
    if _left()[0] == server:
        address_file().unlink(missing_ok=True)


def running_address() -> str:
    """Return the address that a running cluster left; that of one which was killed does not count."""
    server, pid = _left()
    return server if _is_running(pid) else ""


def _left() -> tuple[str, int]:
    try:
        left = json.loads(address_file().read_text())
        return str(left["server"]), int(left["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", 0


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return pid > 0


def kinds_of(kind_name: str) -> list["Kind"]:
    """Return the kinds of a name, short name or plural; where Kubernetes has a kind of that name, only that one."""
    from difflib import get_close_matches

    from phalanx.errors import ConfigError
    from phalanx.model.kinds import kinds_called, names

    found = kinds_called(kind_name)
    if not found:
        known = ["gangs", *names()]
        close = get_close_matches(kind_name.lower(), known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        raise ConfigError(f"unknown kind {kind_name!r}; {hint}")
    return [kind for kind in found if not kind.group] or found


async def kinds_here(client: "Client", kind_name: str) -> list["Kind"]:
    """Return the kinds of a name that the cluster serves, each in a version that it serves."""
    from phalanx.errors import Missing
    from phalanx.store.kube.discovery import served_kinds

    kinds = kinds_of(kind_name)
    if not any(kind.group for kind in kinds):
        return kinds
    served = {kind.resource: kind for kind in await served_kinds(client, kinds)}
    found = [served[kind.resource] for kind in kinds if kind.resource in served]
    if not found:
        groups = " or ".join(sorted({kind.group for kind in kinds}))
        hint = "'phalanx manifests crds' prints its CustomResourceDefinition"
        raise Missing(f"{client.server} serves no {kind_name} ({groups}); {hint}")
    return found


def is_gang(kind_name: str) -> bool:
    """Tell whether a name means gangs, which are no objects of their own."""
    return kind_name.lower() in ("gang", "gangs")


def is_known(kind_name: str) -> bool:
    """Tell whether a name means gangs or some kind of objects."""
    from phalanx.model.kinds import kinds_called

    return is_gang(kind_name) or bool(kinds_called(kind_name))


def title(kind: "Kind", name: str) -> str:
    """Return an object as kubectl names it: ``podgroup.scheduling.volcano.sh/train``."""
    return f"{kind.kind.lower()}{f'.{kind.group}' if kind.group else ''}/{name}"


def kind_names(kind: str) -> list[str]:
    """Return the kinds that were typed together, as in ``pods,jobs``."""
    return kind.split(",")


def named_targets(kind: str, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return kinds and names as typed: ``job a b``, ``pods,jobs a`` or ``job/a pod/b``; none where a kind stands alone."""
    if "/" not in kind:
        return [(part, name) for part in kind_names(kind) for name in names]
    return [_target(word) for word in (kind, *names)]


def typed_targets(kind: str, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return kinds and names as typed, also names of gangs without a kind, among others that have one."""
    if "/" not in kind and all(map(is_known, kind_names(kind))):
        return named_targets(kind, names)
    return [_target(word) if "/" in word else ("gang", word) for word in (kind, *names)]


def _target(word: str) -> tuple[str, str]:
    """Return the kind and the name of ``job/a``."""
    from click import UsageError

    kind, _, name = word.partition("/")
    if not (kind and name) or "/" in name:
        raise UsageError(f"{word!r} is no KIND/NAME; write KIND NAME NAME, or KIND/NAME KIND/NAME")
    return kind, name


async def find(client: "Client", kind_name: str, namespace: str, name: str) -> tuple["Kind", dict[str, Any]]:
    """Return an object of a kind; if it is not there, the error names a namespace that has one of that name."""
    from phalanx.errors import Missing

    problem: Missing | None = None
    for kind in await kinds_here(client, kind_name):
        try:
            return kind, dict(await client.get(kind, namespace, name))
        except Missing as missing:
            problem = problem or missing
    assert problem is not None
    raise Missing(f"{problem}{await _elsewhere(client, kind_name, name)}") from problem


class Looking:
    """Looks for one object after the other: those that are not there are told, and the others are found all the same."""

    def __init__(self) -> None:
        """Begin with nothing missing."""
        self.missing = 0

    async def at(self, found: Awaitable[Found]) -> "Found | None":
        """Return what is found; None, and an error on stderr, where it is not there."""
        from phalanx.cli.output import complain
        from phalanx.errors import Missing

        try:
            return await found
        except Missing as problem:
            self.missing += 1
            complain(f"error: {problem}")
            return None


async def _elsewhere(client: "Client", kind_name: str, name: str) -> str:
    """Return the end of a message: which other namespace has an object of that name, if we may read it."""
    from contextlib import suppress

    from phalanx.errors import Forbidden

    for kind in await kinds_here(client, kind_name):
        with suppress(Forbidden):
            items = (await client.list(kind, fields=f"metadata.name={name}")).items if kind.is_namespaced else []
            if items:
                return f" in this namespace; there is one with -n {items[0]['metadata']['namespace']}"
    return ""
