"""Which cluster a command talks to: the options that say so, and the one function that decides.

    --server                          a URL
    --kubeconfig, --context           a context of a kubeconfig
    $PHALANX_SERVER                   a URL
    $KUBECONFIG                       its current context
    the address of 'phalanx up'       if one is running
    ~/.kube/config                    its current context
    the cluster around us             in a pod

The first that says something counts: what was typed before what is set. Under the name `kubectl phalanx` kubeconfigs come before
$PHALANX_SERVER. Who has exported $KUBECONFIG means it, as for kubectl; if 'phalanx up' runs besides, a note on a terminal says
which of the two is asked.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from phalanx.cli import PLUGIN
from phalanx.cli.failures import cause_of
from phalanx.cli.lookup import START, address_file, running_address

if TYPE_CHECKING:
    from phalanx.store.kube.client import Client
    from phalanx.store.kube.connect import ClusterAccess

VARIABLE, KUBECONFIG = "PHALANX_SERVER", "KUBECONFIG"
REACHED_BY = ("server", "kubeconfig", "context", "namespace", "request_timeout")
COMPLETION_SECONDS = 2.0
Result = TypeVar("Result")
Command = Callable[..., None]


class KindName(click.ParamType[str]):
    """The name of a kind; the shell completes it."""

    name = "kind"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer gangs and every kind that we know, by its plural."""
        from phalanx.model.kinds import names

        return [CompletionItem(name) for name in ["gangs", *names()] if name.startswith(incomplete)]


class ObjectName(click.ParamType[str]):
    """The name of an object; the shell completes it with what the cluster has, if that answers soon."""

    name = "name"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the objects of the kind that was typed."""
        from phalanx.cli.get_run import names_here

        kind = str(ctx.params.get("kind") or "gangs")
        return _offered(ctx, lambda client, namespace: names_here(client, kind, namespace), incomplete)


class QueueName(click.ParamType[str]):
    """The name of a queue; the shell completes it as it does names of objects."""

    name = "queue"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the queues of the cluster."""
        from phalanx.cli.get_run import names_here

        return _offered(ctx, lambda client, _: names_here(client, "queues", ""), incomplete)


class GangName(click.ParamType[str]):
    """The name of a gang, with its namespace or alone; the shell completes it as it does names of objects."""

    name = "gang"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the gangs of the namespace that was typed, or of all; not those of a cluster if files are read instead of one."""
        from phalanx.cli.get_run import gang_names

        if ctx.params.get("files"):
            return []
        place, is_begun = ctx.params.get("namespace") or "", bool(incomplete)
        return _offered(ctx, lambda client, _: gang_names(client, place, with_bare_names=is_begun), incomplete)


def _offered(
    ctx: click.Context, question: Callable[["Client", str], Awaitable[list[str]]], incomplete: str
) -> list[CompletionItem]:
    """Ask the cluster that was typed; nothing is offered where it does not answer soon."""
    import asyncio

    from phalanx.errors import PhalanxError

    async def asked(client: "Client", namespace: str) -> list[str]:
        async with asyncio.timeout(COMPLETION_SECONDS):
            return await question(client, namespace)

    try:
        found = ask(Reach(**{name: ctx.params.get(name) for name in REACHED_BY}), asked, ctx)
    except (PhalanxError, OSError, TimeoutError):
        return []
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]


class Seconds(click.ParamType[float]):
    """A duration such as 90s, in seconds; a bare number means seconds, as for kubectl."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # Any: as click passes it
        """Return the seconds."""
        from phalanx.model.duration import seconds_of

        text = str(value)
        found = seconds_of(f"{text}s" if text.isdecimal() else text)
        if not found:
            self.fail(f"{value!r} is not a duration; write for example 10s or 2m", param, ctx)
        return found


@dataclass(frozen=True, slots=True)
class Reach:
    """The options that name a cluster and a namespace, as they were typed."""

    server: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    request_timeout: float | None = None
    """In seconds."""

    @property
    def is_named(self) -> bool:
        """Tell whether an option names a cluster."""
        return bool(self.server or self.kubeconfig or self.context)


