"""`phalanx config`: show the built-in profiles, check a configuration, list what one may name."""

import click

PROFILE = click.option("--profile", metavar="NAME", default="phalanx", show_default=True, help="The profile to show.")


@click.group(
    epilog="\b\nExamples:\n  phalanx config show --profile volcano > scheduler.yaml\n  phalanx config check scheduler.yaml",
    no_args_is_help=True,
)
def command() -> None:
    """Show and check scheduler configurations and profiles."""


@command.command(
    short_help="Print a built-in profile.",
    epilog="\b\nExamples:\n  phalanx config show\n  phalanx config show --profile volcano --defaults",
)
@PROFILE
@click.option("--defaults", is_flag=True, help="Include the defaults of all switches and arguments.")
def show(profile: str, defaults: bool) -> None:
    """Print a built-in profile, ready to be edited and used with --config."""
    from phalanx.config.policies import policy_of_profile, profile_text

    text = profile_text(profile)
    if defaults:
        from phalanx.config.reference import spelled_out

        text = spelled_out(policy_of_profile(profile))
    click.echo(text, nl=False)


@command.command(
    short_help="Check a configuration without using it.",
    epilog="\b\nExamples:\n  phalanx config check volcano-scheduler.conf\n"
    "  kubectl get configmap volcano-scheduler-configmap -n volcano-system -o yaml | phalanx config check -",
)
@click.argument("file", type=click.Path(allow_dash=True), metavar="FILE")
def check(file: str) -> None:
    """Check a configuration without using it: names, order, switches, and the arguments of every action and plugin.

    FILE is a volcano-scheduler.conf, on its own or inside its ConfigMap; - is stdin.
    """
    from phalanx.cli import output
    from phalanx.explain.reason_text import NO_GANGS, counted
    from phalanx.store.input_files import policy_of_file

    policy = policy_of_file(file)
    parts = (counted(len(policy.actions), "action"), counted(len(policy.tiers), "tier"), counted(len(policy.plugins()), "plugin"))
    output.say(f"{'stdin' if file == '-' else file}: ok, {', '.join(parts)}")
    if not policy.holds_gangs:
        output.note(f"tiers: {NO_GANGS}, so that parts of them start and hold resources; add the plugin 'gang'")


@command.command("list", epilog="\b\nExamples:\n  phalanx config list\n  phalanx config list | grep queue")
def list_names() -> None:
    """List the profiles, actions and plugins that a configuration can use."""
    from phalanx.cli import output
    from phalanx.config.builtin import CATALOGUE
    from phalanx.config.policies import profile_names, profile_summary
    from phalanx.config.reference import summary

    sections = {
        "PROFILES": [(name, profile_summary(name)) for name in profile_names()],
        "ACTIONS": [(name, summary(action)) for name, action in CATALOGUE.actions.items()],
        "PLUGINS": [(name, summary(plugin)) for name, plugin in sorted(CATALOGUE.plugins.items())],
    }
    width = max(len(name) for rows in sections.values() for name, _ in rows)
    for number, (title, rows) in enumerate(sections.items()):
        click.echo("\n" * bool(number) + title)
        for line in output.columns([(f"  {name.ljust(width)}", text) for name, text in rows]):
            output.say(line)
