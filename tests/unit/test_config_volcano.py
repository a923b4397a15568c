"""Configuration: what is read, and what every mistake says: where, what, and what was probably meant."""

from typing import Any

import pytest

from phalanx.config.volcano import read_policy
from phalanx.errors import ConfigError
from phalanx.session.arguments import Arguments, setting_error
from phalanx.session.policy import FLAGS, OFF_UNLESS_SET, Policy

ACTIONS, PLUGINS = ["enqueue", "allocate", "backfill"], ["gang", "drf", "proportion", "binpack"]


def read(document: object) -> Policy:
    return read_policy(document, actions=ACTIONS, plugins=PLUGINS)


def one_plugin(**entry: Any) -> dict[str, Any]:
    return {"tiers": [{"plugins": [entry]}]}


def test_an_empty_configuration_has_the_usual_actions_and_no_plugins() -> None:
    policy = read({})
    assert policy.actions == ("enqueue", "allocate", "backfill")
    assert policy.tiers == ()
    assert policy.flags.sharding_mode == "none"


def test_tiers_plugins_switches_and_arguments_are_read_in_order() -> None:
    policy = read(
        {
            "actions": " allocate ,enqueue, ",
            "tiers": [
                {"plugins": [{"name": "gang", "enableJobOrder": False}]},
                {"plugins": [{"name": "drf"}, {"name": "binpack"}]},
                {},
            ],
            "configurations": [{"name": "allocate", "arguments": {"x": 1}}],
            "flags": {"shardingMode": "soft", "shardName": "mine", "ignoredProvisioners": ["a"]},
        }
    )
    assert policy.actions == ("allocate", "enqueue")
    assert [[plugin.name for plugin in tier] for tier in policy.tiers] == [["gang"], ["drf", "binpack"], []]
    assert [plugin.name for plugin in policy.plugins()] == ["gang", "drf", "binpack"]
    assert "enableJobOrder" not in policy.tiers[0][0].enabled
    assert policy.arguments_by_action == {"allocate": {"x": 1}}
    assert (policy.flags.sharding_mode, policy.flags.shard_name) == ("soft", "mine")
    assert policy.flags.ignored_provisioners == {"a"}


