"""What `phalanx describe` shows."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import click

from phalanx.cli import output
from phalanx.cli.gang_choice import gang_called
from phalanx.cli.get_run import group_kind
from phalanx.cli.lookup import find, is_gang
from phalanx.cli.yaml_text import yaml_text
from phalanx.errors import Forbidden, Missing
from phalanx.explain.recorded import event_order, event_time, pod_refusal
from phalanx.model.conditions import IS_GATED, NODES_REQUESTED, UNSCHEDULABLE
from phalanx.model.kinds import EVENT, POD
from phalanx.model.resources import readable, scale_of
from phalanx.store.api_client import Listing
from phalanx.store.apply import LAST_APPLIED
from phalanx.store.kube.client import Client
from phalanx.web.columns import Document, age

MOST_EVENTS = 12
SHARES = ("deserved", "fair_share", "allocated", "requested", "capability")
"""What is shown of a queue, in this order."""
COUNTED = ("allocated", "requested")
"""Where there is none of a resource, it is left out."""


async def describe(client: Client, kind_name: str, namespace: str, name: str) -> None:
    """Show one object and what happened to it."""
    if is_gang(kind_name):
        gang = await gang_called(client, namespace, name)
        name = gang["metadata"]["name"]
        kind = await group_kind(client, gang)
        group = None if kind is None else await client.get(kind, namespace, name.partition("@")[0])
        pods = await _pods_of(client, gang)
        _show_gang(gang, group, pods, client.now)
        _show_members(gang, pods)
        _show_conditions(gang["conditions"] if group is None else (group.get("status") or {}).get("conditions") or ())
        about = {name, *(member["pod"] for member in gang["members"])}
        await _show_events(client, namespace, about)
        return
    _, found = await find(client, kind_name, namespace, name)
    _show_object(found, client.now)
    if found["kind"] == "Queue":
        await _show_shares(client, name)
    await _show_events(client, found["metadata"].get("namespace", ""), {name})


def _show_gang(gang: Document, group: Document | None, pods: Mapping[str, Document], now: float) -> None:
    placed = f"{gang['placed']} of {len(gang['members'])}, {gang['running']} running; minimum {gang['minimum']}"
    _fields(
        ("Gang", gang["metadata"]["name"]),
        ("Namespace", gang["metadata"]["namespace"]),
        ("Dialect", gang["dialect"]),
        ("Group", _group(gang, group)),
        ("Queue", gang["queue"]),
        ("Age", age((group or gang)["metadata"].get("creationTimestamp", ""), now)),
        ("Status", gang["status"]),
        ("Phase", gang["phase"]),
        ("Placed", placed),
        ("Reason", gang["reason"]),
        ("Why", gang["why"]),
        ("More nodes", _more_nodes(pods.get(item["pod"], {}) for item in gang["members"])),
        ("For more", f"{_program()} explain {gang['metadata']['namespace']}/{gang['metadata']['name']}" if gang["why"] else ""),
    )


def _program() -> str:
    """Return the name under which the program was started."""
    return str(click.get_current_context().find_root().info_name)


async def _pods_of(client: Client, gang: Document) -> dict[str, Document]:
    """Return the pods in the namespace of a gang, by name."""
    listed = await client.list(POD, gang["metadata"]["namespace"]) if gang["members"] else Listing([], "")
    return {pod["metadata"]["name"]: pod for pod in listed.items}


def _more_nodes(members: Iterable[Document]) -> str:
    """Say whether nodes are what pods wait for, by the reason that autoscalers go by; empty if none says why it waits."""
    reasons = {pod_refusal(pod)[0] for pod in members} - {"", IS_GATED["reason"]}
    if not reasons:
        return ""
    return "would help" if reasons & {UNSCHEDULABLE, NODES_REQUESTED} else "would not help"


def _show_members(gang: Document, pods: Mapping[str, Document]) -> None:
    """Show the pods of a gang, each with what is written on it."""
    rows = [(item["pod"], item["status"], item["node"], _trouble(pods.get(item["pod"], {}))) for item in gang["members"]]
    _section("Members", [("POD", "STATUS", "NODE", "REASON"), *rows])


def _trouble(pod: Document) -> str:
    """Return why a pod has no node, or why it does not run there; empty if all is well."""
    status = pod.get("status") or {}
    waiting = [(item.get("state") or {}).get("waiting") or {} for item in status.get("containerStatuses") or ()]
    reasons = [pod_refusal(pod), *((item.get("reason"), item.get("message")) for item in (*waiting, status))]
    return next((": ".join(filter(None, parts)) for parts in reasons if any(parts)), "")


def _group(gang: Document, group: Document | None) -> str:
    if group is not None:
        return f"{group['kind']} of {gang['group']}"
    return f"made by its pods ({gang['group']})" if gang["group"] else "does not exist"


def _show_object(found: Document, now: float) -> None:
    meta = found["metadata"]
    notes = {key: value for key, value in (meta.get("annotations") or {}).items() if key != LAST_APPLIED}
    _fields(
        ("Name", meta["name"]),
        ("Namespace", meta.get("namespace", "")),
        ("Kind", f"{found['kind']} of {found['apiVersion']}"),
        ("Age", age(meta.get("creationTimestamp", ""), now)),
        ("Labels", _pairs(meta.get("labels") or {})),
        ("Annotations", _pairs(notes)),
    )
    rest = {key: value for key, value in found.items() if key not in ("apiVersion", "kind", "metadata")}
    if rest:
        click.echo(yaml_text(rest), nl=False)


async def _show_shares(client: Client, name: str) -> None:
    """Show what a queue has, asks for and deserves, by resource; only the scheduler of an embedded cluster says so."""
    with suppress(Missing, Forbidden):
        figures = await client.queue_figures(name)
        kinds = [kind for kind in SHARES if any(kind in amounts for amounts in figures.values())]
        rows = [
            (resource, *(_amount(resource, amounts.get(kind, 0.0 if kind in COUNTED else None)) for kind in kinds))
            for resource, amounts in figures.items() if any(amounts.values())
        ]  # fmt: skip
        _section("Shares", [("RESOURCE", *(kind.upper().replace("_", "-") for kind in kinds)), *rows])


def _amount(resource: str, amount: float | None) -> str:
    return "-" if amount is None else readable(resource, amount * scale_of(resource))


def _fields(*fields: tuple[str, Any]) -> None:
    shown = [(f"{name}:", str(value)) for name, value in fields if value != ""]
    for line in output.columns(shown):
        output.say(line)


def _pairs(table: Document) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(table.items()))


def _section(title: str, rows: Sequence[Sequence[str]]) -> None:
    if len(rows) > 1:
        click.echo(f"{title}:")
        for line in output.columns(rows):
            output.say(f"  {line}")


def _show_conditions(conditions: Iterable[Document]) -> None:
    rows = [tuple(str(item.get(key, "")) for key in ("type", "status", "reason", "message")) for item in conditions]
    _section("Conditions", [("TYPE", "STATUS", "REASON", "MESSAGE"), *rows])


async def _show_events(client: Client, namespace: str, about: Iterable[str]) -> None:
    listed = await client.list(EVENT, namespace)
    found = [item for item in listed.items if item.get("involvedObject", {}).get("name") in about]
    found.sort(key=event_order)
    rows = [
        (age(event_time(item), client.now), item.get("type", ""), item.get("reason", ""),
         f"{item['involvedObject']['kind'].lower()}/{item['involvedObject']['name']}", item.get("message", ""))
        for item in found[-MOST_EVENTS:]
    ]  # fmt: skip
    _section("Events", [("AGE", "TYPE", "REASON", "ABOUT", "MESSAGE"), *rows])
