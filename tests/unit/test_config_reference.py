"""The reference tells the truth: arguments, defaults and switches are those that the code reads."""

from pathlib import Path
from typing import Any

import pytest

from phalanx.cli import ENTRIES_BY_NAME, _load
from phalanx.config.builtin import CATALOGUE
from phalanx.config.reference import arguments, defaults_of, document, summary, switches_of
from phalanx.session.policy import FLAGS, PluginPolicy

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
KINDS = [("actions", name) for name in CATALOGUE.actions] + [("plugins", name) for name in CATALOGUE.plugins]
everything = pytest.mark.parametrize(("kind", "name"), KINDS, ids=lambda part: part)


class AskedFor(dict[str, object]):
    """Arguments that remember which keys somebody asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.keys_asked: list[str] = []

    def get(self, key: str, default: Any = None) -> Any:
        self.keys_asked.append(key)
        return default


def make(kind: str, name: str, values: dict[str, object]) -> object:
    if kind == "actions":
        return CATALOGUE.actions[name](values)
    return CATALOGUE.plugins[name](PluginPolicy(name, arguments=values))


def state(thing: object) -> dict[str, Any]:
    """Return everything a thing is made of; parts of its own are taken apart too."""
    found = {}
    for key, value in vars(thing).items():
        found[key] = state(value) if type(value).__module__.startswith("phalanx.plugins") else repr(value)
    return found


def test_every_action_and_plugin_is_in_the_reference_and_nothing_else() -> None:
    known = arguments()
    assert set(known["actions"]) == set(CATALOGUE.actions)
    assert set(known["plugins"]) == set(CATALOGUE.plugins)


@everything
def test_the_arguments_are_those_that_the_code_asks_for(kind: str, name: str) -> None:
    asked = AskedFor()
    make(kind, name, asked)
    fixed = {key for key in arguments()[kind].get(name, {}) if not key.endswith(".NAME")}
    assert fixed == set(asked.keys_asked)


@everything
def test_the_defaults_are_those_that_hold_when_nobody_sets_anything(kind: str, name: str) -> None:
    assert state(make(kind, name, defaults_of(name))) == state(make(kind, name, {}))


def test_a_wrong_default_would_be_noticed() -> None:
    assert state(make("plugins", "binpack", {"binpack.weight": 2})) != state(make("plugins", "binpack", {}))


@pytest.mark.parametrize("name", CATALOGUE.plugins)
def test_the_switches_of_a_plugin_are_ones_that_a_configuration_may_name(name: str) -> None:
    assert set(switches_of(name)) <= set(FLAGS)


# --- the documents -------------------------------------------------------------------------------------------------------


def test_the_document_on_plugins_is_up_to_date() -> None:
    assert (DOCS / "plugins.md").read_text() == document(), "run: python -m phalanx.config.reference > docs/reference/plugins.md"


@everything
def test_every_action_and_plugin_says_in_a_sentence_what_it_does(kind: str, name: str) -> None:
    assert summary(getattr(CATALOGUE, kind)[name]).endswith(".")


@pytest.mark.parametrize("name", ["schedule", "simulate", "config", "up", "apply", "get", "describe", "delete"])
def test_the_document_on_the_command_line_has_every_option(name: str) -> None:
    text = (DOCS / "command-line.md").read_text()
    commands = [_load(ENTRIES_BY_NAME[name].target)]
    commands += getattr(commands[0], "commands", {}).values()
    options = [option for command in commands for part in command.params for option in part.opts if option.startswith("-")]
    missing = [option for option in options if f"`{option}" not in text]
    assert missing == []


def test_the_document_on_configurations_has_every_switch() -> None:
    text = (DOCS / "configuration.md").read_text()
    assert [flag for flag in FLAGS if f"`{flag}`" not in text] == []
