"""`phalanx manifests`: the manifests of an installation, ready for kubectl apply."""

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from phalanx.model.kinds import Document

if TYPE_CHECKING:
    from phalanx.manifests.install_settings import InstallSettings

SETS = ("volcano", "kai", "coscheduling")
OUTPUT = click.option("-o", "--output", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True,
                      help="Several YAML documents, or one JSON list.")  # fmt: skip
OF = click.option("--of", "sets", type=click.Choice(SETS), multiple=True,
                  help="Only the kinds of this scheduler; may be repeated. All by default.")  # fmt: skip
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _checked_namespace(ctx: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """Return the name of a namespace if the API server takes it."""
    if name and not DNS_LABEL.fullmatch(name):
        wanted = "write at most 63 of a-z, 0-9 and '-', with a letter or digit at both ends"
        raise click.BadParameter(f"{name!r} is not a name for a namespace; {wanted}")
    return name


def _checked_accounts(ctx: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return service accounts if they are written as NAMESPACE:NAME."""
    for name in names:
        if not re.fullmatch(r"[^:]+:[^:]+", name):
            raise click.BadParameter(f"{name!r} is not a service account; write NAMESPACE:NAME, such as default:ci")
    return names


NAMESPACE = click.option(
    "-n", "--namespace", callback=_checked_namespace, help="Namespace of the installation; phalanx-system by default."
)
IMAGE = click.option("--image", metavar="IMAGE", help="Image of the scheduler; phalanx:VERSION by default.")
PROFILE = click.option("--profile", metavar="NAME", help="Profile of the scheduler; phalanx by default.")
NO_SSH = click.option("--no-ssh", is_flag=True, help="Grant no access to Secrets; Volcano Jobs with the plugin ssh cannot start.")

KEEP_NODES = click.option(
    "--keep-nominated-nodes", "keeps_nodes", is_flag=True, help="Keep nodes that gangs are nominated to from autoscalers."
)


def _command(name: str, short_help: str, *examples: str) -> Callable[[Callable[..., None]], click.Command]:
    epilog = "\n".join(["\b", "Examples:", *(f"  phalanx manifests {example}" for example in examples)])
    return command.command(name, short_help=short_help, epilog=epilog)


@click.group(
    epilog="\b\nExamples:\n  phalanx manifests all | kubectl apply --server-side -f -\n"
    "  phalanx manifests policies > policies.yaml",
    no_args_is_help=True,
)
def command() -> None:
    """Print installation manifests, ready for kubectl apply."""


@_command("crds", "Print the custom resource definitions.", "crds | kubectl apply --server-side -f -", "crds --of kai -o json")
@OF
@OUTPUT
def crds(sets: tuple[str, ...], form: str) -> None:
    """Print the CustomResourceDefinitions of Volcano's, KAI's and Coscheduling's kinds, with defaults and validation rules."""
    from phalanx.manifests.definitions import definition_documents

    _print(definition_documents(*sets), form)


@_command("policies", "Print the admission policies.", "policies | kubectl apply --server-side -f -", "policies -o json")
@OUTPUT
def policies(form: str) -> None:
    """Print the admission policies: rules and defaults that a CRD cannot express. They need Kubernetes 1.36 or newer."""
    from phalanx.manifests.admission_policies import policy_documents

    _print(policy_documents(), form)


@_command("rbac", "Print the service account and its roles.", "rbac | kubectl apply --server-side -f -", "rbac -n batch --no-ssh")
@NAMESPACE
@NO_SSH
@KEEP_NODES
@click.option("--shadow", is_flag=True, help="For 'phalanx run --shadow': a role that may only list and watch.")
@OUTPUT
def rbac(form: str, *, shadow: bool, **given: Any) -> None:
    """Print the namespace, the service account of the scheduler, and roles with the permissions it needs and no more.

    The roles phalanx-view and phalanx-edit are for users; they are aggregated to the roles view, edit and admin. With --shadow
    there is one role, which can change nothing.
    """
    from phalanx.manifests.roles import role_documents, shadow_documents

    _print((shadow_documents if shadow else role_documents)(_settings(**given)), form)


@_command(
    "reader",
    "Print a role that may only read.",
    "reader --user ada | kubectl apply --server-side -f -",
    "reader --service-account ci:planner -o json",
)
@click.option("--user", "users", multiple=True, metavar="NAME", help="Bind the role to this user; may be repeated.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Bind the role to this group; may be repeated.")
@click.option("--service-account", "accounts", multiple=True, metavar="NAMESPACE:NAME", callback=_checked_accounts,
              help="Bind the role to this service account; may be repeated.")  # fmt: skip
@click.option("--page", "is_page", is_flag=True, help="For 'phalanx ui' that serves others.")
@OUTPUT
def reader(
    form: str, *, users: tuple[str, ...], groups: tuple[str, ...], accounts: tuple[str, ...], is_page: bool
) -> None:  # fmt: skip
    """Print a ClusterRole for those who ask what would be scheduled, such as with `phalanx schedule --context`.

    It may list everything that scheduling depends on, but no Secrets or ConfigMaps, and can change nothing. With --page it may also
    watch that, list events, and ask the API server who may see what.
    """
    from phalanx.manifests import roles

    pairs = (account.partition(":") for account in accounts)
    named = [*map(roles.user, users), *map(roles.group, groups), *(roles.service_account(space, name) for space, _, name in pairs)]
    _print((roles.page_documents if is_page else roles.reader_documents)(named), form)


@_command(
    "deployment",
    "Print the deployment of the scheduler.",
    "deployment --image phalanx:0.1.0",
    "deployment --profile volcano -o json",
)
@NAMESPACE
@IMAGE
@PROFILE
@KEEP_NODES
@OUTPUT
def deployment(form: str, **given: Any) -> None:
    """Print the configuration, Deployment, Service and PodDisruptionBudget. They need what `rbac` prints."""
    from phalanx.manifests.install import install_documents

    _print(install_documents(_settings(**given)), form)


@_command(
    "monitoring", "Print alerts and a dashboard.", "monitoring | kubectl apply --server-side -f -", "monitoring -n batch -o json"
)
@NAMESPACE
@OUTPUT
def monitoring(form: str, **given: Any) -> None:
    """Print the ServiceMonitor, the alerts and the Grafana dashboard. They need the Prometheus operator."""
    from phalanx.manifests.monitoring import monitoring_documents

    _print(monitoring_documents(_settings(**given)), form)


@_command(
    "all", "Print everything that an installation needs.", "all | kubectl apply --server-side -f -", "all --of kai --profile kai"
)
@OF
@NAMESPACE
@NO_SSH
@IMAGE
@PROFILE
@KEEP_NODES
@OUTPUT
def everything(sets: tuple[str, ...], form: str, **given: Any) -> None:
    """Print the output of crds, policies, rbac and deployment, in this order."""
    from phalanx.manifests.admission_policies import policy_documents
    from phalanx.manifests.definitions import definition_documents
    from phalanx.manifests.install import install_documents
    from phalanx.manifests.roles import role_documents

    settings = _settings(**given)
    _print([*definition_documents(*sets), *policy_documents(), *role_documents(settings), *install_documents(settings)], form)


def _settings(
    namespace: str | None = None, image: str | None = None, profile: str | None = None, *, no_ssh: bool = False,
    keeps_nodes: bool = False,
) -> "InstallSettings":  # fmt: skip
    """Return the settings that were given, and defaults for the rest."""
    from phalanx.config.policies import DEFAULT_PROFILE, profile_text
    from phalanx.manifests.install_settings import InstallSettings

    given = {"namespace": namespace, "image": image}
    texts = {name: text for name, text in given.items() if text}
    return InstallSettings(config=profile_text(profile or DEFAULT_PROFILE), has_ssh=not no_ssh, keeps_nodes=keeps_nodes, **texts)


def _print(documents: Iterable[Document], form: str) -> None:
    from phalanx.manifests.yaml_text import documents_text, list_text

    click.echo((list_text if form == "json" else documents_text)(documents), nl=False)
