"""The page about the pod grouper says what the code does."""

import re
from pathlib import Path

import msgspec
import pytest

from phalanx.controllers.grouper.group_writers import GROUP_DIALECTS
from phalanx.controllers.grouper.owners import OWNER_MIN_MEMBERS, SKIPPED
from phalanx.controllers.grouper.rules import RULES, UNKNOWN, GroupingRule
from phalanx.controllers.grouper.settings import GrouperSettings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "controllers-grouper.md").read_text()


def rows(title: str) -> list[str]:
    part = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [line for line in part.splitlines() if line.startswith("| ")][2:]


def row(rule: GroupingRule) -> str:
    owners = ", ".join(f"`{kind}` ({group})" if group else f"`{kind}`" for group, kind in rule.kinds) or "any other"
    return f"| {owners} | {rule.says} | `{rule.priority}` |"


def test_the_table_of_owners_is_the_one_in_the_code() -> None:
    assert rows("Kinds of owners") == [row(rule) for rule in (*RULES, UNKNOWN)]


@pytest.mark.parametrize("pair", sorted(SKIPPED))
def test_owners_that_leave_the_decision_are_named(pair: tuple[str, str]) -> None:
    assert f"`{pair[1]}` ({pair[0]})" in PAGE


def test_every_setting_is_there_with_its_default() -> None:
    fields = {field.encode_name: field.default for field in msgspec.structs.fields(GrouperSettings)}
    shown = {line.split("|")[1].strip(" `"): line.split("|")[2].strip(" `") for line in rows("Settings")}
    assert shown == {name: written(value) for name, value in fields.items()}


def written(value: object) -> str:
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else str(value)


def test_every_dialect_is_there() -> None:
    assert [re.findall(r"`([^`]+)`", line)[0] for line in rows("Other dialects")] == list(GROUP_DIALECTS)


@pytest.mark.parametrize("key", OWNER_MIN_MEMBERS)
def test_every_annotation_that_sets_the_size_is_there(key: str) -> None:
    assert f"`{key}`" in PAGE
