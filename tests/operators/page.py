"""Writes docs/reference/operators.md from the results of lanes: ``python -m tests.operators.page``, the end of `make operators`."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from phalanx.dev.programs import KUBERNETES
from tests.operators import autoscaler_lanes
from tests.operators.modes import MODES
from tests.support.kept_results import FAILED, KNOWN_DEFECT, NOT_APPLICABLE, PASSED, Found, read
from tests.support.operator_mode import LANES, OperatorMode

SERVER = KUBERNETES.removeprefix("v")
RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "operators.md"
HEAD = f"""\
# Operators

Which operators work with Phalanx, in which modes, and how to switch each mode on. `make operators` writes this page: it starts the
unpatched operators beside an API server of Kubernetes {SERVER}, its controllers and `phalanx run`, and submits workloads to them.
Cluster Autoscaler is tested in the same way.
"""
AUTOSCALER = """\
The unpatched autoscaler runs beside `phalanx run`. The machines of its cloud provider `kwok` are Node objects without kubelets.
[Let an autoscaler bring nodes for gangs](../howto/autoscalers.md) says what to switch on.
"""
WORDS = {PASSED: "yes", FAILED: "**no**"}


def page(results: Found) -> str:
    """Return the whole page."""
    parts = [HEAD, _table(results), _lanes(), _autoscaler(results), "## How to switch them on\n", *_switches()]
    return "\n".join(parts)


def _table(results: Found) -> str:
    head = [_row(("operator", "version", "mode", *LANES)), _row(["---"] * (3 + len(LANES)))]
    rows = [_row((mode.title, mode.version.removeprefix("v"), f"`{mode.name}`", *_cells(mode, results))) for mode in MODES]
    notes = [*_notes(results, KNOWN_DEFECT, "What does not work yet:"), *_notes(results, NOT_APPLICABLE, "What does not apply:")]
    return "\n".join(["## What works\n", *head, *rows, "", *notes])


def _cells(mode: OperatorMode, results: Found) -> list[str]:
    found = results.get(mode.key, {})
    return [_word(found.get(lane, "")) for lane in LANES]


def _word(result: str) -> str:
    if result.startswith(NOT_APPLICABLE):
        return "does not apply"
    return WORDS.get(result, "**no**" if result else "not tested")


def _notes(results: Found, start: str, title: str) -> list[str]:
    """Return a list of all results of a sort, each with what it says."""
    found = [
        f"- {mode.title}, `{mode.name}`, `{lane}`: {result.removeprefix(start)}."
        for mode in MODES for lane, result in results.get(mode.key, {}).items() if result.startswith(start)
    ]  # fmt: skip
    return [f"{title}\n", *found, ""] if found else []


def _lanes() -> str:
    rows = [_row((f"`{lane}`", text)) for lane, text in LANES.items()]
    return "\n".join(["## What is tested\n", _row(("lane", "test")), _row(("---", "---")), *rows, ""])


def _autoscaler(results: Found) -> str:
    """Return what gangs may expect of the autoscaler, line by line."""
    found = results.get(autoscaler_lanes.KEY, {})
    rows = [_row((f"`{lane}`", text, _word(found.get(lane, "")))) for lane, text in autoscaler_lanes.LANES.items()]
    title = f"## {autoscaler_lanes.TITLE} {autoscaler_lanes.RELEASE}\n"
    return "\n".join([title, AUTOSCALER, _row(("lane", "test", "works")), _row(["---"] * 3), *rows, ""])


def _switches() -> Iterator[str]:
    for title, modes in groupby(MODES, lambda mode: mode.title):
        yield f"### {title}\n"
        for mode in modes:
            yield f"**{mode.name}** ({mode.kind}). {mode.switch_on}\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(read(RESULTS)))


if __name__ == "__main__":
    main()
