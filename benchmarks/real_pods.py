"""How long one cycle takes with pods as real controllers and admission make them, beside bare ones, in one run.

    python benchmarks/real_pods.py
    python benchmarks/real_pods.py --laps 15

What each real pod has of its own (the volume of its token, index and hash labels, an owner) tells placement nothing, so a cycle
should take as long. Laps alternate, and the time of the processor counts: the machine is shared.
"""

import argparse
import gc
from statistics import median
from time import process_time

from phalanx.bench.clusters import build
from phalanx.bench.measure import NOW, policy_of
from phalanx.bench.scenarios import BenchKind, BenchScenario
from phalanx.config.builtin import CATALOGUE
from phalanx.session.cycle import run_cycle

SIZES = ((1_000, 5_000, 50), (1_000, 10_000, 1_000))
"""Nodes, pods, and the size of gangs."""
MOST = 1.15
"""So many times as long as with bare pods a cycle may take."""


def lap(scenario: BenchScenario) -> float:
    """Return the processor seconds of one cycle on a fresh cluster, its snapshot included."""
    state, policy = build(scenario), policy_of(scenario.kind)
    gc.collect()
    started = process_time()
    decisions = run_cycle(state.snapshot(NOW), policy, CATALOGUE)
    seconds = process_time() - started
    assert len(decisions.binds) == scenario.pods, "every pod has to be placed"
    return seconds


def compare(nodes: int, pods: int, gang: int, laps: int) -> float:
    """Measure both kinds of pods in turn; print and return the ratio of their medians."""
    kinds = (BenchKind.BARE_PODS, BenchKind.REAL_PODS)
    seconds: dict[BenchKind, list[float]] = {kind: [] for kind in kinds}
    for _ in range(laps):
        for kind in kinds:
            seconds[kind].append(lap(BenchScenario(kind, nodes, pods, gang)))
    bare, real = (median(seconds[kind]) for kind in kinds)
    size = f"{nodes:>6,} nodes {pods:>7,} pods  gangs of {gang:>5,}"
    print(f"{size}  bare {bare:.3f} s  real {real:.3f} s  real / bare {real / bare:.2f}")
    return real / bare


def main() -> int:
    """Compare all sizes; the exit status is 1 if real pods take too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laps", type=int, default=9, metavar="N")
    laps = parser.parse_args().laps
    ratios = [compare(*size, laps) for size in SIZES]
    print(f"at most {MOST} is allowed")
    return int(max(ratios) > MOST)


if __name__ == "__main__":
    raise SystemExit(main())