def test_a_switch_that_is_not_written_is_on_except_two() -> None:
    enabled = read(one_plugin(name="gang")).plugins()[0].enabled
    assert enabled == frozenset(FLAGS) - OFF_UNLESS_SET
    assert {"enableHierarchy", "enabledClusterOrder"} == OFF_UNLESS_SET
    assert "enableHierarchy" in read(one_plugin(name="drf", enableHierarchy=True)).plugins()[0].enabled


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "configuration: expected a mapping, got list"),
        ({"tierz": []}, "configuration.tierz: unknown key; did you mean 'tiers'?"),
        ({"actions": 5}, "actions: expected text, got int"),
        ({"actions": " , "}, "actions: empty; write for example 'enqueue, allocate, backfill'"),
        ({"actions": "alocate"}, "actions: unknown action 'alocate'; did you mean 'allocate'?"),
        ({"actions": "xyzzy"}, "actions: unknown action 'xyzzy'; known: allocate, backfill, enqueue"),
        ({"tiers": {}}, "tiers: expected a list, got dict"),
        ({"tiers": [5]}, "tiers[0]: expected a mapping, got int"),
        ({"tiers": [{"plugin": []}]}, "tiers[0].plugin: unknown key; did you mean 'plugins'?"),
        ({"tiers": [{"plugins": {"a": 1}}]}, "tiers[0].plugins: expected a list, got dict"),
        ({"tiers": [{}, {"plugins": [5]}]}, "tiers[1].plugins[0]: expected a mapping, got int"),
        (one_plugin(name="bing"), "tiers[0].plugins[0].name: unknown plugin 'bing'; known: binpack, drf, gang, proportion"),
        (one_plugin(name="binpak"), "tiers[0].plugins[0].name: unknown plugin 'binpak'; did you mean 'binpack'?"),
        (one_plugin(name=5), "tiers[0].plugins[0].name: expected text, got int"),
        (
            one_plugin(name="gang", enableJobReadi=True),
            "tiers[0].plugins[0].enableJobReadi: unknown key; did you mean 'enableJobReady'?",
        ),
        (
            one_plugin(name="gang", enableJobReady="yes"),
            "tiers[0].plugins[0].enableJobReady: 'yes' is not a switch; write true or false",
        ),
        (one_plugin(name="gang", arguments=[5]), "tiers[0].plugins[0].arguments: expected a mapping, got list"),
        ({"configurations": 5}, "configurations: expected a list, got int"),
        ({"configurations": [{"name": "enqeue"}]}, "configurations[0].name: unknown action 'enqeue'; did you mean 'enqueue'?"),
        ({"configurations": [{"nam": "x"}]}, "configurations[0].nam: unknown key; did you mean 'name'?"),
        ({"flags": {"shardingMod": "x"}}, "flags.shardingMod: unknown key; did you mean 'shardingMode'?"),
        ({"flags": {"shardingMode": "sort"}}, "flags.shardingMode: unknown mode 'sort'; did you mean 'soft'?"),
        ({"flags": {"ignoredProvisioners": "x"}}, "flags.ignoredProvisioners: expected a list, got str"),
        (
            {"tiers": [{}, {"plugins": [{"name": "proportion"}, {"name": "drf", "enableHierarchy": True}]}]},
            "tiers[1]: 'proportion' and 'drf' with enableHierarchy clash; keep one of them in this tier",
        ),
    ],
)  # fmt: skip
def test_a_mistake_names_its_place_and_what_was_meant(document: object, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(document)
    assert str(raised.value) == message


def test_proportion_and_hierarchy_in_different_tiers_do_not_clash() -> None:
    read({"tiers": [{"plugins": [{"name": "proportion"}]}, {"plugins": [{"name": "drf", "enableHierarchy": True}]}]})


def test_settings_are_read_with_defaults_and_from_text() -> None:
    settings = Arguments("binpack", {"a": "7", "b": 2.5, "c": "True", "d": 5, "e": None, "f": {"x": 1}})
    assert settings.integer("a", 1) == 7
    assert settings.integer("absent", 3) == 3
    assert settings.integer("e", 4) == 4
    assert settings.number("b", 1.0) == 2.5
    assert settings.switch("c", False) is True
    assert settings.text("d", "") == "5"
    assert settings.raw("f") == {"x": 1}
    assert settings.raw("none") is None
    settings.done()


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("integer", "x", "plugin 'binpack', argument 'key': 'x' is not a whole number"),
        ("integer", 1.5, "plugin 'binpack', argument 'key': 1.5 is not a whole number"),
        ("integer", 2**31, "plugin 'binpack', argument 'key': 2147483648 is not between -2147483647 and 2147483647"),
        ("number", "x", "plugin 'binpack', argument 'key': 'x' is not a number"),
        ("number", "nan", "plugin 'binpack', argument 'key': 'nan' is not a finite number"),
        ("switch", "yes", "plugin 'binpack', argument 'key': 'yes' is not true or false"),
    ],
)
def test_a_wrong_value_names_the_plugin_and_the_key(kind: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        getattr(Arguments("binpack", {"key": value}), kind)("key", 0)
    assert str(raised.value) == message


def test_a_setting_that_nobody_asked_for_is_refused_with_the_nearest_one() -> None:
    settings = Arguments("binpack", {"binpack.weigth": 1}, prefixes=("binpack.resources.",))
    settings.integer("binpack.weight", 1)
    with pytest.raises(ConfigError) as raised:
        settings.done()
    assert str(raised.value) == "plugin 'binpack', argument 'binpack.weigth': unknown setting; did you mean 'binpack.weight'?"
    assert str(setting_error("gang", "x", ["a"])) == "plugin 'gang', argument 'x': unknown setting; known: a"


def test_keys_with_a_free_prefix_are_let_through() -> None:
    Arguments("binpack", {"binpack.resources.x": 1}, prefixes=("binpack.resources.",)).done()
