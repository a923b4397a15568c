"""One attempt with an input, in a process with limits: what breaks something is saved."""

import faulthandler
import hashlib
import resource
import signal
from pathlib import Path
from types import FrameType

from tests.fuzz.targets import MOST_SECONDS, Target, Violation

SAVED = Path(__file__).parents[1] / "data" / "fuzz"
MEMORY_BYTES = 3 << 30


def set_limits() -> None:
    """Limit the memory of this process, and be ready to interrupt an attempt that takes too long."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, _too_long)


def _too_long(_: int, frame: FrameType | None) -> None:
    raise Violation(f"took longer than {MOST_SECONDS} s")


def problem_with(name: str, target: Target, data: bytes) -> str:
    """Try one input; return what is wrong, and where the input was saved."""
    signal.alarm(MOST_SECONDS)
    try:
        target.check(data)
    except Exception as problem:
        signal.alarm(0)
        path = SAVED / name / hashlib.sha256(data).hexdigest()[:16]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return f"{type(problem).__name__}: {str(problem)[:300]}; the input is in {path}"
    finally:
        signal.alarm(0)
    return ""
