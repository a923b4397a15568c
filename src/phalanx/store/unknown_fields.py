"""Fields that a kind does not have, most often misspelt: the API server drops them, and kubectl warns.

Custom kinds are judged by their definitions, and Kubernetes' own by `kubernetes_types.py`. Of the jobs of other projects only the
templates of pods are judged. Other kinds are not.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from phalanx.manifests.definitions import DEFINITION_BY_KIND
from phalanx.manifests.openapi import KEEPS_UNKNOWN, Schema
from phalanx.model.kinds import WORKLOADS, Document, Kind
from phalanx.store.kubernetes_types import ANY_KEY, Tree, tree_of, type_of

METADATA, POD_SPEC, TEMPLATE = "meta.v1.ObjectMeta", "core.v1.PodSpec", "core.v1.PodTemplateSpec"
DIRECTIVE = "$"
"""Begins what is no field but an order to whoever merges a patch, such as `$setElementOrder/containers`."""
OTHER_TEMPLATES = frozenset({"serving.knative.dev", "kubevirt.io"})
"""Groups whose templates have more than a pod has."""
Found = Iterator[tuple[str, str, Iterable[str]]]
"""Places, unknown fields there, and the known ones."""


def unknown_fields(kind: Kind, document: Document) -> list[str]:
    """Return the warnings of the API server about an object, or about the part of one in a patch."""
    has_templates = kind in WORKLOADS and kind.group not in OTHER_TEMPLATES
    found = (
        _in_templates(document, "")
        if has_templates
        else _unknown(_tree_of_kind(kind, str(document.get("apiVersion", kind.api_version))), document, "")
    )
    return [_text(path, name, known) for path, name, known in found]


def _text(path: str, name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f'unknown field "{path}{name}"' + (f'; did you mean "{close[0]}"?' if close else "")


def _in_templates(value: Any, path: str) -> Found:  # Any: whatever JSON holds
    """Judge the templates of pods, wherever they are."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from _in_templates(item, f"{path.removesuffix('.')}[{place}].")
    for name, item in value.items() if isinstance(value, Mapping) else ():
        is_template = name == "template" and _has_containers(item)
        yield from _unknown(tree_of(TEMPLATE), item, f"{path}{name}.") if is_template else _in_templates(item, f"{path}{name}.")


def _has_containers(template: Any) -> bool:  # Any: as above
    spec = template.get("spec") if isinstance(template, Mapping) else None
    return isinstance(spec, Mapping) and "containers" in spec


def _unknown(tree: Tree, value: Any, path: str) -> Found:  # Any: as above
    if tree is None:
        return
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from _unknown(tree, item, f"{path.removesuffix('.')}[{place}].")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if str(name).startswith(DIRECTIVE):
                continue
            if name not in tree and ANY_KEY not in tree:
                yield path, str(name), tree
            else:
                yield from _unknown(tree.get(name, tree.get(ANY_KEY)), item, f"{path}{name}.")


# --- known fields --------------------------------------------------------------------------------------------------------


@cache
def _tree_of_kind(kind: Kind, api_version: str) -> Tree:
    """Return what is known of a kind in a version; nothing of versions of Kubernetes' own kinds that are read besides."""
    name = type_of(api_version, kind.kind)
    if name is not None:
        return tree_of(name)
    definition = DEFINITION_BY_KIND.get(kind)
    if definition is None:
        return None
    return {**(_tree(definition.schema) or {}), "apiVersion": None, "kind": None, "metadata": tree_of(METADATA), "status": None}


def _tree(schema: Schema) -> Tree:
    """Return the fields that a schema knows; where it leaves a pod to Kubernetes, those of pods."""
    properties = schema.get("properties", {})
    if schema.get(KEEPS_UNKNOWN):
        return tree_of(POD_SPEC) if "containers" in properties else None
    if "items" in schema:
        return _tree(schema["items"])
    if "additionalProperties" in schema:
        return {ANY_KEY: _tree(schema["additionalProperties"])}
    return {name: _tree(part) for name, part in properties.items()} or None
