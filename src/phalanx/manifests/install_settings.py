"""What may be said about an installation, and what all of its objects have in common."""

from dataclasses import dataclass
from typing import Any

from phalanx import __version__
from phalanx.controllers.binder.reservation_pod import IMAGE
from phalanx.model.kinds import Document

NAME = "phalanx"
"""Of every object of an installation, and of the lease by which replicas agree on a leader."""
SELECTED = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}
"""Labels of the pods; they stay the same from version to version."""


@dataclass(frozen=True, slots=True)
class InstallSettings:
    """Where the program is installed, and how."""

    config: str
    """The text of a configuration of the scheduler."""
    namespace: str = f"{NAME}-system"
    image: str = IMAGE
    has_ssh: bool = True
    """Whether secrets may be made for the plugin `ssh` of Volcano's Jobs."""

    keeps_nodes: bool = False
    """Whether nodes that gangs are nominated to are kept from autoscalers."""

    @property
    def labels(self) -> dict[str, str]:
        """The labels of every object."""
        return SELECTED | {"app.kubernetes.io/version": __version__}

    def document(self, api_version: str, kind: str, **more: Any) -> Document:
        """Return an object of the installation, in its namespace."""
        meta = {"name": NAME, "namespace": self.namespace, "labels": self.labels}
        return {"apiVersion": api_version, "kind": kind, "metadata": meta, **more}
