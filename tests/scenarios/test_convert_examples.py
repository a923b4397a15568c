"""A gang of the examples, said in every dialect by `phalanx convert`: it reads back as the same gang and is placed as one."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.dialects.convert import DIALECTS
from phalanx.dialects.convert.neutral_gangs import NeutralGang, sort_out

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "role-minima"
WITH_ROLES = ("volcano", "kai", "koordinator", "yunikorn")
ALL_OF_THEM = ("kueue",)
"""Start with every pod, or not at all."""


def run(*arguments: str, text: str | None = None) -> Any:
    return CliRunner().invoke(main, [*arguments], input=text, prog_name="phalanx", catch_exceptions=False)


def said_in(dialect: str) -> str:
    result = run("convert", "-f", str(EXAMPLE / "llama.yaml"), "--to", dialect)
    assert result.exit_code == 0
    found: str = result.stdout
    return found


def the_gang(text: str) -> NeutralGang:
    (group,) = sort_out([item for item in yaml.safe_load_all(text) if item]).groups
    return group


@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_reads_back_as_the_same_gang(dialect: str) -> None:
    text = said_in(dialect)
    group = the_gang(text)
    assert (group.dialect, group.namespace, group.name, len(group.members)) == (dialect, "research", "llama", 8)
    assert group.min_member == (8 if dialect in ALL_OF_THEM else 3)
    assert group.roles == ({"master": 1, "worker": 2} if dialect in WITH_ROLES else {})
    assert ("# lost: gang research/llama: minTaskMember" in text) is (dialect not in WITH_ROLES)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_back_in_volcanos_words_it_has_the_same_roles_or_none(dialect: str) -> None:
    back = run("convert", "-f", "-", "--to", "volcano", text=said_in(dialect))
    assert "lost" not in back.stdout
    group = the_gang(back.stdout)
    assert (group.dialect, group.name, len(group.members)) == ("volcano", "llama", 8)
    assert group.roles == ({"master": 1, "worker": 2} if dialect in WITH_ROLES else {})


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "gates"])
def test_it_is_placed_as_a_gang(dialect: str) -> None:
    nodes = (EXAMPLE / "nodes.yaml").read_text()
    result = run("schedule", "-f", "-", "-o", "json", text=f"{nodes}\n---\n{said_in(dialect)}")
    answer = yaml.safe_load(result.stdout)
    assert len(answer["binds"]) == (0 if dialect in ALL_OF_THEM else 7)
