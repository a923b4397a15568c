"""The files below deploy/ that are written by a program: what they hold follows from the code, and a test compares them.

The chart has definitions, policies, rules, alerts and the dashboard as files that its templates read, since texts with double
braces would be taken for templates otherwise; the kustomize base has everything as plain objects.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.manifests.admission_policies import policy_documents
from phalanx.manifests.dashboard import board_text
from phalanx.manifests.definitions import SETS, definition_documents
from phalanx.manifests.gpu_reservations import reservation_rules
from phalanx.manifests.install import install_documents
from phalanx.manifests.install_settings import InstallSettings
from phalanx.manifests.monitoring import BOARD_FILE, monitoring_documents, rule_groups
from phalanx.manifests.roles import (
    edit_rules,
    kept_node_rules,
    namespace_rules,
    review_rules,
    role_documents,
    scheduler_rules,
    shadow_rules,
    ssh_rules,
    view_rules,
)
from phalanx.manifests.yaml_text import documents_text, yaml_text
from phalanx.model.kinds import Document

CHART, BASE, MONITORING = "chart/files", "kustomize/base", "kustomize/monitoring"
WRITTEN = "# Written by scripts/manifests; a change here is lost.\n"
KEEP = {"helm.sh/resource-policy": "keep"}
"""Lets Helm leave an object when the release goes: with a definition all of its objects would go."""


def deploy_files(profiles: Mapping[str, str], default_profile: str) -> dict[str, str]:
    """Return the texts by path below deploy/; profiles are texts of configurations by name."""
    settings = InstallSettings(config=profiles[default_profile])
    return {
        **{f"{CHART}/{path}": f"{WRITTEN}{text}" for path, text in _chart_texts()},
        f"{CHART}/{BOARD_FILE}": board_text(),
        **{f"{CHART}/profiles/{name}.yaml": text for name, text in profiles.items()},
        **{path: f"{WRITTEN}{documents_text(documents)}" for path, documents in _kustomize(settings)},
        **{f"{folder}/kustomization.yaml": _kustomization(folder, settings) for folder in (BASE, MONITORING)},
    }


def _chart_texts() -> Iterator[tuple[str, str]]:
    for name in SETS:
        yield f"crds/{name}.yaml", documents_text(map(_kept, definition_documents(name)))
    yield "policies.yaml", documents_text(policy_documents())
    rules = {"scheduler": scheduler_rules, "ssh": ssh_rules, "kept-nodes": kept_node_rules, "namespace": namespace_rules,
             "view": view_rules, "edit": edit_rules, "reservation": reservation_rules, "review": review_rules,
             "shadow": shadow_rules}  # fmt: skip
    for word, made in rules.items():
        yield f"rules/{word}.yaml", yaml_text(made())
    yield "alerts.yaml", yaml_text(rule_groups())


def _kept(document: Document) -> Document:
    meta: dict[str, Any] = dict(document["metadata"])
    return {**document, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), **KEEP}}}


def _kustomize(settings: InstallSettings) -> Iterator[tuple[str, list[Document]]]:
    for name in SETS:
        yield f"{BASE}/crds-{name}.yaml", definition_documents(name)
    yield f"{BASE}/policies.yaml", policy_documents()
    yield f"{BASE}/rbac.yaml", role_documents(settings)
    yield f"{BASE}/deployment.yaml", install_documents(settings)
    yield f"{MONITORING}/monitoring.yaml", monitoring_documents(settings)


def _kustomization(folder: str, settings: InstallSettings) -> str:
    """Return the list of the files in a folder; what goes beside an installation is a component of it."""
    kind = ("v1beta1", "Kustomization") if folder == BASE else ("v1alpha1", "Component")
    names = [path.removeprefix(f"{folder}/") for path, _ in _kustomize(settings) if path.startswith(f"{folder}/")]
    head = {"apiVersion": f"kustomize.config.k8s.io/{kind[0]}", "kind": kind[1], "resources": names}
    return f"{WRITTEN}{yaml_text(head)}"
