"""Pages of programs as a user starts them, and recordings that they show."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from phalanx.dev.processes import launch
from phalanx.ui import PATH

PHALANX = str(Path(sys.executable).with_name("phalanx"))
WORK = "generated:jobs=60,nodes=8,days=1.2,load=1.1"


@contextmanager
def page_of_program(*arguments: str) -> Iterator[str]:
    """Start a program that serves the page; yields the address of it, which its first line ends with."""
    with TemporaryFile("w+") as said, launch([PHALANX, *arguments], stdout=subprocess.PIPE, stderr=said) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1].partition("#")[0]
            yield address if address.endswith("/") else f"{address}{PATH}/"
            said.seek(0)
            assert process.poll() is None, f"it ended by itself with {process.returncode}: {said.read()}"
        finally:
            process.terminate()


def night(folder: Path) -> Path:
    """Record a day and a night of a simulated cluster under Volcano's rules."""
    command = [PHALANX, "simulate", "--workload", WORK, "--seed", "3", "--profile", "volcano", "--until", "34h"]
    subprocess.run([*command, "--record", str(folder)], check=True, capture_output=True)
    return folder
