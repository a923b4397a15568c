"""The page on reason codes has every code that the program gives, and none that it does not."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from phalanx.explain import node_reasons, reasons
from phalanx.explain.eviction_reasons import EVICTIONS
from phalanx.explain.verdict_reasons import LACKS
from phalanx.explain.verdict_reasons import VERDICTS as VERDICT_ENTRIES
from phalanx.session.spared import Spared

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "phalanx"
PAGE = (ROOT / "docs" / "reference" / "reasons.md").read_text()
CODE = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")
VERDICTS = {"refuse": 1, "reject": 1, "_refuse": 0}
"""Who gives a verdict, and which argument has the code; `_refuse` is the name of short cuts for it."""
CONDITIONS = {"Condition": 2, "PodScheduledCondition": 0}
EVENTS = {"KaiEvent": 3, "_write": 2, "RecordEvent": 1, "GangEvent": 1}
TOLD = (
    "dialects/volcano_status.py", "dialects/kai_status.py", "dialects/kai_events.py", "dialects/coscheduling_status.py",
    "dialects/status.py", "dialects/native_status.py", "controllers/gates.py", "scheduling/events.py", "explain/answer.py",
    "dialects/yunikorn.py", "dialects/pod_gangs_status.py", "controllers/kueue.py", "controllers/quarantine.py",
    "explain/quarantine.py", "explain/overdue.py", "model/conditions.py", "explain/events.py", "model/gang.py",
    "session/isolation.py",
    "controllers/objects.py", "controllers/cronjob.py", "controllers/jobflow.py", "controllers/queue.py",
    "controllers/grouper/controller.py", "controllers/volcano_job/controller.py", "controllers/volcano_job/job_status.py",
    "scheduling/status_writer.py", "controllers/hypernode_checks.py", "controllers/unmade_pods.py",
    "scheduling/binding.py", "scheduling/eviction.py", "live/api_port.py", "controllers/binder/gpu_reservations.py",
    "controllers/provisioning/controller.py",
)  # fmt: skip


@cache
def trees() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text()) for file in sorted(SOURCE.rglob("*.py")) if file.parent.name != "testing"}


@cache
def constants() -> dict[str, str]:
    """Return the codes that have a name."""
    lines = [node for tree in trees().values() for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    pairs = [(node.targets[0] if isinstance(node, ast.Assign) else node.target, node.value) for node in lines]
    return {name.id: code for name, value in pairs if isinstance(name, ast.Name) for code in written(value)}


def written(value: ast.AST | None) -> Iterator[str]:
    """Yield the code that a literal is."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and CODE.fullmatch(value.value):
        yield value.value


def codes_given(place_by_name: Mapping[str, int]) -> Iterator[str]:
    """Yield the codes in calls of these functions, each at its place among the arguments."""
    for call in (node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        place = place_by_name.get(name, len(call.args))
        for part in ast.walk(call.args[place]) if place < len(call.args) else ():
            yield from written(part)
            if isinstance(part, ast.Name) and part.id in constants():
                yield constants()[part.id]


def rows(title: str) -> list[list[str]]:
    """Return the cells of the table below a title."""
    table = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")]


def codes_of(title: str) -> list[str]:
    return [row[0].strip("`") for row in rows(title)]


def test_every_verdict_is_on_the_page_and_nothing_else() -> None:
    assert sorted(codes_of("Verdicts") + codes_of("Evictions")) == sorted(
        {*codes_given(VERDICTS), *(reason.code for reason in Spared)}
    )


@pytest.mark.parametrize(("title", "place_by_name"), [("Conditions", CONDITIONS), ("Events", EVENTS)])
def test_every_condition_and_event_is_on_the_page(title: str, place_by_name: dict[str, int]) -> None:
    codes = set(codes_given(place_by_name))
    assert codes
    assert codes <= set(codes_of(title))


def test_conditions_and_events_on_the_page_are_written_by_the_code() -> None:
    words = {code for file in TOLD for node in ast.walk(trees()[SOURCE / file]) for code in written(node)}
    assert set(codes_of("Conditions")) | set(codes_of("Events")) <= words


@pytest.mark.parametrize("title", ["Verdicts", "Evictions", "Conditions", "Events"])
def test_every_code_has_a_sentence_and_stands_in_order(title: str) -> None:
    assert codes_of(title) == sorted(codes_of(title))
    assert all(row[2].endswith(".") for row in rows(title))


def test_the_page_is_made_from_the_code() -> None:
    assert reasons.page() == PAGE


def test_every_verdict_says_what_helps() -> None:
    assert all(item.remedy.endswith(".") for item in (*VERDICT_ENTRIES, *LACKS, *EVICTIONS))
    assert all(item.remedy.endswith(".") for item in node_reasons.ALL_NODE_REASONS)


def test_every_reason_of_a_filter_has_a_code_and_a_phrase() -> None:
    given = set(filter_reasons())
    assert len(given) > 30
    unknown = {reason for reason in given if node_reasons.node_reason(reason).code == node_reasons.NO_NODE_FITS}
    assert unknown == set()


def filter_reasons() -> Iterator[str]:
    """Yield every text that begins like the reason of a filter."""
    rooms = ("plugins", "kubernetes", "session")
    files = (tree for file, tree in trees().items() if file.relative_to(SOURCE).parts[0] in rooms)
    constants = (node.value for tree in files for node in ast.walk(tree) if isinstance(node, ast.Constant))
    texts = (value for value in constants if isinstance(value, str))
    yield from (text for text in texts if text.startswith("node(s) ") and not text.endswith(" "))
