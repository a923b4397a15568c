"""What `phalanx get` does: asks for objects, and shows them once or as they change."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import click
import msgspec

from phalanx.cli import output
from phalanx.cli.custom_columns import NOTHING, custom_columns, sorted_by
from phalanx.cli.gang_choice import gang_called
from phalanx.cli.get import GetOptions
from phalanx.cli.jsonpath import check_path, filled
from phalanx.cli.lookup import Looking, find, is_gang, kind_names, kinds_here, named_targets, title
from phalanx.cli.streams import visible
from phalanx.errors import Forbidden, Gone, Missing, Unreachable
from phalanx.explain.gang_status import GangStatus
from phalanx.model.kinds import GROUP_KINDS, POD, Kind, kind_of
from phalanx.store.kube.client import Client
from phalanx.store.kube.discovery import served_kinds
from phalanx.web.columns import Document, TableColumn, at, columns_of

BETWEEN_LOOKS_SECONDS = 0.5
"""What changes together is shown together."""


async def show(client: Client, asked: GetOptions) -> bool:
    """Show what was asked for; return whether all of it is there."""
    targets, looking, table = named_targets(asked.kind, asked.names), Looking(), _Table(client, asked)
    names_by_kind: dict[str, list[str]] = {} if targets else {part: [] for part in kind_names(asked.kind)}
    for kind_name, name in targets:
        names_by_kind.setdefault(kind_name, []).append(name)
    found = {each: await _found(client, asked, each, names, looking) for each, names in names_by_kind.items()}
    items = [item for each in found.values() for item in each]
    if items or not targets:
        table.write(items, is_one=len(targets) == 1)
    if asked.follows and not looking.missing:
        async with asyncio.TaskGroup() as tasks:
            for kind_name, names in names_by_kind.items():
                follow = _follow_gangs if is_gang(kind_name) else _follow
                tasks.create_task(follow(client, asked, kind_name, names, found[kind_name], table))
    return not looking.missing


async def _found(client: Client, asked: GetOptions, kind_name: str, names: Sequence[str], looking: Looking) -> list[Document]:
    """Return the objects of a kind, or those of these names."""
    if is_gang(kind_name):
        return await _found_gangs(client, asked, names, looking)
    if not names:
        return await all_of_kind(client, kind_name, asked.place, labels=asked.labels, fields=asked.fields)
    found = [await looking.at(find(client, kind_name, asked.namespace, name)) for name in names]
    return [dict(each[1]) for each in found if each is not None]


async def all_of_kind(client: Client, kind_name: str, namespace: str, *, labels: str = "", fields: str = "") -> list[Document]:
    """Return the objects of a kind in a namespace or in all, or those that are selected; or the gangs."""
    if is_gang(kind_name):
        return await gangs_listed(client, namespace, labels=labels, fields=fields)
    return [item for _, item in await objects_listed(client, kind_name, namespace, labels=labels, fields=fields)]


async def objects_listed(
    client: Client, kind_name: str, namespace: str, *, labels: str = "", fields: str = ""
) -> list[tuple[Kind, Document]]:
    """Return the objects of a kind, each with the kind as the cluster serves it; several kinds may have the name."""
    kinds = await kinds_here(client, kind_name)
    lists = [(kind, await client.list(kind, namespace, labels=labels, fields=fields)) for kind in kinds]
    return [(kind, item) for kind, one in lists for item in one.items]


async def _follow(
    client: Client, asked: GetOptions, kind_name: str, names: Sequence[str], shown: Sequence[Document], table: "_Table"
) -> None:
    """Show every change of some objects; an end or a gap in a watch begins a new one."""

    async def follow(kind: Kind) -> None:
        async for change in changes(client, kind, asked, known=shown):
            if not names or change["metadata"]["name"] in names:
                table.write_more(change)

    async with asyncio.TaskGroup() as tasks:
        for kind in await kinds_here(client, kind_name):
            tasks.create_task(follow(kind))


async def changes(
    client: Client, kind: Kind, asked: GetOptions, *, known: Sequence[Document] = ()
) -> AsyncGenerator[Document, None]:
    """Yield objects that are not as they are known, and then every change; a watch that ended or has a gap is begun anew."""
    since, last = "", {_place(item): item for item in known}
    while True:
        try:
            if not since:
                found = await client.list(kind, asked.place, labels=asked.labels, fields=asked.fields)
                since = found.version
                for item in _differing(last, found.items, kind):
                    yield item
            watch = client.watch(kind, asked.place, since=since, labels=asked.labels, fields=asked.fields)
            async with aclosing(watch) as events:
                async for event in events:
                    since = event.object["metadata"]["resourceVersion"]
                    if event.type != "BOOKMARK":
                        _note(last, event.object, is_gone=event.type == "DELETED")
                        yield event.object
        except Gone:
            since = ""
        except Unreachable as problem:
            raise Unreachable(f"{client.server} has stopped answering") from problem


_Place = tuple[str, str, str]
"""Kind, namespace and name of an object."""


def _place(item: Document) -> _Place:
    meta = item["metadata"]
    return item["kind"], meta.get("namespace", ""), meta["name"]


def _note(last: dict[_Place, Document], item: Document, *, is_gone: bool) -> None:
    last.pop(_place(item), None)
    if not is_gone:
        last[_place(item)] = item


def _differing(last: dict[_Place, Document], found: Sequence[Document], kind: Kind) -> list[Document]:
    """Return the objects of a kind that are not as they were, and as they were those that are gone; remember how they are now."""
    there = {_place(item): item for item in found}
    gone = [item for place, item in last.items() if place[0] == kind.kind and place not in there]
    changed = [item for place, item in there.items() if place not in last or _version(last[place]) != _version(item)]
    for item in gone:
        _note(last, item, is_gone=True)
    last |= there
    return [*gone, *changed]


def _version(item: Document) -> str:
    return str(item["metadata"].get("resourceVersion", ""))


# --- gangs ---------------------------------------------------------------------------------------------------------------


async def group_kind(client: Client, gang: Document) -> Kind | None:
    """Return the kind of a gang's group object, as the cluster serves it; None where pods alone make it."""
    group = gang["group"].rpartition("/")[0]
    kinds = [kind for kind in GROUP_KINDS if kind.group == group]
    return next(iter(await served_kinds(client, kinds)), None) if kinds else None


