"""Profiles and configurations: what `phalanx config` shows, lists and refuses, and what a file or a batch request may say."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of, policy_of_profile, profile_names
from phalanx.errors import ConfigError
from phalanx.session.policy import Policy
from phalanx.store.input_files import policy_of_file

CHART = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
    arguments:
      binpack.weight: 10
"""


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["config", *arguments], input=given, prog_name="phalanx")


def plugin_names(policy: Policy) -> list[list[str]]:
    return [[plugin.name for plugin in tier] for tier in policy.tiers]


def in_config_map(text: str, key: str = "volcano-scheduler.conf") -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {key: text}})


# --- profiles ------------------------------------------------------------------------------------------------------------


def test_the_profile_volcano_is_that_of_its_chart() -> None:
    policy = policy_of_profile("volcano")
    assert policy.actions == ("enqueue", "allocate", "backfill")
    assert plugin_names(policy) == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ]
    off = [plugin.name for plugin in policy.plugins() if "enablePreemptable" not in plugin.enabled]
    assert off == ["gang", "drf"]


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_can_be_used_and_says_what_it_is(name: str) -> None:
    assert policy_of_profile(name).tiers
    assert run("show", "--profile", name).stdout.startswith("# ")


@pytest.mark.parametrize(
    ("name", "hint"), [("vulcano", "did you mean 'volcano'?"), ("nope", f"known: {', '.join(profile_names())}")]
)
def test_a_profile_that_does_not_exist_is_refused_with_those_that_do(name: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        policy_of_profile(name)
    assert str(caught.value) == f"profile: unknown profile {name!r}; {hint}"


def test_what_a_configuration_says_overrides_its_profile() -> None:
    policy = policy_of({"profile": "volcano", "actions": "allocate", "flags": {"shardingMode": "soft"}})
    assert policy.actions == ("allocate",)
    assert policy.flags.sharding_mode == "soft"
    assert len(policy.plugins()) == 9


def test_tiers_override_those_of_the_profile_as_a_whole() -> None:
    assert plugin_names(policy_of({"profile": "volcano", "tiers": [{"plugins": [{"name": "gang"}]}]})) == [["gang"]]


@pytest.mark.parametrize("empty", [None, {}])
def test_no_configuration_means_the_default_profile(empty: object) -> None:
    assert policy_of(empty) == policy_of_profile("phalanx")


def test_a_configuration_without_profile_stands_for_itself() -> None:
    assert policy_of({"actions": "allocate", "tiers": []}).plugins() == []


# --- files ---------------------------------------------------------------------------------------------------------------


def test_a_volcano_scheduler_conf_works_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "volcano-scheduler.conf"
    file.write_text(CHART)
    assert policy_of_file(str(file)).plugins()[-1].arguments == {"binpack.weight": 10}


@pytest.mark.parametrize("key", ["volcano-scheduler.conf", "volcano-scheduler-ci.conf"])
def test_a_config_map_is_unwrapped(key: str, tmp_path: Path) -> None:
    file = tmp_path / "configmap.yaml"
    file.write_text(in_config_map(CHART, key))
    assert policy_of_file(str(file)).actions == ("enqueue", "allocate", "backfill")


def test_check_says_what_it_found() -> None:
    result = run("check", "-", given=CHART)
    assert (result.exit_code, result.stdout) == (0, "stdin: ok, 3 actions, 2 tiers, 9 plugins\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "stdin: empty; see 'phalanx config show' for a whole configuration"),
        ("actions: allocate\n---\nactions: allocate\n", "stdin: 2 documents; a configuration is one"),
        ("actions: [\n", "stdin, line 2, column 1: did not find expected node content"),
        ("- a\n", "stdin: configuration: expected a mapping, got list"),
        ("tires: []\n", "stdin: configuration.tires: unknown key; did you mean 'tiers'?"),
        ("actions: allocaat\n", "stdin: actions: unknown action 'allocaat'; did you mean 'allocate'?"),
        ("tiers:\n- plugins:\n  - nme: gang\n", "stdin: tiers[0].plugins[0].nme: unknown key; did you mean 'name'?"),
        ("tiers:\n- plugins:\n  - name: gangg\n", "stdin: tiers[0].plugins[0].name: unknown plugin 'gangg'; did you mean 'gang'?"),
        ("tiers:\n- plugins:\n  - {name: gang, enableJobOrdr: true}\n",
         "stdin: tiers[0].plugins[0].enableJobOrdr: unknown key; did you mean 'enableJobOrder'?"),
        ("tiers:\n- plugins:\n  - {name: binpack, arguments: {binpack.weihgt: 3}}\n",
         "stdin: tiers[0].plugins[0]: plugin 'binpack', argument 'binpack.weihgt': unknown setting;"
         " did you mean 'binpack.weight'?"),
        ("tiers:\n- plugins:\n  - {name: binpack, arguments: {binpack.weight: heavy}}\n",
         "stdin: tiers[0].plugins[0]: plugin 'binpack', argument 'binpack.weight': 'heavy' is not a whole number"),
        ("tiers:\n- plugins:\n  - {name: resource-strategy-fit, arguments: {sra: {enable: true, weight: heavy}}}\n",
         "stdin: tiers[0].plugins[0]: plugin 'resource-strategy-fit', argument 'sra.weight': 'heavy' is not a number"),
        ("configurations:\n- {name: allocate, arguments: {enablePredicateErrorCach: true}}\n",
         "stdin: configurations: action 'allocate', argument 'enablePredicateErrorCach': unknown setting;"
         " did you mean 'enablePredicateErrorCache'?"),
        ("profile: vulcano\n", "stdin: profile: unknown profile 'vulcano'; did you mean 'volcano'?"),
        ("profile: 3\n", "stdin: profile: expected the name of a profile, got int"),
        (in_config_map("", "a").replace("  a: ''", "  a: x\n  b: y"),
         "stdin: data: no key 'volcano-scheduler.conf' in this ConfigMap"),
        (in_config_map("actions: ["), "stdin, document 1, data['volcano-scheduler.conf'], line 2, column 1:"
         " did not find expected node content"),
    ],
)  # fmt: skip
def test_check_refuses_a_mistake_with_its_place_and_the_nearest_right_name(text: str, sentence: str) -> None:
    result = run("check", "-", given=text)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"error: {sentence}\n")


