"""`--step`: where commands come from, how answers are written, and how it ends."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.config.policies import policy_of_profile
from phalanx.dev.processes import launch
from phalanx.recording.moment import time_text
from tests.support import sim_worlds as worlds
from tests.support.recordings import recorded, replayed

ROOT = Path(__file__).resolve().parents[2]
PREEMPT = str(ROOT / "examples" / "preempt")


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(main, arguments, input=given, prog_name="phalanx")


def typed(*lines: str, more: tuple[str, ...] = ()) -> Result:
    return run("schedule", "-f", PREEMPT, "--step", *more, given="".join(f"{line}\n" for line in lines))


def objects(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_what_is_read_from_a_pipe_is_shown_as_if_it_were_typed() -> None:
    result = typed("break eviction", "c", "q", "s")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:6] == [
        "session: 3 nodes, 3 queues, 3 gangs, 95 steps",
        "(step) break eviction",
        "breakpoint 1: eviction",
        "(step) c",
        "stop at breakpoint 1: eviction",
        "#40 [4] trial: try to evict task research/sweep-0 from node dgx-1 (gangpreempt for research/llama)",
    ]
    assert result.stdout.splitlines()[-1] == "(step) q"


def test_the_end_of_the_input_ends_it(tmp_path: Path) -> None:
    assert typed().exit_code == 0
    assert typed("s").stdout.splitlines()[-1] == "     in action allocate"
    (tmp_path / "script").write_text("# a comment\nlevel 4\n\n")
    result = run("schedule", "-f", PREEMPT, "--step", "--script", str(tmp_path / "script"))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1:3] == ["(step) level 4", "level 4: 60 of 95 steps count"]
    assert lines[3:5] == [
        "(step)",
        "#1 [4] queue research: deserved cpu 32, memory 256Gi, pods 8, nvidia.com/gpu 12; " + lines[4].split("; ")[1],
    ]


def test_json_has_an_object_for_each_command(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("watch node/dgx-3.idle\nc\nwrong\nshow gang research/llama\nhelp\nq\n")
    found = objects(run("schedule", "-f", PREEMPT, "--step", "--script", str(tmp_path / "script"), "-o", "json"))
    assert [each.get("command") for each in found] == [
        None, "watch node/dgx-3.idle", "c", "wrong", "show gang research/llama", "help", "q",
    ]  # fmt: skip
    assert found[0] == {"session": "session", "steps": 95}
    assert found[2]["trace"]["event"] == "allocated"
    gpus = {when: found[2]["room"]["idle"][when]["nvidia.com/gpu"] for when in ("before", "after")}
    assert gpus == {"before": 4, "after": 1}
    assert found[2]["watches"]["node/dgx-3.idle"] == found[2]["room"]["idle"]
    assert found[3]["error"].startswith("'wrong' is no command")


def test_the_level_and_the_gangs_of_the_trace_are_those_of_the_steps() -> None:
    plain = run("schedule", "-f", PREEMPT, "-v", "4", "--gang", "research/sweep")
    found = objects(typed(*[""] * 100, more=("-v", "4", "--gang", "research/sweep", "-o", "json")))
    shown = [f"[{each['trace']['level']}] {each['trace']['text']}" for each in found if "trace" in each]
    assert shown == [line for line in plain.stderr.splitlines() if line.startswith("[")]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--script", "x"), "--script: it has the commands of --step; add --step"),
        (("--step", "-o", "yaml"), "--step: the output is a table or json"),
        (("--step", "--batch"), "--batch takes no other option"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...], text: str) -> None:
    result = run("schedule", "-f", PREEMPT, *arguments)
    assert result.exit_code == 2
    assert text in result.stderr


def test_stdin_cannot_have_both_the_cluster_and_the_commands(tmp_path: Path) -> None:
    result = run("schedule", "-f", "-", "--step")
    assert result.exit_code == 2
    assert "the commands must come from a file; add --script FILE" in result.stderr
    assert "--at: says where stepping begins; add --step" in run("replay", str(tmp_path), "--at", "03:12").stderr


# --- a terminal ----------------------------------------------------------------------------------------------------------


def _interrupted(process: "subprocess.Popen[str]") -> int:
    """Press Ctrl-C until it is heard: readline misses one that comes just before it begins to listen."""
    for _ in range(60):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=1)
    return process.wait(timeout=1)


def at_a_terminal(keys: bytes, *, is_interrupted: bool = False) -> tuple[int, str]:
    """Type keys at a terminal, one line after each prompt; return the exit status and what it shows."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "phalanx", "schedule", "-f", PREEMPT, "--step"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TERM": "dumb"}
    with launch(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        for key in (b"", *keys.splitlines(keepends=True)):
            os.write(ours, key)
            while not shown.endswith(b"(step) ") or key:
                try:
                    part = os.read(ours, 4096)
                except OSError:  # the other side is closed
                    break
                shown, key = shown + part, b""
        status = _interrupted(process) if is_interrupted else process.wait(timeout=60)
    os.close(ours)
    return status, shown.decode()


def test_a_terminal_has_a_prompt_and_enter_is_a_step() -> None:
    status, shown = at_a_terminal(b"\nq\n")
    assert status == 0
    assert "#2 [5]" not in shown
    assert "#5 [3] try to allocate for 1 queue(s): research" in shown


def test_the_end_of_a_terminal_ends_it() -> None:
    status, shown = at_a_terminal(b"\x04")
    assert status == 0
    assert "Traceback" not in shown


def test_an_interrupt_ends_it() -> None:
    status, shown = at_a_terminal(b"\n", is_interrupted=True)
    assert status == 0
    assert "Traceback" not in shown


# --- recordings ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording with a gang that starts at once, and one that starts after it."""
    folder: Path = tmp_path_factory.mktemp("log")
    world = worlds.world(nodes=1, gpus=2, is_served=True, policy=policy_of_profile("phalanx"))
    with recorded(world, folder):
        worlds.submit(world, worlds.gang("first", tasks=2, duration="5m", gpus=1), at=0.0)
        worlds.submit(world, worlds.gang("second", tasks=2, duration="5m", gpus=1), at=100.0)
        worlds.run(world, 1_200)
    return folder


def test_the_sessions_of_a_recording_follow_each_other(log: Path) -> None:
    sessions = replayed(log)
    given = "next session\n" * len(sessions)
    found = objects(run("replay", str(log), "--step", "-o", "json", given=given))
    assert [each["session"] for each in found[:-1]] == [each["session"] for each in found if "session" in each]
    assert [each["session"].split()[1] for each in found[:-1]] == [str(session.number) for session in sessions]
    assert found[-1]["error"].startswith("there is no session after this one")


def test_a_session_of_a_recording_is_stepped_to_the_decisions_that_were_recorded(log: Path) -> None:
    binding = next(session for session in replayed(log) if session.session.parts[0].decisions.binds)
    script = "next session\n" * (binding.number - 1) + "c\n"
    found = objects(run("replay", str(log), "--step", "-o", "json", given=script))[-1]
    assert (found["over"], found["placed"]) == (True, len(binding.session.parts[0].decisions.binds))


def test_stepping_begins_with_the_first_session_from_a_moment_on(log: Path) -> None:
    late = [session for session in replayed(log) if session.now >= replayed(log)[0].now + 90]
    moment = time_text(late[0].now)
    (found,) = objects(run("replay", str(log), "--step", "--at", moment, "-o", "json"))
    assert found["session"] == f"session at {moment}"


def test_a_folder_without_a_recording_is_said(tmp_path: Path) -> None:
    result = run("replay", str(tmp_path), "--step")
    assert result.exit_code == 1
    assert "no recording in it" in result.stderr
