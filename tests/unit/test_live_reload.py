"""A configuration file that changes while the process runs."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from phalanx.config.policies import policy_of, policy_of_profile, policy_of_text, profile_names
from phalanx.config.reference import in_full
from phalanx.errors import ConfigError
from phalanx.live.metrics import Metrics
from phalanx.live.reload import ConfigSource, Reload
from phalanx.session.policy import Policy

GOOD = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n"
BETTER = GOOD.replace("actions: allocate", 'actions: "allocate, backfill"')
BAD = GOOD.replace("name: gang", "name: gnag")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "scheduler.conf"
    found.write_text(GOOD)
    return found


def source_of(path: Path) -> tuple[ConfigSource, list[Reload]]:
    source = ConfigSource(path, partial(policy_of_text, where=str(path)))
    told: list[Reload] = []
    source.on_reload.append(told.append)
    return source, told


def test_the_file_is_in_force_from_the_start(file: Path) -> None:
    source, told = source_of(file)
    source.poll()
    assert source.policy.actions == ("allocate",)
    assert told == []


def test_a_change_is_in_force_after_the_next_look(file: Path) -> None:
    source, told = source_of(file)
    file.write_text(BETTER)
    source.poll()
    source.poll()
    assert source.policy.actions == ("allocate", "backfill")
    assert told == [Reload(True, f"{file}: in force from now on")]


def test_a_mistake_is_told_once_and_changes_nothing(file: Path) -> None:
    source, told = source_of(file)
    before = source.policy
    file.write_text(BAD)
    source.poll()
    source.poll()
    assert source.policy is before
    where = f"{file}: tiers[0].plugins[0].name: unknown plugin 'gnag'; did you mean 'gang'?"
    assert told == [Reload(False, f"{where}; the configuration of before stays in force")]


def test_text_that_is_no_yaml_is_a_mistake_like_any_other(file: Path) -> None:
    source, told = source_of(file)
    file.write_bytes(b"actions: [")
    source.poll()
    assert [outcome.is_applied for outcome in told] == [False]
    assert told[0].message.startswith(f"{file}, line ")


def test_the_old_file_put_back_is_told_too(file: Path) -> None:
    source, told = source_of(file)
    file.write_text(BAD)
    source.poll()
    file.write_text(GOOD)
    source.poll()
    assert [outcome.is_applied for outcome in told] == [False, True]


def test_a_file_that_is_gone_for_a_while_is_told_once_and_read_again(file: Path) -> None:
    source, told = source_of(file)
    file.unlink()
    source.poll()
    source.poll()
    assert [outcome.message for outcome in told] == [
        f"{file}: no such file; 'phalanx config show' prints one to begin with; the configuration of before stays in force"
    ]
    file.write_text(BETTER)
    source.poll()
    assert source.policy.actions == ("allocate", "backfill")
    assert [outcome.is_applied for outcome in told] == [False, True]


def test_a_mounted_config_map_changes_by_a_link(tmp_path: Path) -> None:
    for name, text in (("first", GOOD), ("second", BETTER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scheduler.conf").write_text(text)
    (tmp_path / "..data").symlink_to("first")
    (tmp_path / "scheduler.conf").symlink_to("..data/scheduler.conf")
    source, told = source_of(tmp_path / "scheduler.conf")
    (tmp_path / "..next").symlink_to("second")
    (tmp_path / "..next").replace(tmp_path / "..data")
    source.poll()
    assert source.policy.actions == ("allocate", "backfill")
    assert len(told) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BAD, "tiers[0].plugins[0].name: unknown plugin 'gnag'; did you mean 'gang'?"),
        ("", "empty; see 'phalanx config show' for a whole configuration"),
    ],
)
def test_a_mistake_at_the_start_is_an_error(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as problem:
        source_of(file)
    assert str(problem.value) == f"{file}: {message}"


def test_no_file_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.conf: no such file; 'phalanx config show' prints one"):
        source_of(tmp_path / "nowhere.conf")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=": cannot be read: Is a directory"):
        source_of(tmp_path)


@pytest.mark.parametrize(
    ("text", "where"),
    [("profile: kai\n", "profile: kai and the others"), (f"{GOOD}flags:\n  liftsKueueGate: true\n", "flags: they hold")],
)
def test_what_is_settled_at_the_start_is_not_changed(file: Path, text: str, where: str) -> None:
    source, told = source_of(file)
    file.write_text(text)
    source.poll()
    assert source.policy.actions == ("allocate",)
    assert told[0].message.startswith(f"{file}: {where}")


def test_the_file_is_followed_while_the_loop_runs(file: Path) -> None:
    source, told = source_of(file)

    async def run() -> None:
        following = asyncio.create_task(source.follow(every_seconds=0.001))
        file.write_text(BETTER)
        async with asyncio.timeout(10):
            while not told:
                await asyncio.sleep(0.001)
        following.cancel()

    asyncio.run(run())
    assert source.policy.actions == ("allocate", "backfill")


def test_the_outcome_is_a_metric(file: Path) -> None:
    source, _ = source_of(file)
    metrics = Metrics(lambda: 0.0)
    source.on_reload.append(lambda outcome: metrics.config_reloaded(outcome.is_applied))
    file.write_text(BAD)
    source.poll()
    assert metrics.registry.get_sample_value("phalanx_config_last_reload_successful") == 0


@pytest.mark.parametrize("profile", profile_names())
def test_the_policy_in_force_can_be_shown_as_json_and_read_again(profile: str) -> None:
    policy: Policy = policy_of_profile(profile)
    again = policy_of(json.loads(json.dumps(in_full(policy))))
    assert (again.actions, again.catalogue, again.flags) == (policy.actions, policy.catalogue, policy.flags)
    assert [plugin.name for plugin in again.plugins()] == [plugin.name for plugin in policy.plugins()]
