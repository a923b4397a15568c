"""What `phalanx delete` does."""

from collections.abc import Iterable, Mapping

from phalanx.cli import output
from phalanx.cli.dry_run import CLIENT, NONE, SERVER, SUFFIXES
from phalanx.cli.get_run import gangs, gangs_listed, group_kind, objects_listed
from phalanx.cli.lookup import find, is_gang, kind_names, title
from phalanx.dialects.cluster import describe
from phalanx.errors import ClusterError, SnapshotError, Unreachable
from phalanx.model.kinds import NAMESPACE, POD, Document, Kind, kind_of
from phalanx.store.apply import rank
from phalanx.store.input_files import documents_of
from phalanx.store.kube.client import Client

ObjectPlace = tuple[Kind, str, str]


def of_files(paths: Iterable[str]) -> list[ObjectPlace]:
    """Return what manifests describe, the last first: pods before their groups. Namespaces stay, others may live there."""
    found = [_target(*placed) for placed in sorted(documents_of(paths), key=lambda found: rank(found[1]))]
    return [target for target in reversed(found) if target[0] is not NAMESPACE]


def _target(place: str, document: Document) -> ObjectPlace:
    """Return which object a document names; what else is in it does not matter, it may be broken."""
    meta = document.get("metadata")
    if not isinstance(meta, Mapping) or not meta.get("name"):
        raise SnapshotError(f"{place}: {describe(document)}: metadata.name: missing")
    return kind_of(document), str(meta.get("namespace") or ""), str(meta["name"])


async def by_name(client: Client, kind_name: str, namespace: str, name: str) -> list[ObjectPlace]:
    """Return the object of a name, of a gang its pods and then its group, if it has one."""
    if not is_gang(kind_name):
        kind, document = await find(client, kind_name, namespace, name)
        return [(kind, document["metadata"].get("namespace", ""), name)]
    (gang,) = await gangs(client, namespace, [name])
    return await _of_gang(client, gang)


async def _of_gang(client: Client, gang: Document) -> list[ObjectPlace]:
    group, namespace, name = await group_kind(client, gang), gang["metadata"]["namespace"], str(gang["metadata"]["name"])
    found: list[ObjectPlace] = [(POD, namespace, member["pod"]) for member in gang["members"]]
    return [*found, *([] if group is None else [(group, namespace, name.partition("@")[0])])]


async def listed_targets(client: Client, kind: str, namespace: str, labels: str) -> list[ObjectPlace]:
    """Return all objects of some kinds in a namespace, or those with these labels; of gangs their pods and groups."""
    found = [target for part in kind_names(kind) for target in await _listed(client, part, namespace, labels)]
    if not found:
        output.complain(f"no {kind} to delete in namespace {namespace}")
    return list(dict.fromkeys(found))  # a pod may be there as one, and as a member of its gang


async def _listed(client: Client, kind_name: str, namespace: str, labels: str) -> list[ObjectPlace]:
    if is_gang(kind_name):
        return [target for gang in await gangs_listed(client, namespace, labels=labels) for target in await _of_gang(client, gang)]
    found = await objects_listed(client, kind_name, namespace, labels=labels)
    return [(kind, item["metadata"].get("namespace", ""), item["metadata"]["name"]) for kind, item in found]


class Deleter:
    """Deletes one object after the other, and counts those that were refused."""

    def __init__(self, client: Client, namespace: str, grace: int | None, dry_run: str = NONE) -> None:
        """Objects that name no namespace are in this one."""
        self._client, self._namespace, self._grace, self._dry_run = client, namespace, grace, dry_run
        self.refused = 0

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete one object and say so."""
        place = (namespace or self._namespace) if kind.is_namespaced else ""
        try:
            if self._dry_run == CLIENT:
                await self._client.get(kind, place, name)
            else:
                grace = self._grace if kind is POD else None
                await self._client.delete(kind, place, name, grace=grace, is_trial=self._dry_run == SERVER)
            output.say(f"{title(kind, name)} deleted{SUFFIXES[self._dry_run]}")
        except Unreachable:
            raise
        except ClusterError as problem:
            self.refused += 1
            output.complain(f"error: {title(kind, name)}: {problem}")
