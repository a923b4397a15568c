"""The options of all commands that say by which rules and for whom is scheduled, and what they have in common besides."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from phalanx.session.policy import Policy

PATH = click.Path(allow_dash=True)

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
form = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(("table", "json", "yaml")),
    default="table",
    show_default=True,
    help="Output format.",
)


def refuse_two_policies(config: str | None, profile: str | None) -> None:
    """Refuse a configuration and a profile: each says who decides."""
    if config and profile:
        raise click.UsageError("--config and --profile exclude each other; a configuration may say 'profile: NAME' itself")


def refuse_stdin_twice(*paths: str | None) -> None:
    """Refuse more than one path that means stdin."""
    if paths.count("-") > 1:
        raise click.UsageError("stdin can be read only once: one '-' at most")


def asked_policy(config: str | None, profile: str | None) -> "Policy":
    """Return the policy of a configuration, or else that of a profile."""
    from phalanx.config.policies import DEFAULT_PROFILE, policy_of_profile
    from phalanx.store.input_files import policy_of_file

    return policy_of_file(config) if config else policy_of_profile(profile or DEFAULT_PROFILE)
