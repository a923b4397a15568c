"""The discovery documents of the Kubernetes API: groups, versions and resources that the server serves."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from phalanx import __version__
from phalanx.model.kinds import GROUP_KINDS, KINDS, Document, Kind
from phalanx.web.scale import SCALED

VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
GROUP_LIST = "/apis"
KUBERNETES = ("1", "36")
"""The version of Kubernetes whose answers the embedded cluster gives."""

ALL = frozenset({
    "pods", "services", "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch",
    "cronjobs.batch",
})  # fmt: skip
"""What `kubectl get all` means."""
GANGS = "gangs"
"""The category of all PodGroups, whosever they are: `kubectl get gangs`."""


def _categories(kind: Kind) -> list[str]:
    return ["all"] if kind.resource in ALL else [GANGS] if kind in GROUP_KINDS else []


def with_used_first(groups: Document, used: Callable[[Kind], bool]) -> dict[str, Any]:
    """Return the list of groups with those first that have PodGroups.

    kubectl takes the first group that serves a name. Six groups serve podgroups, and one of Kubernetes itself would come first.
    """
    serving = [kind.group for kind in GROUP_KINDS]
    empty = {kind.group for kind in GROUP_KINDS if not used(kind)} if any(map(used, GROUP_KINDS)) else set()
    order = iter(sorted((item for item in groups["groups"] if item["name"] in serving), key=lambda item: item["name"] in empty))
    return {**groups, "groups": [next(order) if item["name"] in serving else item for item in groups["groups"]]}


@cache
def documents() -> Mapping[str, Document]:
    """Return every document of the discovery, by its path; they are made once, and nobody changes them."""
    groups = {kind.group: None for kind in KINDS if kind.group}
    found: dict[str, Document] = {
        "/version": _version(),
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        GROUP_LIST: {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in groups]},
        "/api/v1": _resources("", "v1"),
    }
    for group in groups:
        found[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
        for version in _versions(group):
            found[f"/apis/{group}/{version}"] = _resources(group, version)
    return found


def _version() -> dict[str, Any]:
    major, minor = KUBERNETES
    return {"major": major, "minor": minor, "gitVersion": f"v{major}.{minor}.0+phalanx.{__version__}", "platform": "phalanx"}


def _versions(group: str) -> list[str]:
    return list(dict.fromkeys(kind.version for kind in KINDS if kind.group == group))


def _group(group: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in _versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources(group: str, version: str) -> dict[str, Any]:
    kinds = [kind for kind in KINDS if (kind.group, kind.version) == (group, version)]
    name = f"{group}/{version}" if group else version
    resources = [resource for kind in kinds for resource in _resource(kind)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}


def _resource(kind: Kind) -> Iterator[dict[str, Any]]:
    own = {"singularName": kind.kind.lower(), "namespaced": kind.is_namespaced, "kind": kind.kind}
    more = {"shortNames": list(kind.short), "categories": _categories(kind)}
    yield {"name": kind.plural, **own, "verbs": VERBS, **{key: value for key, value in more.items() if value}}
    if kind.has_status:
        yield {"name": f"{kind.plural}/status", **own, "singularName": "", "verbs": ["get", "patch", "update"]}
    if kind in SCALED:
        scale = {"namespaced": True, "group": "autoscaling", "version": "v1", "kind": "Scale"}
        yield {"name": f"{kind.plural}/scale", "singularName": "", **scale, "verbs": ["get", "patch", "update"]}
    if kind.kind == "Pod":
        below = {"singularName": "", "namespaced": True, "verbs": ["create"]}
        yield {"name": "bindings", **below, "kind": "Binding"}
        yield {"name": "pods/binding", **below, "kind": "Binding"}
        yield {"name": "pods/eviction", **below, "kind": "Eviction", "group": "policy", "version": "v1"}
