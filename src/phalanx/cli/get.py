"""`phalanx get`: gangs and other objects of a cluster."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phalanx.cli.connection import KindName, ObjectName, Reach, ask, cluster_options

if TYPE_CHECKING:
    from phalanx.store.kube.client import Client

EXAMPLES = """\b
Examples:
  phalanx get -A
  phalanx get pods -n research -l app=bert --sort-by=.spec.nodeName
"""

FORMS = ("table", "wide", "json", "yaml", "name")
JSONPATH, CUSTOM = "jsonpath=", "custom-columns="


class OutputForm(click.Choice[str]):
    """The form of the answer: one of `FORMS`, or jsonpath=TEMPLATE, or custom-columns=TITLE:PATH,..."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # Any: as click declares it
        """Let templates pass; they are read when there is something to fill in."""
        return value if str(value).startswith((JSONPATH, CUSTOM)) else super().convert(value, param, ctx)


@click.command(epilog=EXAMPLES)
@click.argument("kind", type=KindName(), metavar="[KIND]", default="gangs")
@click.argument("names", nargs=-1, type=ObjectName(), metavar="[NAME]...")
@cluster_options("Namespace of the objects.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Look in all namespaces.")
@click.option(
    "-l", "--selector", "labels", default="", metavar="SELECTOR", help="Only objects with matching labels, such as app=train."
)
@click.option(
    "--field-selector",
    "fields",
    default="",
    metavar="SELECTOR",
    help="Only objects with matching fields, such as spec.nodeName=gpu-1.",
)
@click.option(
    "-o", "--output", "form", type=OutputForm([*FORMS, f"{JSONPATH}TEMPLATE", f"{CUSTOM}TITLE:PATH,..."]), default="table",
    show_default=True, help="Output format.",
)  # fmt: skip
@click.option("--sort-by", "sort_by", default="", metavar="PATH", help="Sort by this field, such as .metadata.creationTimestamp.")
@click.option("--show-labels", "has_labels", is_flag=True, help="Show the labels in the last column.")
@click.option("--no-headers", "has_headers", flag_value=False, default=True, help="Do not print column headers.")
@click.option("-w", "--watch", "follows", is_flag=True, help="Keep watching and print every change until Ctrl-C.")
@click.pass_context
def command(ctx: click.Context, /, reach: Reach, **options: Any) -> None:  # Any: as click read them
    """List gangs or other objects of a cluster: pods, nodes, podgroups, queues and so on.

    A gang is a group with its pods; the list shows its status and, if it waits, why.
    """
    from phalanx.cli.get_run import show

    async def shown(client: "Client", namespace: str) -> bool:
        return await show(client, GetOptions(namespace=namespace, **options))

    try:
        is_all_there = ask(reach, shown)
    except KeyboardInterrupt:
        if not options["follows"]:
            raise
    else:
        ctx.exit(0 if is_all_there else 1)


@dataclass(frozen=True, slots=True)
class GetOptions:
    """What was typed."""

    kind: str
    names: tuple[str, ...]
    namespace: str
    everywhere: bool = False
    labels: str = ""
    fields: str = ""
    form: str = "table"
    sort_by: str = ""
    has_labels: bool = False
    has_headers: bool = True
    follows: bool = False

    @property
    def place(self) -> str:
        """The namespace to look in; empty for all."""
        return "" if self.everywhere else self.namespace

    @property
    def has_eta(self) -> bool:
        """Whether gangs are shown with their expected starts; not while watching, where every change would take seconds."""
        return self.form == "wide" and not self.follows

    @property
    def template(self) -> str:
        """The template that the answer fills in; empty for other forms."""
        return self.form.removeprefix(JSONPATH) if self.form.startswith(JSONPATH) else ""

    @property
    def columns(self) -> str | None:
        """The columns that were asked for; None for other forms."""
        return self.form.removeprefix(CUSTOM) if self.form.startswith(CUSTOM) else None
