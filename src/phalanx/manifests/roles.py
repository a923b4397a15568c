"""Roles: what the program may do on a cluster, made from the table of permissions, and what people may do with our kinds."""

from collections.abc import Iterable, Sequence
from typing import Any

from phalanx.controllers.grouper.group_spec import CONFIG_MAP
from phalanx.manifests.definitions import DEFINITIONS
from phalanx.manifests.gpu_reservations import reservation_documents
from phalanx.manifests.install_settings import NAME, InstallSettings
from phalanx.manifests.permissions import (
    FOLLOW,
    KEPT_NODES,
    LEASE,
    READ,
    SSH,
    Permission,
    kinds_listed,
    permissions,
    permissions_of_pages,
    permissions_of_reviews,
    permissions_of_shadows,
)
from phalanx.model.kinds import BIND_REQUEST, GROUP_BY_DIALECT, Document, Kind, kind_of

Rule = dict[str, Any]
Subject = dict[str, str]
VERBS = (*READ, "create", "update", "patch", "delete")
"""In the order in which rules name them."""
LIST = ("list",)
"""What the commands need that hold a session of their own: they read everything, and nothing twice."""
CHANGE = ("create", "update", "patch", "delete")
AGGREGATED = "rbac.authorization.k8s.io/aggregate-to-"
"""Label of a role whose rules become part of a role that every cluster has."""
_API = "rbac.authorization.k8s.io/v1"
_AUTHORITY = "rbac.authorization.k8s.io"
_NATIVE = (GROUP_BY_DIALECT["native"], kind_of({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "Workload"}))


# --- rules ---------------------------------------------------------------------------------------------------------------


def rules_of(found: Iterable[Permission]) -> list[Rule]:
    """Return the fewest rules that allow this and nothing else, always in the same order."""
    verbs: dict[tuple[str, str], set[str]] = {}
    for access in found:
        verbs.setdefault((access.kind.group, access.resource), set()).update(access.verbs)
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), allowed in sorted(verbs.items()):
        resources.setdefault((group, tuple(verb for verb in VERBS if verb in allowed)), []).append(resource)
    return [_rule(group, names, allowed) for (group, allowed), names in resources.items()]


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Rule:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def scheduler_rules() -> list[Rule]:
    """Return what sessions and controllers always need."""
    return rules_of(permissions())


def ssh_rules() -> list[Rule]:
    """Return what the plugin `ssh` of Volcano's Jobs needs besides."""
    return rules_of(permissions(SSH))


def kept_node_rules() -> list[Rule]:
    """Return what it takes to write on nodes that autoscalers leave them."""
    return rules_of(permissions(KEPT_NODES))


def review_rules() -> list[Rule]:
    """Return what it takes to ask the API server whose token it is that somebody shows at our port, and what he may do."""
    return rules_of(permissions_of_reviews())


def lease_rules() -> list[Rule]:
    """Return what it takes to be the leader; who makes an object cannot be held to a name."""
    return [
        _rule(LEASE.group, [LEASE.plural], ["create"]),
        {**_rule(LEASE.group, [LEASE.plural], ["get", "update"]), "resourceNames": [NAME]},
    ]


def namespace_rules() -> list[Rule]:
    """Return what is needed in the namespace of the installation alone: the lease, and the ConfigMap of --group-defaults there."""
    return [*lease_rules(), _rule(CONFIG_MAP.group, [CONFIG_MAP.plural], FOLLOW)]


def view_rules() -> list[Rule]:
    """Return what it takes to look at gangs, queues and jobs."""
    return rules_of(Permission(kind, READ) for kind in (*_kinds(), *_NATIVE))


def edit_rules() -> list[Rule]:
    """Return what it takes to submit and change gangs and jobs; queues are a matter of those who run the cluster."""
    kinds = (kind for kind in (*_kinds(), *_NATIVE) if kind.is_namespaced and kind is not BIND_REQUEST)
    return rules_of(Permission(kind, CHANGE) for kind in kinds)


