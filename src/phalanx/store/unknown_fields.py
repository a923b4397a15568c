"""Fields that a kind does not have, most often misspelt: the API server drops them, and kubectl warns.

Custom kinds are judged by their definitions. Of pods and nodes the fields that placement depends on are listed here, as of
Kubernetes 1.36, and what is below the others is not looked into. Other kinds are not judged.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from phalanx.manifests.definitions import DEFINITION_BY_KIND
from phalanx.manifests.openapi import KEEPS_UNKNOWN, Schema
from phalanx.model.kinds import NODE, POD, Document, Kind

Tree = Mapping[str, Any] | None  # Any: a Tree again
"""Known fields and what is below them; None where everything goes. The items of a list have the tree of the list."""
ANY_KEY = "*"
"""The field that stands for every key of a map."""


def unknown_fields(kind: Kind, document: Document) -> list[str]:
    """Return the warnings of the API server about an object, or about the part of one in a patch."""
    return [_text(path, name, known) for path, name, known in _unknown(_tree_of_kind(kind), document, "")]


def _text(path: str, name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f'unknown field "{path}{name}"' + (f'; did you mean "{close[0]}"?' if close else "")


def _unknown(tree: Tree, value: Any, path: str) -> Iterator[tuple[str, str, Iterable[str]]]:  # Any: whatever JSON holds
    if tree is None:
        return
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from _unknown(tree, item, f"{path.removesuffix('.')}[{place}].")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name not in tree and ANY_KEY not in tree:
                yield path, str(name), tree
            else:
                yield from _unknown(tree.get(name, tree.get(ANY_KEY)), item, f"{path}{name}.")


# --- known fields --------------------------------------------------------------------------------------------------------


@cache
def _tree_of_kind(kind: Kind) -> Tree:
    if kind is POD:
        return {**_OBJECT, "spec": _POD_SPEC, "status": None}
    if kind is NODE:
        return {**_OBJECT, "spec": _NODE_SPEC, "status": _NODE_STATUS}
    definition = DEFINITION_BY_KIND.get(kind)
    return None if definition is None else {**(_tree(definition.schema) or {}), **_OBJECT, "status": None}


def _tree(schema: Schema) -> Tree:
    """Return the fields that a schema knows; where it leaves a pod to Kubernetes, those of pods."""
    properties = schema.get("properties", {})
    if schema.get(KEEPS_UNKNOWN):
        return _POD_SPEC if "containers" in properties else None
    if "items" in schema:
        return _tree(schema["items"])
    if "additionalProperties" in schema:
        return {ANY_KEY: _tree(schema["additionalProperties"])}
    return {name: _tree(part) for name, part in properties.items()} or None


def _fields(names: str, **below: Tree) -> dict[str, Any]:  # Any: a Tree
    return {**dict.fromkeys(names.split()), **below}


_METADATA = _fields(
    "name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp"
    " deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields"
)
_OBJECT = _fields("apiVersion kind", metadata=_METADATA)
_SELECTOR = _fields("matchLabels", matchExpressions=_fields("key operator values"))
_NODE_TERM = _fields("", matchExpressions=_fields("key operator values"), matchFields=_fields("key operator values"))
_POD_TERM = _fields("namespaces topologyKey matchLabelKeys mismatchLabelKeys", labelSelector=_SELECTOR, namespaceSelector=_SELECTOR)
_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
_NODE_AFFINITY = {_REQUIRED: _fields("", nodeSelectorTerms=_NODE_TERM), _PREFERRED: _fields("weight", preference=_NODE_TERM)}
_POD_AFFINITY = {_REQUIRED: _POD_TERM, _PREFERRED: _fields("weight", podAffinityTerm=_POD_TERM)}
_RESOURCES = _fields("limits requests", claims=_fields("name request"))
_CONTAINER = _fields(
    "name image command args workingDir envFrom env resizePolicy restartPolicy restartPolicyRules volumeMounts volumeDevices"
    " livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy"
    " securityContext stdin stdinOnce tty",
    ports=_fields("name hostPort containerPort protocol hostIP"), resources=_RESOURCES,
)  # fmt: skip
_POD_SPEC = _fields(
    "volumes ephemeralContainers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector"
    " serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace"
    " securityContext imagePullSecrets hostname subdomain schedulerName hostAliases priorityClassName priority dnsConfig"
    " readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead setHostnameAsFQDN os hostUsers hostnameOverride"
    " workloadRef schedulingGroup",
    containers=_CONTAINER, initContainers=_CONTAINER, resources=_RESOURCES,
    affinity=_fields("", nodeAffinity=_NODE_AFFINITY, podAffinity=_POD_AFFINITY, podAntiAffinity=_POD_AFFINITY),
    tolerations=_fields("key operator value effect tolerationSeconds"), schedulingGates=_fields("name"),
    topologySpreadConstraints=_fields(
        "maxSkew topologyKey whenUnsatisfiable minDomains nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys",
        labelSelector=_SELECTOR,
    ),
    resourceClaims=_fields("name resourceClaimName resourceClaimTemplateName source"),
)  # fmt: skip
_NODE_SPEC = _fields(
    "podCIDR podCIDRs providerID unschedulable configSource externalID", taints=_fields("key value effect timeAdded")
)
_NODE_STATUS = _fields(
    "capacity allocatable phase conditions addresses daemonEndpoints nodeInfo images volumesInUse volumesAttached config"
    " runtimeHandlers features declaredFeatures"
)
