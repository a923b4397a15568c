"""Paths of the Kubernetes API, to and from the object, list or subresource that they name."""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from phalanx.errors import Missing
from phalanx.model.kinds import Kind, kind_at

NOWHERE = "the server could not find the requested resource"


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """What a path names; a list has no name, and a list of all namespaces no namespace either."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """The path, without the server."""
        parts = [quote(part, safe="") for part in (self.name, self.subresource) if part]
        return "/".join([_list_path(self.kind, self.namespace), *parts])


@lru_cache(maxsize=4096)
def _list_path(kind: Kind, namespace: str) -> str:
    """Return the path of the objects of a kind; every pod that is bound is below one of few."""
    start = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    inside = ["namespaces", namespace] if kind.is_namespaced and namespace else []
    return "/".join([start, *(quote(part, safe="") for part in (*inside, kind.plural))])


def resource_path(path: str) -> ResourcePath:
    """Return what a path names."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        return _target("", parts[1], parts[2:])
    if parts[:1] == ["apis"] and len(parts) > 3:
        return _target(parts[1], parts[2], parts[3:])
    raise Missing(NOWHERE)


def _target(group: str, version: str, rest: list[str]) -> ResourcePath:
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    kind = kind_at(group, rest[0])
    if kind.version != version or len(rest) > 3 or (namespace and not kind.is_namespaced):
        raise Missing(NOWHERE)
    name, subresource = (*rest[1:], "", "")[:2]
    if name and kind.is_namespaced and not namespace:
        raise Missing(NOWHERE)
    return ResourcePath(kind, namespace, name, subresource)
