"""Where the reader of a page sits: what its blocks say is typed, and what is shown is compared with what the page shows.

$ phalanx schedule -f jobs.yaml     a command; lines that begin with > go on with it
$ phalanx ...  # exit status 3      ends with this status, otherwise with 0
$ phalanx up &                      goes on beside the others until the page ends
3 pods placed ... nodes             output that must occur, in this order; ... stands for anything
(step) break commit                 what is typed at the prompt of --step; what must occur as its answer follows
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from phalanx.dev.plane import ORDER
from phalanx.dev.processes import launch
from phalanx.dev.programs import path_of
from tests.support.doc_transcripts import first_missing

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60.0
PROMPT = "(step)"
COPIED = ("examples", "Makefile", "pyproject.toml", "constraints.txt", "scripts")


@dataclass
class Command:
    """A line to type, and the lines that it must show."""

    text: str
    shown: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        """How it has to end."""
        found = re.search(r"  # exit status (\d+)$", self.text)
        return int(found[1]) if found else 0

    @property
    def keys(self) -> str | None:
        """What is typed while it runs; None if nothing is."""
        typed = [line.removeprefix(PROMPT).strip() for line in self.shown if line.startswith(PROMPT)]
        return "".join(f"{line}\n" for line in typed) if typed else None

    @property
    def is_beside(self) -> bool:
        """Tell whether it goes on while others are typed."""
        return self.text.endswith(" &")

    @property
    def asks_a_cluster(self) -> bool:
        """Tell whether the answer changes with time, so that it is asked for again until it is the one shown."""
        return self.text.startswith(("phalanx get ", "phalanx describe ", "kubectl get "))


@dataclass
class Block:
    """A fenced block: its language and its lines."""

    language: str
    lines: list[str]

    def commands(self) -> list[Command]:
        """Return the commands of a block, each with what it shows."""
        found: list[Command] = []
        for line in self.lines:
            if line.startswith("$ "):
                found.append(Command(line[2:]))
            elif line.startswith("> ") and not found[-1].shown:
                found[-1].text += f"\n{line[2:]}"
            else:
                found[-1].shown.append(line)
        return found


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page; directives are none."""
    found = re.findall(r"^(`{3,})([^\n]*)\n(.*?)^\1$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [Block(language, text.splitlines()) for _, language, text in found if not language.startswith("{")]


def commands_of(page: Path) -> list[Command]:
    """Return the commands of a page in their order."""
    return [command for block in blocks(page) if block.language == "console" for command in block.commands()]


STOP_LAB = """
import signal, sys
from pathlib import Path
from phalanx.dev.processes import Process
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
signal.sigwait({signal.SIGTERM})
for name in sys.argv[2:]:
    Process(name, Path(sys.argv[1])).stop(signal.SIGKILL)
"""
"""Kills what `phalanx dev cluster up` has left running: it outlives its reader, and must not when the test is killed."""


class Desk:
    """Where a reader sits: a copy of the project, with the program installed."""

    def __init__(self, folder: Path, kubeconfig: Path | None = None) -> None:
        """Sit down in a folder; with a kubeconfig, before a cluster and with a kubectl."""
        self._folder = folder
        _copy_project(folder)
        _install(folder, *(("kubectl",) if kubeconfig is not None else ()))
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PHALANX_", "MAKE", "MFLAGS"))}
        environment |= {"PATH": f"{folder}/.venv/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
        environment |= {"XDG_RUNTIME_DIR": str(folder), "KUBECONFIG": str(kubeconfig or folder / "none"), "NO_COLOR": "1"}
        self._environment = environment
        self._beside = [launch([sys.executable, "-c", STOP_LAB, str(folder / "lab"), *ORDER[::-1]])]

    def __enter__(self) -> Self:
        """Begin to type."""
        return self

    def __exit__(self, *problem: object) -> None:
        """End what still runs."""
        for process in self._beside:
            process.terminate()
            process.communicate(timeout=PATIENCE_SECONDS)

    def type(self, command: Command) -> None:
        """Run a command; it shows what it should and ends as it should."""
        if command.is_beside:
            self._start(command)
            return
        status, output = self._run_until_shown(command)
        for shown, answered in by_key(command.shown, output.splitlines()):
            missing = first_missing(shown, "\n".join(answered))
            assert missing is None, f"$ {command.text}\nshould show: {missing}\nand shows:\n{output}"
        assert status == command.status, f"$ {command.text}\nended with {status}:\n{output}"

    def _run_until_shown(self, command: Command) -> tuple[int, str]:
        end = time.monotonic() + PATIENCE_SECONDS
        status, output = self._run(command.text, command.keys)
        while command.asks_a_cluster and first_missing(command.shown, output) is not None and time.monotonic() < end:
            time.sleep(0.2)
            status, output = self._run(command.text)
        return status, output

    def _run(self, text: str, keys: str | None = None) -> tuple[int, str]:
        with self._open(["bash", "-c", text], is_typed_at=keys is not None) as process:
            output, _ = process.communicate(keys, timeout=PATIENCE_SECONDS)
        return process.returncode, output

    def _start(self, command: Command) -> None:
        process = self._open(shlex.split(command.text.removesuffix(" &")))
        self._beside.append(process)
        assert process.stdout is not None
        for line in command.shown:
            assert first_missing([line], process.stdout.readline()) is None, line

    def _open(self, arguments: list[str], *, is_typed_at: bool = False) -> subprocess.Popen[str]:
        return launch(
            arguments,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.PIPE if is_typed_at else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )


def _copy_project(folder: Path) -> None:
    """Copy what commands read."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)


def _install(folder: Path, *more: str) -> None:
    """Make a `.venv` in which the program under test is installed, and other programs with it."""
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    commands = {"phalanx": f"{sys.executable} -m phalanx", "python": sys.executable, **{name: str(path_of(name)) for name in more}}
    for name, command in commands.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    for name in ("pyvenv.cfg", ".runtime-installed"):
        (folder / ".venv" / name).touch()


def by_key(shown: list[str], output: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield what should be shown and what is, key by key; all of it at once where nothing is typed."""
    wanted, found = _sections(shown), _sections(output)
    for place, section in enumerate(wanted):
        yield section, found[place] if place < len(found) else []


def _sections(lines: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in lines:
        if line.startswith(PROMPT):
            found.append([])
        found[-1].append(line)
    return found
