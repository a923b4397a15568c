"""What a policy says is said by named settings: nobody who decides asks for the name of a profile."""

import ast
from dataclasses import fields
from pathlib import Path

import pytest

import phalanx
from phalanx.config.builtin import CATALOGUE, KAI_CATALOGUE, catalogue_of
from phalanx.config.policies import policy_of_profile, profile_names
from phalanx.session.policy import Policy

ROOT = Path(phalanx.__file__).parent
DECIDING = ("model", "placement", "state", "session", "actions", "plugins", "kubernetes", "kai", "scheduling", "live")
OWN_TO_KAI = {
    "catalogue", "dialect", "has_tiers", "follows_shards", "counts_all_gangs", "books_are_live", "evictions_free_devices",
    "binds_by_request", "tries_all_gangs", "reads_kai_queues",
}  # fmt: skip


def compared(path: Path) -> set[object]:
    """Return the constants that a file compares something with."""
    comparisons = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Compare)]
    operands = [operand for node in comparisons for operand in (node.left, *node.comparators)]
    return {operand.value for operand in operands if isinstance(operand, ast.Constant)}


@pytest.mark.parametrize("room", DECIDING)
def test_nobody_who_decides_compares_with_the_name_of_a_profile(room: str) -> None:
    files = sorted(ROOT.joinpath(room).rglob("*.py"))
    assert files
    assert [path.name for path in files if {"kai", "volcano"} & compared(path)] == []


@pytest.mark.parametrize("name", profile_names())
def test_only_the_profile_kai_has_settings_of_its_own(name: str) -> None:
    policy, plain = policy_of_profile(name), Policy((), ())
    changed = {field.name for field in fields(Policy) if getattr(policy, field.name) != getattr(plain, field.name)}
    assert changed & OWN_TO_KAI == (OWN_TO_KAI if name == "kai" else set())
    assert catalogue_of(policy.catalogue) is (KAI_CATALOGUE if name == "kai" else CATALOGUE)
