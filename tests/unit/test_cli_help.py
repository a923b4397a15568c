"""The command line before a command runs: help, version, completion, errors."""

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import phalanx
from phalanx import cli
from phalanx.errors import ConfigError, SnapshotError

ROOT = Path(__file__).resolve().parents[2]
HEAVY_MODULES = ("numpy", "msgspec", "yaml", "asyncio", "aiohttp", "cryptography", "re2")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, arguments, prog_name="phalanx")


def run_in_a_new_interpreter(program: str, *arguments: str) -> str:
    finished = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return finished.stdout


def test_a_misspelt_command_is_answered_with_the_one_that_is_meant() -> None:
    assert "Error: No such command 'schedle'. Did you mean 'schedule'?" in run("schedle").stderr
    assert run("xyzzy").stderr.endswith("Error: No such command 'xyzzy'.\n")


def test_help_shows_every_command_with_its_summary() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name, entry in cli.ENTRIES_BY_NAME.items():
        assert f"  {name} " in result.stdout
        assert entry.summary in result.stdout


def test_help_shows_two_examples_under_the_name_of_the_program() -> None:
    assert "  phalanx schedule -f examples/deadlock" in run("--help").stdout
    assert "  phalanx explain research/resnet -f examples/deadlock" in run("-h").stdout


def modules_after(*arguments: str) -> set[str]:
    program = "import sys; from phalanx.cli import main; main(sys.argv[1:], standalone_mode=False); print(*sorted(sys.modules))"
    return set(run_in_a_new_interpreter(program, *arguments).splitlines()[-1].split())


def test_help_imports_nothing_heavy() -> None:
    modules = modules_after("--help")
    assert "click" in modules
    assert not modules.intersection((*HEAVY_MODULES, "prometheus_client", "phalanx.cli.schedule"))


QUESTIONS = [("schedule",), ("explain",), ("try",), ("eta",), ("pending",)]
CLUSTER = [("up",), ("apply",), ("get",), ("describe",), ("delete",), ("diff",), ("wait",), ("suspend",), ("resume",)]
QUEUE = [("queue",), ("queue", "open"), ("queue", "close")]
DEV = [("dev",), ("dev", "build"), ("dev", "cluster"), ("dev", "cluster", "up"), ("dev", "cluster", "down")]
CONFIG = [("config",), ("config", "show"), ("config", "check"), ("config", "list")]


@pytest.mark.parametrize("arguments", [*QUESTIONS, ("simulate",), *CLUSTER, *QUEUE, *CONFIG, *DEV])
def test_help_of_a_command_imports_nothing_heavy_and_shows_two_examples(arguments: tuple[str, ...]) -> None:
    assert not modules_after(*arguments, "--help").intersection(HEAVY_MODULES)
    shown = run(*arguments, "--help").stdout
    examples = shown.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    assert len([line for line in examples if "phalanx" in line]) == 2


def test_a_scheduler_asks_for_its_lists_before_anything_heavy_is_imported() -> None:
    program = (
        "import sys; from phalanx.cli.run import command; command.make_context('run', []); "
        "import phalanx.store.kube.connect; print(*sys.modules)"
    )
    modules = set(run_in_a_new_interpreter(program).split())
    assert "phalanx.store.kube.client" in modules
    assert not modules.intersection(("numpy", "aiohttp", "phalanx.sim", "phalanx.session"))


def helps(name: str) -> dict[str, tuple[str | None, str | None]]:
    """Return the metavar and the help of each option of a command."""
    command = cli.main.get_command(click.Context(cli.main, info_name="phalanx"), name)
    assert command is not None
    return {param.opts[-1]: (param.metavar, param.help) for param in command.params if isinstance(param, click.Option)}


@pytest.mark.parametrize("name", ["explain", "try", "eta"])
def test_options_that_commands_share_have_the_same_help(name: str) -> None:
    own = {"--filename", "--timeout"}
    schedule, found = helps("schedule"), helps(name)
    shared = found.keys() & schedule.keys() - own
    cluster = {"--server", "--kubeconfig", "--context", "--request-timeout"}
    assert shared == {*cluster, "--config", "--profile", "--scheduler-name", "--now", "--log", "--at", "--output"}
    assert {option: found[option] for option in shared} == {option: schedule[option] for option in shared}
    assert found["--timeout"][0] == "DURATION"


def test_questions_about_waiting_gangs_stand_together() -> None:
    assert [*cli.ENTRIES_BY_NAME][:5] == ["schedule", "explain", "try", "eta", "pending"]


@pytest.mark.parametrize(
    ("started_as", "name"),
    [
        ("/usr/local/bin/phalanx", "phalanx"),
        ("/usr/local/bin/kubectl-phalanx", "kubectl phalanx"),
        ("src/phalanx/__main__.py", "phalanx"),
    ],
)
def test_usage_names_the_program_as_it_was_started(
    started_as: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [started_as, "--help"])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: {name} ")
    assert f"  {name} schedule -f examples/deadlock" in shown


def test_help_of_a_command_names_the_program_too() -> None:
    shown = CliRunner().invoke(cli.main, ["get", "--help"], prog_name="kubectl phalanx").stdout
    assert "    kubectl phalanx get -A\n" in shown
    assert "    phalanx get -A\n" in run("get", "--help").stdout


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").stdout == f"phalanx {phalanx.__version__}\n"
    assert phalanx.__version__ == importlib.metadata.version("phalanx")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_the_shell(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert f"{cli.COMPLETE_VARIABLE}={shell}_complete" in result.stdout


def test_completion_offers_the_commands_without_importing_them() -> None:
    context = click.Context(cli.main)
    items = cli.main.shell_complete(context, "co")
    assert [(item.value, item.help) for item in items] == [
        ("convert", cli.ENTRIES_BY_NAME["convert"].summary),
        ("config", cli.ENTRIES_BY_NAME["config"].summary),
        ("completion", cli.ENTRIES_BY_NAME["completion"].summary),
    ]
    assert [item.value for item in cli.main.shell_complete(context, "--v")] == ["--version"]


def kubectl_asks(*words: str) -> list[str]:
    """Run the program by which kubectl completes our commands."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["kubectl_complete-phalanx"].partition(":")
    return run_in_a_new_interpreter(f"from {module} import {function}; {function}()", *words).splitlines()


def test_kubectl_completes_commands_options_and_kinds() -> None:
    assert kubectl_asks("conv") == [f"convert\t{cli.ENTRIES_BY_NAME['convert'].summary}", ":4"]
    assert kubectl_asks("get", "ga") == ["gangs", ":4"]
    assert kubectl_asks("get", "gangs", "--all") == ["--all-namespaces\tLook in all namespaces.", ":4"]
    assert kubectl_asks("describe", "podgr") == ["podgroups", ":4"]


def test_kubectl_completes_files_where_files_are_wanted() -> None:
    assert kubectl_asks("apply", "-f", "exam") == [":0"]
    assert kubectl_asks("nothing", "like", "it") == [":4"]


@pytest.mark.parametrize("arguments", [("unheard-of",), ("--frobnicate",), ("completion", "tcsh")])
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Usage: phalanx" in result.stderr


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (ConfigError("actions: unknown action 'alocate'"), "actions: unknown action 'alocate'"),
        (SnapshotError("Pod a/b: spec: missing"), "Pod a/b: spec: missing"),
    ],
)
def test_our_own_errors_are_one_line_on_stderr_and_exit_with_1(
    problem: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def fail() -> None:
        raise problem

    monkeypatch.setattr(cli, "_load", lambda target: fail)
    result = run("schedule")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"error: {sentence}\n")
