"""Rows as a table for the terminal and as a section of `benchmarks/RESULTS.md`."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from phalanx.bench.measure import ACTIONS, TIERS, CycleRow
from phalanx.bench.suite import FailedRow

HEADINGS = ("scenario", "nodes", "pods", "gang", "load s", "seconds", "pods/s", "peak MiB", "growth")
Cells = tuple[str, ...]


def table(results: Sequence[CycleRow | FailedRow]) -> str:
    """Return the rows in columns, with a note on what they mean."""
    lines = [HEADINGS, *map(_cells, results)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join([*(aligned(line, widths) for line in lines), "", *notes()])


def aligned(line: Cells, widths: Sequence[int]) -> str:
    """Return a line of a table: names to the left, numbers to the right."""
    numbers = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
    return "  ".join([line[0].ljust(widths[0]), *numbers]).rstrip()


def _cells(result: CycleRow | FailedRow) -> Cells:
    sizes = (result.scenario, f"{result.nodes:,}", f"{result.pods:,}", f"{result.gang:,}")
    if isinstance(result, FailedRow):
        return (*sizes, "", "failed", "", "", "")
    growth = "" if result.growth is None else f"{result.growth:.2f}×"
    return (
        *sizes, f"{result.load_seconds:.2f}", _seconds(result.seconds), f"{result.pods_per_second:,.0f}",
        f"{result.peak_rss_bytes / (1 << 20):,.0f}", growth,
    )  # fmt: skip


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds >= 1 else f"{seconds:.4f}"


def notes() -> list[str]:
    """Say what the columns mean."""
    tiers = " ".join(f"[{', '.join(tier)}]" for tier in TIERS)
    return [
        f"seconds  of the processor for one cycle, from the snapshot to the decisions: session, {', '.join(ACTIONS)};",
        f"         profile volcano: {tiers};",
        "         rows with tiers or sub-groups add network-topology-aware. The median if a row runs more than once.",
        "load     building the cluster in memory before, not part of seconds. Every row places all its pods.",
        "growth   cost per pod relative to the row above in the same scenario.",
        "steady   all pods run, then one gang arrives: seconds holds its events too, pods/s and growth count its pods only.",
    ]


def section(results: Sequence[CycleRow | FailedRow], command: str) -> str:
    """Return the results as Markdown, with the command that gives them and the machine they are from."""
    lines = [_line(HEADINGS), _line(("---", *["--:"] * (len(HEADINGS) - 1))), *(_line(_cells(result)) for result in results)]
    parts = [
        f"Written by `{command}` on {datetime.now(UTC).date()}. Machine: {machine()}.",
        "\n".join(lines),
        "\n".join(["```text", *notes(), "```"]),
    ]
    return "\n\n".join(parts) + "\n"


def _line(cells: Cells) -> str:
    return f"| {' | '.join(cells)} |"


def machine() -> str:
    """Describe the machine: cores, processor, memory and the versions that matter."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    versions = f"{platform.python_implementation()} {platform.python_version()}, NumPy {version('numpy')}"
    return f"{os.cpu_count()} cores ({_processor()}), {memory_gib:.0f} GiB, {platform.system()}, {versions}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
