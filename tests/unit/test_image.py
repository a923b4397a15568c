"""The image: nothing is installed but what the locks name, and nobody in it is root."""

import re
from pathlib import Path

from phalanx.manifests.install import NOBODY

ROOT = Path(__file__).resolve().parents[2]
STAGES = (ROOT / "deploy/Containerfile").read_text().replace("\\\n", " ").split("\nFROM ")
LAST = STAGES[-1].splitlines()


def installs() -> list[str]:
    return re.findall(r"pip install [^&\n]*", "\n".join(STAGES))


def test_whatever_is_installed_has_hashes_or_is_our_own_wheel() -> None:
    assert len(installs()) == 3
    locked = [line for line in installs() if "--require-hashes" in line]
    (own,) = (line for line in installs() if line not in locked)
    assert [re.findall(r"--requirement (\S+)", line) for line in locked] == [["locks/build.txt"], ["locks/runtime.txt"]]
    assert {"--no-index", "--no-deps", "dist/*.whl"} <= {*own.split()}


def test_the_program_runs_as_nobody_and_nothing_changes_that() -> None:
    users = [line for line in LAST if line.startswith("USER ")]
    assert users == [f"USER {NOBODY}:{NOBODY}"]
    after = LAST[LAST.index(users[0]) + 1 :]
    assert [line for line in after if line.startswith(("RUN", "COPY", "ADD"))] == []


def test_the_last_stage_has_the_program_and_no_tools() -> None:
    assert [line for line in LAST if line.startswith("COPY")] == ["COPY --from=builder /opt/phalanx /opt/phalanx"]
    assert not [line for line in LAST if line.startswith(("RUN", "ADD"))]
    assert "pip uninstall --yes pip" in STAGES[-2]


def test_what_is_copied_is_in_the_sources() -> None:
    copied = [
        word for stage in STAGES[:-1] for line in re.findall(r"^COPY (.*)$", stage, re.MULTILINE) for word in line.split()[:-1]
    ]
    assert copied
    assert [word for word in copied if not (ROOT / word).exists()] == []
