"""Upstream's kubectl against an embedded cluster and a real one: two hundred commands end alike and print alike."""

import re
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import launch
from phalanx.dev.programs import path_of
from tests.contract.kubectl_commands import COMMANDS, END_DIFFERS, MANIFESTS, OUTPUT_DIFFERS
from tests.support.store_contract import eventually

pytestmark = [pytest.mark.xdist_group("controlplane"), pytest.mark.timeout(600)]
VARYING = [
    (r"\b\d+(d|h|m|s|ms)(\d+[hms])?\b", "AGE"), (r"https?://[\d.]+:\d+", "SERVER"), (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\bPodGroup\.scheduling\.volcano\.sh\b", "PodGroup"), (r'Get "[^"]*"', "GET"), (r" +", " "),
]  # fmt: skip
"""What differs between any two runs."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command printed, and how it ended."""

    code: int
    out: str
    problems: str


class Kubectl:
    """Upstream's kubectl in a namespace of a server."""

    def __init__(self, folder: Path, *server: str) -> None:
        """Make the files that commands name."""
        self._folder, self._server, self.namespace = folder, server, f"typed-{secrets.token_hex(4)}"
        folder.mkdir()
        for name, text in MANIFESTS.items():
            (folder / name).write_text(text.replace("NAMESPACE", self.namespace))

    def run(self, command: str) -> Done:
        """Type a command."""
        words = [word.replace("NAMESPACE", self.namespace) for word in shlex.split(command)]
        done = subprocess.run(
            [str(path_of("kubectl")), *self._server, f"--cache-dir={self._folder / 'cache'}", "-n", self.namespace, *words],
            cwd=self._folder, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        return Done(done.returncode, self._plain(done.stdout), self._plain(done.stderr))

    def _plain(self, text: str) -> str:
        text = text.replace(self.namespace, "NAMESPACE")
        for pattern, instead in VARYING:
            text = re.sub(pattern, instead, text)
        return text.strip()


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """An embedded cluster without nodes, as a process of its own."""
    folder = tmp_path_factory.mktemp("up")
    log = folder / "log"
    words = (sys.executable, "-m", "phalanx", "up", "--nodes", "0", "--port", "0")
    with log.open("wb") as file, launch(words, stdout=file, stderr=file) as process:
        assert eventually(lambda: "http://" in log.read_text()), log.read_text()
        found = re.search(r"http://\S+", log.read_text())
        assert found is not None
        yield Kubectl(folder / "work", f"--server={found[0]}")
        process.terminate()


@pytest.fixture(scope="module")
def real(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(tmp_path_factory.mktemp("real") / "work", f"--kubeconfig={plane.kubeconfig}")


@pytest.fixture(scope="module")
def answers(embedded: Kubectl, real: Kubectl) -> Iterator[list[tuple[Done, Done]]]:
    """How every command ended, on an embedded cluster and on a real one."""
    for kubectl in (embedded, real):
        assert kubectl.run(f"create namespace {kubectl.namespace}").code == 0
    assert eventually(lambda: real.run("get serviceaccount default").code == 0)
    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(lambda kubectl: [kubectl.run(command) for command in COMMANDS], (embedded, real))
    yield list(zip(ours, theirs, strict=True))
    for kubectl in (embedded, real):
        kubectl.run(f"delete namespace {kubectl.namespace} --wait=false")


@pytest.mark.parametrize("place", range(len(COMMANDS)), ids=lambda place: f"{place + 1:03d}-{COMMANDS[place]}")
def test_a_command_ends_and_prints_alike(answers: list[tuple[Done, Done]], place: int) -> None:
    command = COMMANDS[place]
    ours, theirs = answers[place]
    assert (ours.code == theirs.code) == (command not in END_DIFFERS), (ours, theirs)
    if command not in (*OUTPUT_DIFFERS, *END_DIFFERS):
        assert (ours.out, ours.problems) == (theirs.out, theirs.problems)
    elif ours.out.startswith("NAME"):
        assert ours.out.partition("\n")[0] == theirs.out.partition("\n")[0]


def test_there_are_two_hundred_and_every_difference_is_about_one_of_them() -> None:
    assert len(COMMANDS) >= 200
    assert {*OUTPUT_DIFFERS, *END_DIFFERS} <= set(COMMANDS)


def test_gangs_of_all_groups_are_listed_together(embedded: Kubectl, answers: list[tuple[Done, Done]]) -> None:
    assert embedded.run("apply -f gang.yaml -f other-gang.yaml").code == 0
    listed = embedded.run("get gangs -o name")
    assert set(listed.out.splitlines()) == {"podgroup.scheduling.volcano.sh/train", "podgroup.scheduling.x-k8s.io/other"}
