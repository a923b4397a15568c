"""The pages on operators, and the mode beside which the commands of each are typed."""

from pathlib import Path

from tests.operators.modes import MODES

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "howto" / "operators"
BESIDE = {
    "kuberay": "kuberay-schedulerName", "training-operator": "training-operator-schedulerName", "trainer": "trainer-schedulerName",
    "mpi": "mpi-operator-schedulerName", "jobset": "jobset-schedulerName", "lws": "lws-schedulerName",
    "volcano": "vc-controller-manager-profile-phalanx", "kueue": "kueue-job",
}  # fmt: skip
"""The name of a mode by that of a page."""
WITHOUT = ("spark", "volcano")
"""Pages whose commands are typed beside Phalanx alone: a driver of Spark is a pod, and Volcano's kinds have controllers of ours."""
BY_MODE = tuple((mode, page) for page, label in BESIDE.items() for mode in MODES if mode.label == label)
