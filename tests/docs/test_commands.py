"""Every command in the documentation is run as its reader would type it, and shows what the page shows.

A page's ```console blocks are typed one after the other in a copy of the project in which `phalanx` is the one under test:

    $ phalanx schedule -f jobs.yaml     a command; lines that begin with > go on with it
    $ phalanx ...  # exit status 3      ends with this status, otherwise with 0
    $ phalanx up &                      goes on beside the others until the page ends
    3 pods placed ... nodes             output that must occur, in this order; ... stands for anything
    (step) break commit                 what is typed at the prompt of --step; what must occur as its answer follows

Commands that cannot be run here stand in ```sh blocks and in the table below, with the reason. Synopses stand in ```text blocks.
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

import pytest
import yaml
from _pytest.mark import ParameterSet

from phalanx.cli import ENTRIES_BY_NAME
from phalanx.config.policies import policy_of
from phalanx.dev.plane import ORDER
from phalanx.dev.processes import launch
from phalanx.store.snapshot_command import SNAPSHOT_COMMAND

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PATIENCE_SECONDS = 60.0
PROGRAMS = ("phalanx", "kubectl", "make", "pip", "python", "python3", "source")
PROMPT = "(step)"
OTHER_FENCES = {"yaml", "json", "python", "text"}
COPIED = ("examples", "Makefile", "pyproject.toml", "constraints.txt", "scripts")

NOT_RUN = {
    f"{SNAPSHOT_COMMAND} > cluster.yaml": "needs a cluster",
    "kubectl get configmap volcano-scheduler-configmap -n volcano-system -o yaml | phalanx config check -": "needs a cluster",
    "kubectl --server http://127.0.0.1:PORT get pods -A": "needs kubectl",
    "kubectl --server http://127.0.0.1:PORT apply -f job.yaml": "needs kubectl",
    "kubectl --server http://127.0.0.1:PORT get gangs -A": "needs kubectl",
    "make controlplane": "is what runs before the tests",
    "helm install phalanx deploy/chart -n phalanx-system --create-namespace "
    "--set image.repository=registry.example.com/phalanx": "needs a cluster",
    "helm upgrade phalanx deploy/chart -n phalanx-system --set serviceMonitor.enabled=true "
    "--set prometheusRule.enabled=true": "needs a cluster",
    "helm upgrade phalanx deploy/chart -n phalanx-system --set http.tls.secretName=phalanx-tls "
    "--set http.authentication=token": "needs a cluster",
    "kubectl create clusterrole phalanx-metrics --verb=get --non-resource-url=/metrics": "needs a cluster",
    "kubectl create clusterrolebinding phalanx-metrics --clusterrole=phalanx-metrics "
    "--serviceaccount=monitoring:prometheus": "needs a cluster",
    "kubectl apply --server-side -k deploy/kustomize/base": "needs a cluster",
    "phalanx manifests all --image registry.example.com/phalanx:0.2.0 | kubectl apply --server-side -f -": "needs a cluster",
    "kubectl -n phalanx-system rollout status deployment/phalanx": "needs a cluster",
    "kubectl plugin list": "needs kubectl",
    "kubectl phalanx get gangs -A": "needs a cluster",
    "kubectl phalanx get gangs -n research -o wide --watch": "needs a cluster",
    "kubectl phalanx describe gang resnet -n research": "needs a cluster",
    "kubectl phalanx explain research/resnet -f cluster.yaml": "needs the snapshot of a cluster",
    "phalanx run --kubeconfig ~/.kube/config --context staging --scheduler-name phalanx -v 2": "needs a cluster",
    "kubectl -n volcano-system scale deployment volcano-scheduler volcano-controllers --replicas 0": "needs a cluster",
    "phalanx run --scheduler-name volcano --config volcano-scheduler.conf": "needs a cluster",
    "phalanx run --scheduler-name volcano --controllers -volcano": "needs a cluster",
    "phalanx run --scheduler-name kai-scheduler --profile kai --controllers -binder,-gpu-reservations,"
    "-pod-grouper": "needs a cluster",
    "phalanx run --scheduler-name kai-scheduler --profile kai": "needs a cluster",
    "phalanx run --scheduler-name phalanx": "needs a cluster",
    "phalanx ui --context my-cluster --open": "needs a cluster",
    "phalanx ui --log recording --at 03:12": "needs the recording of a night: tests/browser",
    "phalanx ui --host 0.0.0.0 --port 8443 --tls-cert-file tls.crt --tls-private-key-file tls.key": "needs a cluster",
    "kubectl taint nodes gpu-1 gpu-2 example.com/gangs=true:NoSchedule": "needs a cluster: tests/integration",
    "kubectl label nodes gpu-1 gpu-2 example.com/gangs=true": "needs a cluster: tests/integration",
    "phalanx run --config batch.yaml --scheduler-name batch --lease-name phalanx-batch": "needs a cluster",
    "phalanx run --config serving.yaml --scheduler-name serving --lease-name phalanx-serving "
    "--controllers -volcano-job": "needs a cluster",
    "phalanx run --lease-duration 6": "needs a cluster",
    "phalanx simulate --workload generated:jobs=10000,nodes=1000,load=1.1 --until 7d --seeds 1..100 --compare volcano,kai,phalanx "
    "--on dask://scheduler.example.com:8786": "needs a Dask cluster",
    "pip install 'phalanx[tune]'": "is installed already",
    "phalanx tune work.yaml --jitter 0.1 --minimise 'p90 wait' --subject-to 'fairness >= 0.95' --trials 400 --seeds 1..10 "
    "--state search.json "
    "--on dask://scheduler.example.com:8786": "needs a Dask cluster",
    "phalanx replay recording --snapshot cluster.yaml": "needs a recording with a difference",
    "phalanx schedule -f cluster.yaml --step": "needs a recording with a difference",
    "phalanx run --record /var/lib/phalanx/recording": "needs a cluster",
    "phalanx record recording --context my-cluster --for 24h": "needs a cluster",
    "phalanx describe research/whisper --context my-cluster": "needs a cluster",
    "kubectl get provisioningrequests,podtemplates -n research": "needs a cluster; tests/integration/test_provisioning_live.py",
    "kubectl annotate nodes --all phalanx.dev/kept-for- phalanx.dev/kept-by- "
    "cluster-autoscaler.kubernetes.io/scale-down-disabled- karpenter.sh/do-not-disrupt-": "needs a cluster",
    "phalanx run --shadow --context my-cluster": "needs a cluster",
    "helm install shadow deploy/chart --namespace phalanx-system --create-namespace --set shadow.enabled=true": "needs a cluster",
    "phalanx shadow report phalanx-shadow": "needs a recording of a cluster",
    "phalanx explain research/whisper --log recording --at 03:12": "needs a recording of a cluster",
    "phalanx eta research/whisper --context staging": "needs a cluster",
    "phalanx simulate --workload philly:traces/philly,nodes=100": "needs a trace",
    "phalanx schedule --context my-cluster": "needs a cluster",
    "phalanx explain research/whisper --context my-cluster": "needs a cluster",
    "phalanx try -f job.yaml --context my-cluster": "needs a cluster",
    "phalanx schedule --context my-cluster -f train.yaml": "needs a cluster",
    "phalanx schedule --context my-cluster --profile kai": "needs a cluster",
    "phalanx schedule --context my-cluster --config volcano-scheduler.conf": "needs a cluster",
    ".venv/bin/phalanx run --shadow --context my-cluster": "needs a cluster",
    "kubectl phalanx schedule --context my-cluster": "needs a cluster",
}
"""Commands in ```sh blocks, and why no test runs them."""


@dataclass
class Command:
    """A line to type, and the lines that it must show."""

    text: str
    shown: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        found = re.search(r"  # exit status (\d+)$", self.text)
        return int(found[1]) if found else 0

    @property
    def keys(self) -> str | None:
        """What is typed while it runs; None if nothing is."""
        typed = [line.removeprefix(PROMPT).strip() for line in self.shown if line.startswith(PROMPT)]
        return "".join(f"{line}\n" for line in typed) if typed else None

    @property
    def is_beside(self) -> bool:
        return self.text.endswith(" &")

    @property
    def asks_a_cluster(self) -> bool:
        """Tell whether the answer changes with time, so that it is asked for again until it is the one shown."""
        return self.text.startswith(("phalanx get ", "phalanx describe "))


@dataclass
class Block:
    """A fenced block: its language and its lines."""

    language: str
    lines: list[str]

    def commands(self) -> list[Command]:
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


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


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

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        _copy_project(folder)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PHALANX_", "MAKE", "MFLAGS"))}
        environment |= {"PATH": f"{folder}/.venv/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
        environment |= {"XDG_RUNTIME_DIR": str(folder), "KUBECONFIG": str(folder / "none"), "NO_COLOR": "1"}
        self._environment = environment
        self._beside = [launch([sys.executable, "-c", STOP_LAB, str(folder / "lab"), *ORDER[::-1]])]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
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
    """Copy what commands read, with a `.venv` in which the program under test is installed."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, text in {"phalanx": f'exec {sys.executable} -m phalanx "$@"', "python": f'exec {sys.executable} "$@"'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    for name in ("pyvenv.cfg", ".runtime-installed"):
        (folder / ".venv" / name).touch()


def first_missing(shown: list[str], output: str) -> str | None:
    """Return the first line that should be shown and does not follow; None when all do."""
    left = iter(output.splitlines())
    for line in shown:
        pattern = re.compile(".*".join(map(re.escape, line.rstrip().split("..."))))
        if line.strip() not in ("", "...") and not any(pattern.fullmatch(found.rstrip()) for found in left):
            return line
    return None


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


def commands_of(page: Path) -> list[Command]:
    return [command for block in blocks(page) if block.language == "console" for command in block.commands()]


def case(page: Path) -> ParameterSet:
    """Return a page, with the mark of tests that need a control plane if it starts one."""
    needs_it = any(command.text.startswith("phalanx dev cluster up") for command in commands_of(page))
    return pytest.param(page, id=title(page), marks=[pytest.mark.xdist_group("controlplane")] if needs_it else [])


@pytest.mark.parametrize("page", [case(page) for page in PAGES if commands_of(page)])
def test_the_commands_of_a_page_show_what_it_says(page: Path, tmp_path: Path) -> None:
    with Desk(tmp_path) as desk:
        for command in commands_of(page):
            desk.type(command)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_every_fence_says_what_it_holds(page: Path) -> None:
    known = {"console", "sh", *OTHER_FENCES}
    assert {block.language for block in blocks(page)} <= known


def lines_that_look_like_commands(page: Path) -> Iterator[str]:
    """Yield lines of a program and its arguments outside ```console, ```sh and ```text blocks."""
    text = re.sub(r"^```(console|sh|text)\n.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(rf"^(?: {{4}}|\$ )?((?:{'|'.join(PROGRAMS)}) \S.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_no_command_hides_where_it_is_not_run(page: Path) -> None:
    assert list(lines_that_look_like_commands(page)) == []


def test_commands_that_are_not_run_are_those_of_the_table() -> None:
    marked = ["\n".join(block.lines) for page in PAGES for block in blocks(page) if block.language == "sh"]
    assert {line for text in marked for line in text.replace("\\\n", "").splitlines()} == set(NOT_RUN)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_a_text_block_holds_a_synopsis_of_a_command_that_exists_or_no_command(page: Path) -> None:
    for block in (block for block in blocks(page) if block.language == "text"):
        typed = [line.split() for line in block.lines if line.startswith(tuple(f"{program} " for program in PROGRAMS))]
        assert all(words[0] == "phalanx" and words[1] in ENTRIES_BY_NAME for words in typed)
        assert not typed or "[" in block.lines[0], f"{block.lines[0]!r} is no synopsis; write it as a ```console block"


def configurations_of(page: Path) -> list[str]:
    texts = ["\n".join(block.lines) for block in blocks(page) if block.language == "yaml"]
    return [text for text in texts if re.search("^(profile|actions|tiers):", text, re.MULTILINE)]


@pytest.mark.parametrize("page", [page for page in PAGES if configurations_of(page)], ids=title)
def test_the_configurations_of_a_page_are_valid(page: Path) -> None:
    for text in configurations_of(page):
        assert policy_of(yaml.safe_load(text)).actions


def python_of(page: Path) -> str:
    return "\n".join(line for block in blocks(page) if block.language == "python" for line in [*block.lines, ""])


@pytest.mark.parametrize("page", [page for page in PAGES if python_of(page)], ids=title)
def test_the_python_of_a_page_runs(page: Path) -> None:
    exec(compile(python_of(page), title(page), "exec"), {"__name__": "page"})


# --- the test itself -----------------------------------------------------------------------------------------------------


def test_output_is_compared_line_by_line_and_in_order() -> None:
    assert first_missing(["one", "... two", "..."], "one\nand two\nthree\n") is None
    assert first_missing(["two", "one"], "one\ntwo\n") == "one"
    assert first_missing(["one t"], "one two\n") == "one t"


def test_what_a_key_shows_is_compared_with_the_answer_to_this_key() -> None:
    shown = ["begin", "(step) s", "one", "(step) s", "two"]
    for output, is_right in (
        (["begin", "(step) s", "one", "(step) s", "two"], True), (["begin", "(step) s", "two", "(step) s", "one"], False),
        (["begin", "(step) s", "one"], False), (["begin", "(step) b", "one", "(step) s", "two"], False),
    ):  # fmt: skip
        found = [first_missing(part, "\n".join(answered)) is None for part, answered in by_key(shown, output)]
        assert all(found) is is_right


def test_a_command_that_ends_otherwise_is_found(tmp_path: Path) -> None:
    with Desk(tmp_path) as desk, pytest.raises(AssertionError, match="ended with 3"):
        desk.type(Command("phalanx schedule -f examples/deadlock"))
