"""Whatever goes wrong, a command ends with a sentence and an exit status, and never with a traceback."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from phalanx.cli import ENTRIES_BY_NAME, main
from phalanx.cli.failures import verbosity_typed
from phalanx.dev.processes import launch
from phalanx.errors import SnapshotError

ROOT = Path(__file__).resolve().parents[2]
DEADLOCK = str(ROOT / "examples/deadlock")
PATIENCE_SECONDS = 60.0
MOST_MEMORY_BYTES = 2 << 30
PHALANX = [sys.executable, "-m", "phalanx"]
Finished = subprocess.CompletedProcess[str]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Let no cluster of the one who runs the tests be found."""
    others = {key: value for key, value in os.environ.items() if key not in ("PHALANX_SERVER", "KUBERNETES_SERVICE_HOST")}
    return {**others, "XDG_RUNTIME_DIR": str(tmp_path), "KUBECONFIG": str(tmp_path / "none"), "PYTHONPATH": str(ROOT / "src")}


# --- input ---------------------------------------------------------------------------------------------------------------

GANG = (
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g, namespace: d}\n"
    "spec: {minMember: 1, queue: q0}\n"
    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: d, annotations: {scheduling.k8s.io/group-name: g}}\n"
    "spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n"
)
QUEUE = "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: q{}}}\nspec: {{parent: q{}}}\n"
LOOP = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: d}\nspec: &s {containers: [{name: c, image: i}], more: *s}\n"


def _made(folder: Path) -> dict[str, str]:
    """Make files that nobody can use, and return their paths by what is wrong with them."""
    contents = {
        "brackets": b"[" * 100_000,
        "braces": b'{"a":' * 100_000,
        "binary": bytes(range(256)) * 8,
        "latin": "kind: Pod\nmetadata: {name: na\xefve}\n".encode("latin-1"),
        "utf-16": "apiVersion: v1\nkind: Pod\n".encode("utf-16"),
        "nul": b"\0" * 4096,
        "empty": b"",
        "number": b"7",
        "list": b"[1, 2]",
        "long line": b"a" * 1_000_000,
        "self": LOOP.encode(),
        "self at the top": b"&a [*a]",
        "chained queues": (GANG + "".join(QUEUE.format(number, number + 1) for number in range(1500))).encode(),
    }
    paths = {"missing": str(folder / "nosuch"), "unreadable": "/proc/self/mem", "no folder": str(folder / "empty/x/y")}
    for name, content in contents.items():
        file = folder / f"{name.replace(' ', '-')}.yaml"
        file.write_bytes(content)
        paths[name] = str(file)
    (folder / "bare").mkdir()
    (folder / "full/sub.yaml").mkdir(parents=True)
    return {**paths, "folder without files": str(folder / "bare"), "folder in a folder": str(folder / "full")}


COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "schedule": lambda path: ["schedule", "-f", path],
    "schedule with kai": lambda path: ["schedule", "-f", path, "--profile", "kai"],
    "schedule as data": lambda path: ["schedule", "-f", path, "-o", "yaml"],
    "usage": lambda path: ["schedule", "-f", DEADLOCK, "--profile", "kai", "--usage", path],
    "config": lambda path: ["schedule", "-f", DEADLOCK, "--config", path],
    "explain": lambda path: ["explain", "d/g", "-f", path],
    "try": lambda path: ["try", "-f", path, "--cluster", DEADLOCK],
    "try on": lambda path: ["try", "-f", DEADLOCK, "--cluster", path],
    "eta": lambda path: ["eta", "-f", path],
    "scenario": lambda path: ["simulate", DEADLOCK, "--until", "1s", "--scenario", path],
    "workload": lambda path: ["simulate", "--workload", f"philly:{path}", "--until", "1s"],
    "convert": lambda path: ["convert", "-f", path, "--to", "kai"],
    "convert to JSON": lambda path: ["convert", "-f", path, "--to", "kai", "-o", "json"],
    "apply": lambda path: ["apply", "-f", path],
    "delete": lambda path: ["delete", "-f", path],
    "check": lambda path: ["config", "check", path],
    "kubeconfig": lambda path: ["get", "pods", "--kubeconfig", path],
    "run": lambda path: ["run", "--kubeconfig", path],
    "state": lambda path: ["up", "--state", path, "--port", "1"],
}


