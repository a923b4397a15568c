"""What Helm makes of a chart."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from phalanx.dev.programs import KUBERNETES, path_of, require

HELM, VERSION = "helm", "--kube-version"
"""Without a cluster, Helm takes that for one of the version that it is made for."""
LONGEST_SECONDS = 60


def run_helm(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Helm for a cluster of the tested version, unless another one is named; return how it ended and what it said."""
    require(HELM)
    version = () if VERSION in words else (VERSION, KUBERNETES)
    return subprocess.run([path_of(HELM), *words, *version], capture_output=True, text=True, check=False, timeout=LONGEST_SECONDS)


def rendered(chart: Path, *words: str) -> list[dict[str, Any]]:
    """Return the objects of a release called phalanx in the namespace phalanx-system."""
    answer = run_helm("template", "phalanx", str(chart), "--namespace", "phalanx-system", *words)
    assert answer.returncode == 0, answer.stderr
    return [document for document in yaml.safe_load_all(answer.stdout) if document]
