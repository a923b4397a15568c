"""Fuzzes one target led by the coverage of our code: `python -m tests.fuzz.guided TARGET SECONDS SEED`; needs atheris.

What it has found so far is kept in `.fuzz`, and is where the next run begins.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

atheris: Any = importlib.import_module("atheris")  # Any: it need not be installed where types are checked
with atheris.instrument_imports(include=["phalanx"]):
    from tests.fuzz.attempts import problem_with, set_limits
    from tests.fuzz.targets import TARGETS

CORPUS = Path(".fuzz")


def main(name: str, seconds: float, seed: int) -> None:
    """Try inputs until the time is over or one of them breaks something; this ends the process."""
    set_limits()
    corpus, target = CORPUS / name, TARGETS[name]
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(data)

    def once(data: bytes) -> None:
        if found := problem_with(name, target, data):
            print(f"{name}: {found}", flush=True)
            raise SystemExit(1)

    limits = [f"-max_total_time={max(int(seconds), 1)}", f"-seed={seed % 2**31}", "-rss_limit_mb=0", "-timeout=0", "-max_len=16384"]
    atheris.Setup([name, *limits, "-verbosity=0", "-print_final_stats=1", str(corpus)], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