async def gangs(client: Client, namespace: str, names: Sequence[str] = ()) -> list[Document]:
    """Return the gangs of a namespace, or of all; those that were named have to be there."""
    found = await gangs_listed(client, namespace)
    for name in names:
        await _gang_in(found, client, name)
    return [item for item in found if not names or item["metadata"]["name"] in names]


async def _gang_in(found: Sequence[Document], client: Client, name: str) -> Document:
    """Return the gang of a name among those that were found."""
    for item in found:
        if item["metadata"]["name"] == name:
            return item
    raise Missing(f'gang "{name}" not found{await _elsewhere(client, name)}')


async def names_here(client: Client, kind_name: str, namespace: str) -> list[str]:
    """Return the names of the objects of a kind in a namespace, or of the gangs."""
    return sorted(str(item["metadata"]["name"]) for item in await all_of_kind(client, kind_name, namespace))


async def gang_names(client: Client, namespace: str, *, with_bare_names: bool) -> list[str]:
    """Return how gangs can be named: by name in a namespace; else with their namespaces, and by their names alone if asked for."""
    found = [item["metadata"] for item in await gangs(client, namespace)]
    names = {str(item["name"]) for item in found}
    if namespace:
        return sorted(names)
    return sorted({f"{item['namespace']}/{item['name']}" for item in found} | (names if with_bare_names else set()))


async def _elsewhere(client: Client, name: str) -> str:
    """Return the end of a message: which other namespace has a gang of that name, if we may read it."""
    try:
        others = [item["metadata"]["namespace"] for item in await gangs_listed(client, "") if item["metadata"]["name"] == name]
    except Forbidden:
        return ""
    return f" in this namespace; there is one with -n {others[0]}" if others else ""


async def gangs_listed(client: Client, namespace: str, *, labels: str = "", fields: str = "") -> list[Document]:
    """Return the gangs that an embedded cluster lists; of a real cluster, those that its objects make."""
    if labels or fields:
        raise click.UsageError("gangs have no labels or fields to select by; select pods or podgroups")
    from phalanx.live.observer import Observer

    try:
        return [item for item in await client.gangs() if namespace in ("", item["metadata"]["namespace"])]
    except (Missing, Forbidden):
        observer = Observer()
        found: list[Document] = (await observer.look(client, namespace))["items"]
    for problem in observer.problems:
        output.note(f"left out: {problem}")
    return found


async def _with_eta(client: Client, shown: list[Document]) -> list[Document]:
    if all(GangStatus(gang["status"]).has_minimum for gang in shown):
        return [{**gang, "eta": "-"} for gang in shown]
    from phalanx.cli.get_eta import with_eta  # simulations are imported only where somebody waits, which takes half a second

    return [*await with_eta(client, shown)]


async def _found_gangs(client: Client, asked: GetOptions, names: Sequence[str], looking: Looking) -> list[Document]:
    found = await gangs_listed(client, asked.place, labels=asked.labels, fields=asked.fields)
    meant = [await looking.at(_gang_meant(found, client, asked, name)) for name in names]
    there = {gang["metadata"]["name"] for gang in meant if gang is not None}
    shown = [item for item in found if not names or item["metadata"]["name"] in there]
    return await _with_eta(client, shown) if asked.has_eta else shown


async def _gang_meant(found: Sequence[Document], client: Client, asked: GetOptions, name: str) -> Document:
    """Return the gang of a name; in one namespace its owner's name, or the beginning of its own, will do."""
    is_exact = asked.everywhere or any(item["metadata"]["name"] == name for item in found)
    return await (_gang_in(found, client, name) if is_exact else gang_called(client, asked.place, name))


