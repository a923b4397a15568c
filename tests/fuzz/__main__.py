"""Runs fuzzers: `python -m tests.fuzz [--seconds 60] [TARGET...]`.

Each target runs in a process of its own, with a limit on its memory. With atheris it is led by the coverage of the code; what it
has found so far is kept in `.fuzz` and is where the next run begins. Without atheris inputs are made by `mutations.py` alone. An
input that breaks something is saved in `tests/data/fuzz/TARGET`, where the tests try it from then on.
"""

import argparse
import faulthandler
import hashlib
import importlib.util
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType

from tests.fuzz.mutations import mutated
from tests.fuzz.targets import MOST_SECONDS, TARGETS, Target, Violation

SAVED = Path(__file__).parents[1] / "data" / "fuzz"
CORPUS = Path(".fuzz")
MEMORY_BYTES = 3 << 30


def main() -> int:
    """Run the targets that are named, or all, one after the other."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description="Look for inputs that break something.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for each target; 60 by default")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    unknown = sorted({*asked.targets} - {*TARGETS})
    if unknown:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    if asked.inside:
        return _run(asked.targets[0], asked.seconds, asked.seed)
    names = asked.targets or list(TARGETS)
    failed = [name for name in names if not _in_process(name, asked.seconds, asked.seed)]
    print(f"fuzz: {len(names)} targets, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


def _in_process(name: str, seconds: float, seed: int) -> bool:
    command = [sys.executable, "-m", "tests.fuzz", "--inside", "--seconds", str(seconds), "--seed", str(seed), name]
    return subprocess.run(command, check=False).returncode == 0


def _run(name: str, seconds: float, seed: int) -> int:
    faulthandler.enable()
    has_atheris = importlib.util.find_spec("atheris") is not None
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, _too_long)
    count, found = (_guided if has_atheris else _blind)(name, TARGETS[name], seconds, seed)
    how = "atheris" if has_atheris else "mutations"
    print(f"{name}: {count} inputs with {how}, seed {seed}: {found or 'nothing found'}", flush=True)
    return 1 if found else 0


def _too_long(_: int, frame: FrameType | None) -> None:
    raise Violation(f"took longer than {MOST_SECONDS} s")


def _problem(name: str, target: Target, data: bytes) -> str:
    """Try one input; return what is wrong, and where the input was saved."""
    signal.alarm(MOST_SECONDS)
    try:
        target.check(data)
    except (Exception, MemoryError) as problem:
        signal.alarm(0)
        path = SAVED / name / hashlib.sha256(data).hexdigest()[:16]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return f"{type(problem).__name__}: {str(problem)[:300]}; the input is in {path}"
    finally:
        signal.alarm(0)
    return ""


def _blind(name: str, target: Target, seconds: float, seed: int) -> tuple[int, str]:
    random, end, count = Random(seed), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += 1
        if found := _problem(name, target, mutated(target.seeds, random)):
            return count, found
    return count, ""


def _guided(name: str, target: Target, seconds: float, seed: int) -> tuple[int, str]:
    """Half of the time blindly, for the sake of the large changes, then led by coverage."""
    count, found = _blind(name, target, seconds / 2, seed)
    if found:
        return count, found
    import atheris  # type: ignore[import-not-found, unused-ignore]  # optional

    corpus = CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(data)
    atheris.instrument_all()
    options = [
        f"-max_total_time={max(int(seconds / 2), 1)}",
        f"-seed={seed % 2**31}",
        "-rss_limit_mb=0",
        "-max_len=65536",
        "-verbosity=0",
    ]
    atheris.Setup([name, *options, str(corpus)], _tried(name, target))
    atheris.Fuzz()  # ends the process
    return count, ""


def _tried(name: str, target: Target) -> Callable[[bytes], None]:
    def once(data: bytes) -> None:
        if found := _problem(name, target, data):
            print(f"{name}: {found}", flush=True)
            raise SystemExit(1)

    return once


if __name__ == "__main__":
    raise SystemExit(main())