@pytest.fixture(scope="module")
def bad_paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return _made(tmp_path_factory.mktemp("bad"))


LEFT_OUT = {
    *(("state", name) for name in ("missing", "no folder")),  # a cluster would be started
    ("eta", "chained queues"),  # simulations of thousands of queues take minutes
}


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_is_told_in_a_sentence(
    command: str, bad_paths: dict[str, str], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_RUNTIME_DIR", "KUBECONFIG"):
        monkeypatch.setenv(name, environment[name])
    for name, path in bad_paths.items():
        if (command, name) in LEFT_OUT:
            continue
        result = CliRunner().invoke(main, COMMANDS[command](path), prog_name="phalanx")
        told = f"{command} with {name}: {result.exit_code}: {result.stdout[-500:]}{result.stderr[-500:]}"
        assert "Traceback" not in result.output, told
        assert isinstance(result.exception, SystemExit | None), told
        assert result.exit_code in (0, 1, 2, 3), told
        assert result.exit_code != 1 or result.stderr.splitlines()[-1].startswith(("error: ", "  ")), told
        if name not in ("chained queues", "self", "self at the top", "braces"):
            assert "internal error" not in result.output, told


def test_an_endless_file_is_told_in_a_sentence(environment: dict[str, str]) -> None:
    done = finished("schedule", "-f", "/dev/zero", environment=environment, before=_with_little_memory)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr[-500:]
    assert done.stderr.startswith("error: ")


def _with_little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))


# --- faults of our own ---------------------------------------------------------------------------------------------------


@pytest.fixture
def command_that_raises() -> Iterator[Callable[[BaseException], list[str]]]:
    """Return a function that makes a command which fails, and returns how it is typed."""
    made: list[str] = []

    def make(problem: BaseException) -> list[str]:
        def fail() -> None:
            raise problem

        name = f"fail-{len(made)}"
        made.append(name)
        globals()[name] = click.Command(name, callback=fail)
        ENTRIES_BY_NAME[name] = ENTRIES_BY_NAME["get"]._replace(target=f"{__name__}:{name}")
        return [name]

    yield make
    for name in made:
        del ENTRIES_BY_NAME[name], globals()[name]


ODD = ValueError("odd\x1b\nForged")
REPORT = "for the traceback add -v 5, or write it before the name of the command, and please report it\n"