def reader_rules() -> list[Rule]:
    """Return what it takes to hold a session on a live cluster without changing it."""
    return rules_of(Permission(kind, LIST) for kind in kinds_listed())


def page_rules() -> list[Rule]:
    """Return what it takes to serve the page to others, which changes nothing."""
    return rules_of(permissions_of_pages())


def shadow_rules() -> list[Rule]:
    """Return what it takes to run as a shadow, which changes nothing."""
    return rules_of(permissions_of_shadows())


def _kinds() -> tuple[Kind, ...]:
    return tuple(definition.kind for definition in DEFINITIONS)


# --- documents -----------------------------------------------------------------------------------------------------------


def role_documents(settings: InstallSettings) -> list[Document]:
    """Return the namespace, the account, its roles, those for people, and what GPUs are reserved by, in a fixed order."""
    rules = scheduler_rules() + (ssh_rules() if settings.has_ssh else [])
    rules += kept_node_rules() if settings.keeps_nodes else []
    return [
        *_account_documents(settings),
        _wide(settings, "ClusterRole", rules=rules),
        _wide(settings, "ClusterRoleBinding", **_bound("ClusterRole", settings)),
        settings.document(_API, "Role", rules=namespace_rules()),
        settings.document(_API, "RoleBinding", **_bound("Role", settings)),
        _for_people(settings, "view", view_rules(), ("view", "edit", "admin")),
        _for_people(settings, "edit", edit_rules(), ("edit", "admin")),
        *reservation_documents(settings),
    ]


def shadow_documents(settings: InstallSettings) -> list[Document]:
    """Return the namespace, the account and the role of a shadow, in a fixed order."""
    return [
        *_account_documents(settings),
        _wide(settings, "ClusterRole", rules=shadow_rules()),
        _wide(settings, "ClusterRoleBinding", **_bound("ClusterRole", settings)),
    ]


def reader_documents(subjects: Sequence[Subject] = ()) -> list[Document]:
    """Return the role of those who only ask what would be scheduled, and its binding to subjects, if there are any."""
    return _for_subjects(f"{NAME}-reader", reader_rules(), subjects)


def page_documents(subjects: Sequence[Subject] = ()) -> list[Document]:
    """Return the role of those who serve the page to others, and its binding to subjects, if there are any."""
    return _for_subjects(f"{NAME}-page", page_rules(), subjects)


def _for_subjects(name: str, rules: list[Rule], subjects: Sequence[Subject]) -> list[Document]:
    role = {"apiVersion": _API, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    reference = {"apiGroup": _AUTHORITY, "kind": "ClusterRole", "name": name}
    bound = {"apiVersion": _API, "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": reference}
    return [role, {**bound, "subjects": list(subjects)}] if subjects else [role]


def user(name: str) -> Subject:
    """Return a user as a binding names it."""
    return {"apiGroup": _AUTHORITY, "kind": "User", "name": name}


def group(name: str) -> Subject:
    """Return a group of users as a binding names it."""
    return {"apiGroup": _AUTHORITY, "kind": "Group", "name": name}


def service_account(namespace: str, name: str) -> Subject:
    """Return a service account as a binding names it."""
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def _account_documents(settings: InstallSettings) -> list[Document]:
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.namespace, "labels": settings.labels}},
        settings.document("v1", "ServiceAccount", automountServiceAccountToken=False),
    ]


def _wide(settings: InstallSettings, kind: str, **more: object) -> Document:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": NAME, "labels": settings.labels}, **more}


def _bound(kind: str, settings: InstallSettings) -> dict[str, Any]:
    return {
        "roleRef": {"apiGroup": _AUTHORITY, "kind": kind, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": settings.namespace}],
    }


def _for_people(settings: InstallSettings, word: str, rules: list[Rule], into: Sequence[str]) -> Document:
    labels = settings.labels | {f"{AGGREGATED}{role}": "true" for role in into}
    return {"apiVersion": _API, "kind": "ClusterRole", "metadata": {"name": f"{NAME}-{word}", "labels": labels}, "rules": rules}
