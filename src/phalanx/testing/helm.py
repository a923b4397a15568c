"""Where Helm is, and what it makes of a chart."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

VERSION = "v3.19.0"
CACHED = Path.home() / ".cache" / "phalanx" / "bin" / f"helm-{VERSION}"


def helm() -> str | None:
    """Return where Helm is; None when there is none."""
    return str(CACHED) if CACHED.is_file() else shutil.which("helm")


def run_helm(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Helm and return how it ended and what it said."""
    program = helm()
    assert program is not None, f"there is no {CACHED}, and no helm in PATH"
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=60)


def rendered(chart: Path, *words: str) -> list[dict[str, Any]]:
    """Return the objects of a release called phalanx in the namespace phalanx-system."""
    answer = run_helm("template", "phalanx", str(chart), "--namespace", "phalanx-system", *words)
    assert answer.returncode == 0, answer.stderr
    return [document for document in yaml.safe_load_all(answer.stdout) if document]