@pytest.mark.parametrize(
    ("problem", "status", "sentence"),
    [
        (ODD, 1, f"error: internal error: ValueError: odd^[ Forged; {REPORT}"),
        (ExceptionGroup("two", [ODD, SnapshotError("a: wrong")]), 1, "error: a: wrong\n"),
        (SnapshotError("two:", details=["a", "b\nc"]), 1, "error: two:\n  a\n  b c\n"),
        (MemoryError(), 1, "error: out of memory; the input is too large for this machine, or for the limit of this process\n"),
        (
            RecursionError(),
            1,
            f"error: internal error: objects are nested too deeply, or refer to each other in too long a chain; {REPORT}",
        ),
        (PermissionError(13, "Permission denied", "/x"), 1, "error: /x: Permission denied\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
    ids=repr,
)
def test_every_failure_is_one_sentence(
    command_that_raises: Callable[[BaseException], list[str]], problem: BaseException, status: int, sentence: str
) -> None:
    result = CliRunner().invoke(main, command_that_raises(problem), prog_name="phalanx")
    assert (result.exit_code, result.stdout, result.stderr) == (status, "", sentence)


def test_a_traceback_is_printed_for_those_who_ask_for_it(command_that_raises: Callable[[BaseException], list[str]]) -> None:
    result = CliRunner().invoke(main, ["-v", "5", *command_that_raises(ODD)], prog_name="phalanx")
    assert "Traceback (most recent call last)" in result.stderr
    assert "in fail" in result.stderr
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize(
    ("typed", "verbosity"),
    [
        ("get pods", 0),
        ("-v 5 get", 5),
        ("schedule -v 4", 4),
        ("schedule -v5", 5),
        ("run --verbosity=9", 9),
        ("get -v", 0),
        ("x --version", 0),
    ],
)
def test_the_verbosity_is_read_wherever_it_was_typed(typed: str, verbosity: int) -> None:
    assert verbosity_typed(typed.split()) == verbosity


# --- output --------------------------------------------------------------------------------------------------------------


def finished(*arguments: str, environment: dict[str, str], shell: str = "", before: Callable[[], None] | None = None) -> Finished:
    """Run a command to its end; `shell` is what follows it in a line of a shell."""
    command = [*PHALANX, *arguments] if not shell else ["bash", "-c", f'"$@" {shell}', "bash", *PHALANX, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=PATIENCE_SECONDS, check=False, preexec_fn=before
    )


WRITERS = (["schedule", "-f", DEADLOCK], ["manifests", "all"], ["--help"])


@pytest.mark.parametrize("arguments", WRITERS, ids=" ".join)
@pytest.mark.parametrize(
    ("shell", "status", "sentence"),
    [
        (">/dev/full", 1, "error: cannot write: No space left on device\n"),
        (">&-", 1, "error: cannot write: Bad file descriptor\n"),
        ("| true; exit ${PIPESTATUS[0]}", 141, ""),
    ],
)
def test_results_that_cannot_be_written(
    environment: dict[str, str], arguments: list[str], shell: str, status: int, sentence: str
) -> None:
    done = finished(*arguments, environment=environment, shell=shell)
    assert (done.returncode, done.stderr) == (status, sentence)


@pytest.mark.parametrize("shell", ["2>/dev/full", "2>&-"])
def test_what_cannot_be_told_changes_no_status(environment: dict[str, str], shell: str) -> None:
    assert finished("schedule", "-f", "nosuch", environment=environment, shell=shell).returncode == 1
    assert finished("config", "check", "-", environment=environment, shell=f"{shell} <<< 'actions: allocate'").returncode == 0


def test_a_closed_stdin_has_nothing_in_it(environment: dict[str, str]) -> None:
    done = finished("schedule", "-f", "-", environment=environment, shell="<&-")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: stdin: no objects in it")


def test_names_that_the_terminal_cannot_show(environment: dict[str, str], tmp_path: Path) -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "größe大"}}
    (tmp_path / "queue.json").write_text(json.dumps(queue))
    done = finished(
        "convert", "--to", "kai", "-f", str(tmp_path / "queue.json"), environment={**environment, "PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u5927" in done.stdout


# --- Ctrl-C and servers that stop ----------------------------------------------------------------------------------------


def test_ctrl_c_is_one_line(environment: dict[str, str]) -> None:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = launch([*PHALANX, "schedule", "--batch"], cwd=ROOT, env=environment, **pipes)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"id": 1}\n')
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, words) == (130, "interrupted\n")


@pytest.mark.parametrize("kind", ["pods", "gangs"])
def test_a_server_that_stops_ends_a_watch_with_a_sentence(environment: dict[str, str], kind: str) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with launch([*PHALANX, "up", DEADLOCK], cwd=ROOT, env=environment, **pipes) as up:
        server = (up.stdout.readline() if up.stdout else "").split()[-1]
        with launch([*PHALANX, "get", kind, "-A", "-w", "--server", server], cwd=ROOT, env=environment, **pipes) as watch:
            assert watch.stdout is not None
            watch.stdout.readline()
            up.kill()
            _, words = watch.communicate(timeout=PATIENCE_SECONDS)
    assert watch.returncode == 1
    assert words.count("\n") == 1
    assert words.startswith((f"error: {server} has stopped answering", f"error: no cluster at {server}"))
