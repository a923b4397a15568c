"""Which settings a search may change, and how chosen values become a configuration."""

from typing import Any

import pytest

from phalanx.config.policies import policy_of, policy_of_profile
from phalanx.config.reference import in_full
from phalanx.errors import ConfigError
from phalanx.sim.tuning.space import Setting, configuration, derived, of_queues, read_space, weights_of_queues

PHALANX = policy_of_profile("phalanx")


def setting(name: str, settings: list[Setting]) -> Setting:
    return next(item for item in settings if item.name == name)


def test_numbers_and_durations_are_searched_and_switches_and_words_are_not() -> None:
    found = derived(PHALANX)
    names = {item.name for item in found}
    assert {"binpack: binpack.weight", "nodeorder: leastrequested.weight", "heal: grace", "gangreclaim: maxDomains"} <= names
    assert not {"gangreclaim: victims", "gangreclaim: allowWholeBundle", "predicates: predicate.VolumeRestrictionsEnable"} & names


def test_a_weight_may_become_zero_and_another_number_may_not() -> None:
    found = derived(PHALANX)
    assert (setting("nodeorder: mostrequested.weight", found).low, setting("gangreclaim: maxDomains", found).low) == (0, 1)
    assert setting("nodeorder: tainttoleration.weight", found).high == 30


def test_what_is_off_stays_off() -> None:
    assert "coscheduling: permitWaitingTimeSeconds" not in {item.name for item in derived(PHALANX)}


def test_a_duration_is_searched_on_a_logarithmic_scale_around_its_value() -> None:
    grace = setting("heal: grace", derived(PHALANX))
    assert (grace.low, grace.high, grace.is_log, grace.written(90)) == (6, 600, True, "90s")


@pytest.mark.parametrize("profile", ["phalanx", "volcano", "coscheduling"])
def test_both_ends_of_every_derived_setting_make_a_configuration(profile: str) -> None:
    policy = policy_of_profile(profile)
    found = derived(policy)
    for end in ("low", "high"):
        policy_of(configuration(policy, found, {item.name: getattr(item, end) for item in found}))


def test_no_chosen_value_changes_nothing() -> None:
    assert policy_of(configuration(PHALANX, derived(PHALANX), {})) == policy_of(in_full(PHALANX))


def test_chosen_values_stand_where_a_configuration_has_them() -> None:
    found = derived(PHALANX)
    policy = policy_of(
        configuration(PHALANX, found, {"binpack: binpack.weight": 7, "heal: grace": 90, "gangreclaim: maxDomains": 3})
    )
    binpack = next(plugin for plugin in policy.plugins() if plugin.name == "binpack")
    assert binpack.arguments["binpack.weight"] == 7
    assert (policy.arguments_by_action["heal"]["grace"], policy.arguments_by_action["gangreclaim"]["maxDomains"]) == ("90s", 3)


def test_a_file_names_settings_of_any_kind() -> None:
    found = read_space(
        {
            "plugins": {"binpack": {"binpack.weight": {"from": 0, "to": 5}, "binpack.resources": {"choices": ["", "a.com/gpu"]}}},
            "actions": {"heal": {"grace": {"from": "10s", "to": "5m", "log": True}}},
            "queues": {"team-1": {"from": 1, "to": 4}},
        },
        PHALANX,
        "space.yaml",
    )
    assert [item.as_data() for item in found] == [
        {"setting": "binpack: binpack.weight", "default": 1, "from": 0, "to": 5},
        {"setting": "binpack: binpack.resources", "default": "*/*", "choices": ["", "a.com/gpu"]},
        {"setting": "heal: grace", "default": "60s", "from": "10s", "to": "300s"},
        {"setting": "team-1: weight", "default": None, "from": 1, "to": 4},
    ]
    assert [item.is_log for item in found] == [False, False, True, False]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "space.yaml: write 'plugins:', 'actions:' or 'queues:'"),
        ({"plugin": {}}, "space.yaml: write 'plugins:', 'actions:' or 'queues:'"),
        ({"plugins": {"drff": {}}}, "space.yaml: plugins.drff: not in the configuration; it has: priority, gang"),
        ({"plugins": {"drf": 3}}, "space.yaml: plugins.drf: expected a mapping, got int"),
        ({"actions": {"heal": {"grace": {"from": 1}}}}, "space.yaml: actions.heal.grace: write {from: 0, to: 10}"),
        ({"actions": {"heal": {"grace": {"from": 9, "to": 1}}}}, "actions.heal.grace: 'from' must be less than 'to'"),
        (
            {"actions": {"heal": {"grace": {"from": "x", "to": 1}}}},
            "actions.heal.grace.from: 'x' is neither a number nor",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_what_to_write(document: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_space(document, PHALANX, "space.yaml")
    assert message in str(caught.value)


def test_weights_of_queues_are_no_part_of_a_configuration() -> None:
    found = of_queues({"b": 2.0, "a": 1.0})
    assert [(item.name, item.default) for item in found] == [("a: weight", 1), ("b: weight", 2)]
    assert weights_of_queues(found, {"a: weight": 3}) == {"a": 3}
    assert configuration(PHALANX, found, {"a: weight": 3}) == in_full(PHALANX)


def test_which_settings_of_kai_to_search_must_be_said() -> None:
    with pytest.raises(ConfigError, match="name a file with them"):
        derived(policy_of_profile("kai"))