def test_check_of_a_file_that_is_not_there_says_so() -> None:
    result = run("check", "missing.conf")
    assert (result.exit_code, result.stderr) == (1, "error: missing.conf: no such file or folder\n")


# --- show and list -------------------------------------------------------------------------------------------------------


def test_show_prints_a_profile_that_can_be_used() -> None:
    shown = run("show").stdout
    assert policy_of(yaml.safe_load(shown)) == policy_of_profile("phalanx")


def test_show_with_defaults_means_the_same_and_leaves_nothing_unsaid() -> None:
    shown = yaml.safe_load(run("show", "--profile", "volcano", "--defaults").stdout)
    spelled_out, short = policy_of(shown), policy_of_profile("volcano")
    assert [plugin.enabled for plugin in spelled_out.plugins()] == [plugin.enabled for plugin in short.plugins()]
    assert (spelled_out.actions, spelled_out.flags, spelled_out.victim_rule) == (short.actions, short.flags, short.victim_rule)
    assert shown["tiers"][1]["plugins"][0] == {
        "name": "overcommit", "enableJobEnqueued": True, "arguments": {"overcommit-factor": 1.2},
    }  # fmt: skip


def test_list_names_every_profile_action_and_plugin() -> None:
    listed = {line.split()[0] for line in run("list").stdout.splitlines() if line.startswith("  ")}
    assert listed == {*profile_names(), *CATALOGUE.actions, *CATALOGUE.plugins}


LOOSE = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: priority\n'


@pytest.mark.parametrize(
    ("text", "is_noted"),
    [
        (LOOSE, True),
        (f"{LOOSE}  - name: gang\n    enableJobReady: false\n", True),
        (f"{LOOSE}  - name: gang\n", False),
        ("profile: kai\n", False),
        ("profile: default-scheduler\n", True),
    ],
)
def test_a_configuration_that_holds_no_gangs_together_is_checked_with_a_note(text: str, is_noted: bool) -> None:
    result = CliRunner().invoke(main, ["config", "check", "-"], input=text, prog_name="phalanx")
    assert result.exit_code == 0
    assert ("no plugin of the configuration holds gangs together" in result.stderr) is is_noted
