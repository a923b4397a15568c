"""`phalanx manifests`: print what a cluster has to know of us, ready for kubectl apply."""

from collections.abc import Iterable

import click

from phalanx.model.kinds import Document

OUTPUT = click.option("-o", "--output", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True,
                      help="Several YAML documents, or one JSON list.")  # fmt: skip


@click.group(
    epilog="\b\nExamples:\n  phalanx manifests crds | kubectl apply --server-side -f -\n"
    "  phalanx manifests policies > policies.yaml",
    no_args_is_help=True,
)
def command() -> None:
    """Print what a cluster has to know of us, ready for kubectl apply."""


@command.command(
    short_help="Print the definitions of the kinds.",
    epilog="\b\nExamples:\n  phalanx manifests crds | kubectl apply --server-side -f -\n  phalanx manifests crds -o json",
)
@OUTPUT
def crds(form: str) -> None:
    """Print the CustomResourceDefinitions of Volcano's, KAI's and Coscheduling's kinds, with their defaults and rules."""
    from phalanx.manifests.definitions import definition_documents

    _print(definition_documents(), form)


@command.command(
    short_help="Print the admission policies.",
    epilog="\b\nExamples:\n  phalanx manifests policies | kubectl apply --server-side -f -\n  phalanx manifests policies -o json",
)
@OUTPUT
def policies(form: str) -> None:
    """Print the admission policies: rules and defaults that a definition cannot hold. They need Kubernetes 1.36 or newer."""
    from phalanx.manifests.policies import policy_documents

    _print(policy_documents(), form)


def _print(documents: Iterable[Document], form: str) -> None:
    """Print objects; the same ones give the same bytes."""
    if form == "json":
        import msgspec

        listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        click.echo(msgspec.json.format(msgspec.json.encode(listed), indent=2))
        return
    click.echo("---\n".join(_yaml(document) for document in documents), nl=False)


def _yaml(document: Document) -> str:
    import yaml

    class Plain(yaml.SafeDumper):
        """Writes the same part twice rather than once with a reference to it."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    return yaml.dump(document, Dumper=Plain, sort_keys=False, allow_unicode=True, width=1 << 16)