async def _follow_gangs(
    client: Client, asked: GetOptions, _: str, names: Sequence[str], shown: Sequence[Document], table: "_Table"
) -> None:
    """Show every gang that changes."""
    followed = {item["metadata"]["name"] for item in shown} if names else set()
    changed = asyncio.Event()

    async def listen(kind: Kind) -> None:
        async for _ in changes(client, kind, asked):  # also what is there at first: gangs were looked at before
            changed.set()

    async with asyncio.TaskGroup() as tasks:
        for kind in (POD, *await served_kinds(client, GROUP_KINDS)):
            tasks.create_task(listen(kind))
        while True:
            await changed.wait()
            await asyncio.sleep(BETWEEN_LOOKS_SECONDS)
            changed.clear()
            before, shown = shown, await gangs(client, asked.place)
            for item in shown:
                if item not in before and (not followed or item["metadata"]["name"] in followed):
                    table.write_more(item)


# --- output --------------------------------------------------------------------------------------------------------------


class _Table:
    """Writes objects in the form that was asked for."""

    def __init__(self, client: Client, asked: GetOptions) -> None:
        self._client, self._asked = client, asked
        self._widths: list[int] = []
        self._own = None if asked.columns is None else custom_columns(asked.columns)
        if asked.sort_by:
            check_path(asked.sort_by)

    def write(self, items: Sequence[Document], *, is_one: bool) -> None:
        """Write all objects."""
        items = [_without_owners(item) for item in items]
        if self._asked.sort_by:
            items = sorted_by(self._asked.sort_by, items)
        if self._asked.template and not self._asked.follows:
            click.echo(filled(self._asked.template, items[0] if is_one else _whole(items)), nl=False)
        elif self._asked.form in ("json", "yaml"):
            if not self._asked.follows:
                output.write_data(items[0] if is_one else _whole(items), self._asked.form)
                return
            for item in items:
                self.write_more(item)
        elif self._asked.form == "name" or self._asked.template:
            for item in items:
                self.write_more(item)
        elif not items:
            where = "anywhere" if self._asked.everywhere else f"in namespace {self._asked.namespace}; -A shows all namespaces"
            output.complain(f"no {self._asked.kind} {where}")
        else:
            self._write_tables(items)

    def write_more(self, item: Document) -> None:
        """Write one object that changed."""
        item = _without_owners(item)
        if self._asked.form == "json":
            click.echo(msgspec.json.encode(item))
        elif self._asked.form == "yaml":
            click.echo("---")
            output.write_data(item, "yaml")
        elif self._asked.form == "name":
            output.say(_name(item))
        elif self._asked.template:
            click.echo(filled(self._asked.template, item), nl=False)
        else:
            self._write_row(self._row(item))

    def _write_tables(self, items: Sequence[Document]) -> None:
        """Write a table for each kind, an empty line between them."""
        by_kind: dict[str, list[Document]] = {}
        for item in items:
            by_kind.setdefault("" if self._own else f"{item['kind']}.{item['apiVersion']}", []).append(item)
        for number, group in enumerate(by_kind.values()):
            rows = [self._head(group[0]), *map(self._row, group)]
            self._widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            if number:
                click.echo()
            for row in rows if self._asked.has_headers else rows[1:]:
                self._write_row(row)

    def _write_row(self, row: Sequence[str]) -> None:
        widths = [*self._widths, *([0] * len(row))]
        output.say(output.GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip())

    def _head(self, item: Document) -> list[str]:
        return [*(["NAMESPACE"] if self._shows_place(item) else []), *(column.title for column in self._columns(item))]

    def _row(self, item: Document) -> list[str]:
        place = [item["metadata"]["namespace"]] if self._shows_place(item) else []
        return [visible(cell) for cell in (*place, *(str(column.cell(item)) for column in self._columns(item)))]

    def _shows_place(self, item: Document) -> bool:
        return self._asked.everywhere and "namespace" in item["metadata"] and self._own is None

    def _columns(self, item: Document) -> list[TableColumn]:
        if self._own is not None:
            return self._own
        found = columns_of(item["kind"], item["apiVersion"], self._client.now, is_wide=self._asked.form == "wide")
        columns = _with_column(found, TableColumn("ETA", at("eta"))) if "eta" in item else found
        return [*columns, TableColumn("LABELS", _labels)] if self._asked.has_labels else columns


def _labels(item: Document) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((item["metadata"].get("labels") or {}).items())) or NOTHING


def _with_column(columns: Sequence[TableColumn], more: TableColumn) -> list[TableColumn]:
    """Put a column before the age."""
    place = next(place for place, column in enumerate(columns) if column.title == "AGE")
    return [*columns[:place], more, *columns[place:]]


def _without_owners(item: Document) -> Document:
    """Return an object without the list of who owns which field, which nobody reads; kubectl hides it too."""
    if "managedFields" not in item["metadata"]:
        return item
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "managedFields"}}


def _whole(items: Sequence[Document]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": list(items)}


def _name(item: Document) -> str:
    name = str(item["metadata"]["name"])
    return f"gang/{name}" if item["kind"] == "Gang" else title(kind_of(item), name)
