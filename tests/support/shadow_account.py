"""The account that `phalanx manifests rbac --shadow` prints, for every shadow on a control plane of tests."""

from pathlib import Path

from phalanx.dev.plane import ControlPlane
from phalanx.manifests.install_settings import NAME, InstallSettings
from phalanx.manifests.roles import shadow_documents

PLACE = "phalanx-shadow"
SHADOW = f"{PLACE}/{NAME}"
"""Its namespace and name."""


def shadow_kubeconfig(plane: ControlPlane) -> Path:
    """Make the account, and return a kubeconfig of it; its role has a name of its own here, since there is a scheduler, too."""
    namespace, account, role, binding = shadow_documents(InstallSettings(config="", namespace=PLACE))
    reference = {**binding["roleRef"], "name": PLACE}
    named = ({**item, "metadata": {**item["metadata"], "name": PLACE}} for item in (role, {**binding, "roleRef": reference}))
    plane.apply([namespace, account, *named])
    return plane.kubeconfig_of(PLACE, NAME)