def cluster_options(namespace_help: str = "") -> Callable[[Command], Command]:
    """Give a command the options that name a cluster, and a namespace if it has a help; it gets them together, as `reach`."""
    options = [
        click.option("--server", metavar="URL", help="URL of the cluster, such as that of 'phalanx up'."),
        click.option(
            "--kubeconfig", type=click.Path(), metavar="FILE", help="Kubeconfig; by default $KUBECONFIG or ~/.kube/config."
        ),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig; the current one by default."),
        click.option(
            "--request-timeout",
            type=Seconds(),
            metavar="DURATION",
            help="How long to wait for each answer of the cluster; 30s by default.",
        ),
    ]
    if namespace_help:
        own = click.option("-n", "--namespace", metavar="NAME", help=f"{namespace_help} By default that of the context.")
        options.insert(0, own)

    def with_options(command: Command) -> Command:
        @wraps(command)
        def run(*args: Any, **given: Any) -> None:  # Any: as click passes them
            reach = Reach(**{name: given.pop(name) for name in REACHED_BY if name in given})
            command(*args, reach=reach, **given)

        for option in reversed(options):
            run = option(run)
        return run

    return with_options


def choose(reach: Reach, *, is_plugin: bool, environment: Mapping[str, str]) -> "ClusterAccess":
    """Decide which cluster is meant."""
    from phalanx.errors import Unreachable
    from phalanx.store.kube.connect import HOST, access, kubeconfig_paths

    named, variable = reach.server, environment.get(VARIABLE)
    is_context_named = bool(reach.kubeconfig or reach.context)
    has_files = any(path.exists() for path in kubeconfig_paths("", environment))
    if named or (variable and not is_plugin and not is_context_named):
        return _at(named or variable or "")
    if is_context_named or (has_files and (is_plugin or environment.get(KUBECONFIG))):
        return access(reach.kubeconfig or "", reach.context or "", environment)
    if address := variable or running_address():
        return _at(address)
    if has_files or HOST in environment:
        return access(environment=environment)
    raise Unreachable(f"no cluster at {address_file()}: {START}")


def other_cluster(reach: Reach, found: "ClusterAccess", *, is_plugin: bool) -> str:
    """Say which cluster is asked where 'phalanx up' runs and nothing that was typed says that another is meant; else nothing."""
    is_named = is_plugin or reach.server or reach.kubeconfig or reach.context
    address = "" if is_named else running_address()
    if not address or not found.place or found.server == address:
        return ""
    return f"asking {found.server} ({found.place}); for the cluster of 'phalanx up' add --server {address}"


def _at(address: str) -> "ClusterAccess":
    from phalanx.errors import Unreachable
    from phalanx.store.kube.connect import ClusterAccess
    from phalanx.store.kube.credentials import FixedCredentials

    if not address.startswith(("http://", "https://")):
        raise Unreachable(f"no cluster at {address!r}: write a URL such as http://127.0.0.1:8001")
    return ClusterAccess(address, "", FixedCredentials())


class _Warnings:
    """Shows what a server warns of, each sentence once, as kubectl does."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def show(self, text: str) -> None:
        if text not in self._shown:
            from phalanx.cli.output import complain

            self._shown.add(text)
            complain(f"Warning: {text}")


def ask(
    reach: Reach,
    question: Callable[["Client", str], Awaitable[Result]],
    ctx: click.Context | None = None,
    *,
    is_frugal: bool = False,
) -> Result:
    """Ask the cluster something about a namespace, and return the answer; a frugal client decodes only what sessions need."""
    from phalanx.cli import output
    from phalanx.errors import Unauthorized, Unreachable
    from phalanx.store.kube.client import ANSWER_SECONDS

    is_plugin = (ctx or click.get_current_context()).find_root().info_name == PLUGIN
    found = choose(reach, is_plugin=is_plugin, environment=os.environ)
    if sys.stdout.isatty() and (note := other_cluster(reach, found, is_plugin=is_plugin)):
        output.note(note)

    async def asked() -> Result:
        seconds = reach.request_timeout or ANSWER_SECONDS
        async with found.client(is_frugal=is_frugal, answer_seconds=seconds) as client:
            client.warned = _Warnings().show
            return await question(client, reach.namespace or found.namespace)

    try:
        return _answer(asked())
    except Unreachable as problem:
        if found.place:
            raise Unreachable(f"{found.place}: {problem}") from problem
        is_empty = isinstance(problem.__cause__, OSError) and not isinstance(problem.__cause__, TimeoutError)
        raise Unreachable(f"no cluster at {found.server}: {START}" if is_empty else str(problem)) from problem
    except Unauthorized as problem:
        what = "does not know who asks; log in again, or name another context with --context"
        raise Unauthorized(f"{found.place or 'no credentials'}: {found.server} {what}") from problem


def _answer(asked: Coroutine[Any, Any, Result]) -> Result:
    """Return what the cluster answers; where several watches fail together, one failure is raised."""
    import asyncio

    try:
        return asyncio.run(asked)
    except BaseExceptionGroup as problems:
        raise cause_of(problems) from None
