"""The page about the profile kai names what the code has, and the profile is what the page says."""

import re
from pathlib import Path

import yaml

from phalanx.config.builtin import KAI_CATALOGUE
from phalanx.config.kai import DEFAULT_PLUGINS, OPTIONS
from phalanx.config.policies import policy_of, policy_of_profile
from phalanx.config.reference import spelled_out

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "kai.md").read_text()


def rows(title: str) -> list[list[str]]:
    """Return the cells of the first table below a title."""
    table = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")]


def names(title: str) -> list[str]:
    return [name for row in rows(title) for name in re.findall(r"`([^`]+)`", row[0])]


def test_the_page_names_every_action_in_its_order() -> None:
    assert names("Actions") == list(KAI_CATALOGUE.actions) == list(policy_of_profile("kai").actions)


def test_the_page_names_every_plugin_in_its_order() -> None:
    found = names("Plugins")
    assert found[: len(DEFAULT_PLUGINS)] == list(DEFAULT_PLUGINS)
    assert set(found) == set(KAI_CATALOGUE.plugins)
    assert [plugin.name for plugin in policy_of_profile("kai").plugins()] == list(DEFAULT_PLUGINS)


def test_the_page_names_every_option_with_its_default() -> None:
    found = {row[0].strip("`"): row[1] for row in rows("Configuration")}
    assert found == {name: str(value).lower() for name, value in OPTIONS.items()}


def test_the_profile_spelled_out_means_the_same() -> None:
    policy = policy_of_profile("kai")
    assert policy_of(yaml.safe_load(spelled_out(policy))) == policy
