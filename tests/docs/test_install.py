"""The table of values on the page about installing is that of the chart: each with its default and what its comment says."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
VALUES = (ROOT / "deploy" / "chart" / "values.yaml").read_text()
PAGE = (ROOT / "docs" / "howto" / "install.md").read_text()
SCHEMA = json.loads((ROOT / "deploy" / "chart" / "values.schema.json").read_text())


def commented() -> Iterator[tuple[str, str]]:
    """Yield the values that have a comment, and the comment."""
    said: list[str] = []
    path: list[str] = []
    for line in VALUES.splitlines():
        text = line.strip()
        if text.startswith("# "):
            said.append(text[2:])
        elif text:
            path = [*path[: (len(line) - len(text)) // 2], text.partition(":")[0]]
            if said:
                yield ".".join(path), " ".join(said)
            said = []


def at(path: str) -> Any:
    found: Any = yaml.safe_load(VALUES)
    for name in path.split("."):
        found = found[name]
    return found


def written(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)


def leaves(values: Mapping[str, Any], schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield what can be set by itself: everything below which the schema names nothing."""
    for name, value in values.items():
        inner = schema["properties"][name]
        is_table = "properties" in inner and path + name != "resources"
        yield from leaves(value, inner, f"{path}{name}.") if is_table else [path + name]


def test_every_value_has_a_comment_and_stands_in_the_schema() -> None:
    assert [path for path, _ in commented()] == list(leaves(yaml.safe_load(VALUES), SCHEMA))


def test_the_page_says_what_the_chart_says() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| `(.*?)` \| (.*) \|$", PAGE.partition("## Values of the chart")[2], re.MULTILINE)
    assert rows == [(path, written(at(path)), text) for path, text in commented()]
