"""What `phalanx delete` does."""

from collections.abc import Iterable, Mapping

from phalanx.cli import output
from phalanx.cli.get_run import gangs, group_kind
from phalanx.cli.lookup import find, is_gang, title
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
    group = await group_kind(client, gang)
    found: list[ObjectPlace] = [(POD, namespace, member["pod"]) for member in gang["members"]]
    return [*found, *([] if group is None else [(group, namespace, name.partition("@")[0])])]


class Deleter:
    """Deletes one object after the other, and counts those that were refused."""

    def __init__(self, client: Client, namespace: str, grace: int | None) -> None:
        """Objects that name no namespace are in this one."""
        self._client, self._namespace, self._grace = client, namespace, grace
        self.refused = 0

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete one object and say so."""
        place = (namespace or self._namespace) if kind.is_namespaced else ""
        try:
            await self._client.delete(kind, place, name, grace=self._grace if kind is POD else None)
            output.say(f"{title(kind, name)} deleted")
        except Unreachable:
            raise
        except ClusterError as problem:
            self.refused += 1
            output.complain(f"error: {title(kind, name)}: {problem}")
