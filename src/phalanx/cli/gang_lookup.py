"""Which gang a name means: groups that controllers make have names that nobody types, so their owner or a beginning will do."""

from collections.abc import Sequence

from phalanx.cli.get_run import gangs, group_kind
from phalanx.errors import Missing
from phalanx.model.listing import listed
from phalanx.store.kube.client import Client
from phalanx.web.columns import Document


async def gang_called(client: Client, namespace: str, name: str) -> Document:
    """Return the gang of that name, or else the one gang that the owner of that name has, or whose name begins like that."""
    here = await gangs(client, namespace)
    for found in (_named(here, name), await _owned(client, here, name), _begun(here, name)):
        if len(found) == 1:
            return found[0]
        if found:
            names = [item["metadata"]["name"] for item in found]
            raise Missing(f'gang "{name}" not found; it may be one of {listed(names)}')
    (missing,) = await gangs(client, namespace, [name])
    return missing


def _named(here: Sequence[Document], name: str) -> list[Document]:
    return [item for item in here if item["metadata"]["name"] == name]


def _begun(here: Sequence[Document], name: str) -> list[Document]:
    return [item for item in here if item["metadata"]["name"].startswith(name)]


async def _owned(client: Client, here: Sequence[Document], name: str) -> list[Document]:
    """Return the gangs whose group belongs to an object of that name."""
    owned: set[tuple[str, str]] = set()
    one_of_each = {item["group"]: item for item in here if item["group"]}
    for api, gang in one_of_each.items():
        kind = await group_kind(client, gang)
        groups = [] if kind is None else (await client.list(kind, gang["metadata"]["namespace"])).items
        owned |= {(api, group["metadata"]["name"]) for group in groups if name in _owners(group)}
    return [item for item in here if (item["group"], item["metadata"]["name"]) in owned]


def _owners(group: Document) -> set[str]:
    return {str(owner.get("name")) for owner in group["metadata"].get("ownerReferences") or ()}
