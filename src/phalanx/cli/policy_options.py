"""The options that commands with a session share: by which rules, for whom and when is scheduled, and how that is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from phalanx.cli.connection import Reach

if TYPE_CHECKING:
    from phalanx.session.policy import Policy

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])  # Any: a command, whatever it takes
PATH = click.Path(allow_dash=True)
FORMS = ("table", "json", "yaml")


class Duration(click.ParamType[float]):
    """A duration such as 90s, 2h30m or a number of seconds; the command gets seconds."""

    name = "duration"

    def __init__(self, *, is_zero_allowed: bool = False) -> None:
        self._is_zero_allowed = is_zero_allowed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # Any: as click declares it
        """Return the seconds of what was typed."""
        from phalanx.model.duration import seconds_in

        found = seconds_in(str(value))
        if found or (found == 0 and self._is_zero_allowed):
            return found
        option = param.opts[-1] if param is not None else self.name
        raise click.UsageError(f"{option}: {value!r} is not a duration; write for example 90s, 2h30m or 7d", ctx)


config = click.option(
    "--config", type=PATH, metavar="FILE", help="Configuration file to use, such as a volcano-scheduler.conf."
)  # fmt: skip
profile = click.option("--profile", metavar="NAME", help="Built-in profile to use; phalanx by default.")
gates = click.option(
    "--gate", "gates", multiple=True, metavar="NAME", help="Scheduling gate of gangs besides phalanx.dev/gang; may be repeated."
)
scheduler_names = click.option(
    "--scheduler-name", "names", multiple=True, metavar="NAME",
    help="Schedule pods with this schedulerName; may be repeated. All schedulers whose gangs are read by default.",
)  # fmt: skip
gang_namespace = click.option(
    "-n", "--namespace", metavar="NAME", help="Namespace of the gang; any in which there is one by default."
)
cluster_files = click.option(
    "-f", "--filename", "files", type=PATH, multiple=True, metavar="PATH",
    help="File or directory with the cluster, or - for stdin; may be repeated. A live cluster by default.",
)  # fmt: skip
_now = click.option(
    "--now", metavar="TIME",
    help="Time of the session, such as 2026-01-01T12:00:00Z; now by default, by the clock of a live cluster.",
)  # fmt: skip
_log = click.option(
    "--log", type=click.Path(file_okay=False), metavar="DIR", help="Take the cluster from this recording, see 'phalanx replay'."
)  # fmt: skip
_at = click.option(
    "--at", metavar="TIME", help="Moment of the recording, such as 2026-01-01T03:12:00Z or 03:12; its end by default."
)  # fmt: skip


def moment(command: AnyCommand) -> AnyCommand:
    """Add the options that say of which time the cluster is."""
    return _now(_log(_at(command)))


form = click.option(
    "-o", "--output", "form", type=click.Choice(FORMS), default="table", show_default=True, help="Output format."
)  # fmt: skip
search_timeout = click.option(
    "--timeout", type=Duration(is_zero_allowed=True), default="5s", show_default=True, metavar="DURATION",
    help="How long to look for changes that would start a waiting gang; 0 for not at all.",
)  # fmt: skip


def until_seconds(until: str | None) -> float | None:
    """Return how long to simulate, if that was given."""
    from phalanx.model.duration import seconds_in

    found = None if until is None else seconds_in(until)
    if until is not None and not found:
        raise click.UsageError(f"--until: {until!r} is not a duration; write for example 90s, 2h30m or 7d")
    return found


def refuse_two_policies(config: str | None, profile: str | None) -> None:
    """Refuse a configuration and a profile: each says who decides."""
    if config and profile:
        raise click.UsageError("--config and --profile exclude each other; a configuration may say 'profile: NAME' itself")


def refuse_stdin_twice(*paths: str | None) -> None:
    """Refuse more than one path that means stdin."""
    if paths.count("-") > 1:
        raise click.UsageError("stdin can be read only once: one '-' at most")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """What is typed for every command that holds a session."""

    reach: Reach
    files: tuple[str, ...]
    config: str | None
    profile: str | None
    names: tuple[str, ...]
    """Of schedulers; all that we know if there are none."""
    now: str | None
    """The time of the session; by default now."""
    log: str | None = None
    """The folder of a recording, from which the cluster comes."""
    at: str | None = None
    """The moment of the recording; by default its end."""
    form: str

    @property
    def sources(self) -> tuple[str | None, ...]:
        """Everything that is read, each of which may be stdin."""
        return (*self.files, self.config)

    @property
    def policy(self) -> "Policy":
        """The policy that was asked for; by default that of the recording, if the cluster comes from one."""
        if self.log and not self.config and not self.profile:
            from phalanx.cli.cluster_input import cluster_then
            from phalanx.recording.replay import policy_of_config

            return policy_of_config(cluster_then(self.log, self.at).config)
        return asked_policy(self.config, self.profile)

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together."""
        refuse_two_policies(self.config, self.profile)
        refuse_stdin_twice(*self.sources)
        if self.at and not self.log:
            raise click.UsageError("--at: says a moment of a recording; name the recording with --log DIR")
        if self.log and (self.reach.is_named or self.now):
            raise click.UsageError(
                "--log: the cluster and the time come from the recording; leave out --server, --context and --now"
            )


def asked_policy(config: str | None, profile: str | None) -> "Policy":
    """Return the policy of a configuration, or else that of a profile."""
    from phalanx.config.policies import DEFAULT_PROFILE, policy_of_profile
    from phalanx.store.input_files import policy_of_file

    return policy_of_file(config) if config else policy_of_profile(profile or DEFAULT_PROFILE)
