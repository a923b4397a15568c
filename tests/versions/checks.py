"""What is tried on every release of Kubernetes, and what a release does not serve."""

from collections.abc import Mapping

from phalanx.dev.programs import KUBERNETES, OLD_KUBERNETES

CHECKS = {
    "starts": "`phalanx run` starts with the permissions of an installation, and lacks only what is listed above.",
    "rules": "The API server accepts all CRDs with their rules. Where it does not, the other checks run on CRDs without rules.",
    "binds": "A gang that fits starts, and the status of its PodGroup says so.",
    "holds": "A gang that does not fit starts no pod. Its condition and an event say why.",
    "job": "A Volcano Job gets its pods from the controllers of Phalanx, and they start.",
    "quarantine": "A pod that names two groups is quarantined, and a condition on it says why; other gangs start.",
    "native": "A gang with a PodGroup of Kubernetes itself starts.",
}
"""Every check, in the order of the page."""
NATIVE = "scheduling.k8s.io/v1alpha2"
NOT_SERVED: Mapping[str, frozenset[str]] = {
    OLD_KUBERNETES: frozenset({"resource.k8s.io/v1", NATIVE}),
    KUBERNETES: frozenset(),
}
"""API versions of Kubernetes itself that Phalanx reads and a release does not have."""
RULES_SINCE = "1.35"
"""The first version that bounds the cost of rules about quantities, by its source; the chart refuses older ones."""
KNOWN_DEFECTS: Mapping[str, Mapping[str, str]] = {
    OLD_KUBERNETES: {
        "rules": f"before {RULES_SINCE} an API server takes the rules about quantities in the CRD of Volcano's Queue for too "
        "costly, however short the quantities may be, and refuses the CRD"
    },
    KUBERNETES: {},
}
"""By release the checks that fail, and why."""
