"""Schedules make jobs."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from phalanx.controllers.cronjob import CronJobController, job_name
from phalanx.controllers.objects import PROBLEM
from phalanx.model.cron import Cron
from phalanx.model.kinds import VOLCANO_CRON_JOB, VOLCANO_JOB
from tests.support.controller_store import START, Stage

MINUTE, HOUR = 60.0, 3600.0


TASK = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [{"name": "main"}]}}}


def cron_job(schedule: str = "*/10 * * * *", **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"team": "x"}}, "spec": {"queue": "research", "tasks": [TASK]}}
    return {
        "apiVersion": VOLCANO_CRON_JOB.api_version, "kind": "CronJob", "metadata": {"namespace": "default", "name": "nightly"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }  # fmt: skip


def stage(document: dict[str, Any]) -> Stage:
    found = Stage(CronJobController())
    found.make(document)
    found.run(1)
    return found


def end(found: Stage, job: str, phase: str = "Completed") -> None:
    found.set_status(VOLCANO_JOB, job, {"state": {"phase": phase, "lastTransitionTime": "2026-01-01T00:12:00Z"}})
    found.run(found.time.now - found.start)


def at(minutes: int) -> str:
    """Return the name of the job that is due so many minutes after the start."""
    return job_name("nightly", START + minutes * MINUTE)


def status(found: Stage) -> dict[str, Any]:
    return dict(found.find(VOLCANO_CRON_JOB, "nightly").get("status") or {})


def test_a_job_is_made_at_every_moment_of_the_schedule() -> None:
    found = stage(cron_job())
    assert found.names(VOLCANO_JOB) == []
    found.run(25 * MINUTE)
    assert found.names(VOLCANO_JOB) == [at(10), at(20)]
    job = found.find(VOLCANO_JOB, at(10))
    assert job["metadata"]["creationTimestamp"] == "2026-01-01T00:10:00Z"
    assert job["metadata"]["annotations"] == {"volcano.sh/cronjob-scheduled-timestamp": "2026-01-01T00:10:00Z"}
    defaults = {"minAvailable": 2, "maxRetry": 3, "schedulerName": "volcano"}
    assert job["metadata"]["labels"] == {"team": "x"}
    assert job["spec"] == {"queue": "research", "tasks": [{**TASK, "minAvailable": 2}], **defaults}
    assert status(found)["lastScheduleTime"] == "2026-01-01T00:20:00Z"
    assert [reference["name"] for reference in status(found)["active"]] == [at(10), at(20)]
    assert found.unsettled() == []
    found.store.delete(VOLCANO_CRON_JOB, "default", "nightly")
    assert found.names(VOLCANO_JOB) == []


def test_forbid_waits_for_the_job_before_and_then_makes_up_for_the_latest_moment() -> None:
    found = stage(cron_job(concurrencyPolicy="Forbid"))
    found.run(35 * MINUTE)
    assert found.names(VOLCANO_JOB) == [at(10)]
    end(found, at(10))
    assert found.names(VOLCANO_JOB) == [at(10), at(30)]
    assert status(found)["lastSuccessfulTime"] == "2026-01-01T00:12:00Z"


def test_replace_ends_the_job_before() -> None:
    found = stage(cron_job(concurrencyPolicy="Replace"))
    found.run(25 * MINUTE)
    assert found.names(VOLCANO_JOB) == [at(20)]
    assert found.unsettled() == []


def test_a_job_that_was_made_before_a_crash_is_not_replaced_by_itself() -> None:
    found = stage(cron_job(concurrencyPolicy="Replace"))
    found.run(15 * MINUTE)
    uid = found.find(VOLCANO_JOB, at(10))["metadata"]["uid"]
    found.set_status(VOLCANO_CRON_JOB, "nightly", {"lastScheduleTime": None})
    found.run(16 * MINUTE)
    assert found.find(VOLCANO_JOB, at(10))["metadata"]["uid"] == uid
    assert status(found)["lastScheduleTime"] == "2026-01-01T00:10:00Z"


def test_what_is_too_late_is_left_out() -> None:
    found = stage(cron_job(concurrencyPolicy="Forbid", startingDeadlineSeconds=60))
    found.run(35 * MINUTE)
    end(found, at(10))
    assert found.names(VOLCANO_JOB) == [at(10)]
    found.run(41 * MINUTE)
    assert found.names(VOLCANO_JOB) == [at(10), at(40)]


def test_a_suspended_schedule_makes_nothing_and_goes_on_later() -> None:
    found = stage(cron_job(suspend=True))
    found.run(25 * MINUTE)
    assert (found.names(VOLCANO_JOB), found.time.next_time()) == ([], None)
    found.store.patch(VOLCANO_CRON_JOB, "default", "nightly", {"spec": {"suspend": False}})
    found.run(31 * MINUTE)
    assert found.names(VOLCANO_JOB) == [at(20), at(30)]


@pytest.mark.parametrize(("limits", "left"), [({}, [40, 50, 60]), ({"successfulJobsHistoryLimit": 1}, [60])])
def test_old_jobs_are_removed(limits: dict[str, Any], left: list[int]) -> None:
    found = stage(cron_job(**limits))
    for minutes in range(10, 70, 10):
        found.run(minutes * MINUTE)
        end(found, at(minutes))
    assert found.names(VOLCANO_JOB) == [at(minutes) for minutes in left]
    assert found.unsettled() == []


def test_failed_jobs_are_counted_by_themselves() -> None:
    found = stage(cron_job(successfulJobsHistoryLimit=0))
    for minutes, phase in ((10, "Failed"), (20, "Aborted"), (30, "Completed")):
        found.run(minutes * MINUTE)
        end(found, at(minutes), phase)
    assert found.names(VOLCANO_JOB) == [at(20)]


def test_a_time_zone_moves_the_moments() -> None:
    found = stage(cron_job("0 7 * * *", timeZone="Asia/Tokyo"))
    found.run(23 * HOUR)
    job = found.find(VOLCANO_JOB, job_name("nightly", START + 22 * HOUR))
    assert job["metadata"]["annotations"]["volcano.sh/cronjob-scheduled-timestamp"] == "2026-01-02T07:00:00+09:00"


WRONG = [
    ({"schedule": "often"}, "spec.schedule: 'often' is not a schedule; write five fields"),
    ({"schedule": "TZ=UTC 0 * * * *"}, "names a time zone; write it in spec.timeZone"),
    ({"timeZone": "Mars/Olympus"}, "spec.timeZone: 'Mars/Olympus' is unknown; write for example"),
    ({"timeZone": "../etc"}, "spec.timeZone: '../etc' is unknown"),
    ({"concurrencyPolicy": "Maybe"}, "spec.concurrencyPolicy: 'Maybe' is unknown; write Allow, Forbid, Replace"),
    ({"suspend": "no"}, "CronJob default/nightly: spec.suspend: expected `bool | null`, got `str`"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "text"), WRONG)
def test_a_wrong_schedule_is_said_on_it_once_until_it_is_right(spec: dict[str, Any], text: str) -> None:
    found = stage(cron_job(**spec))
    assert text in found.find(VOLCANO_CRON_JOB, "nightly")["metadata"]["annotations"][PROBLEM]
    assert ([event.reason for event in found.told], found.problems, found.unsettled()) == (["Invalid"], [], [])
    right = {"schedule": "@hourly", "timeZone": None, "concurrencyPolicy": None, "suspend": False}
    found.store.patch(VOLCANO_CRON_JOB, "default", "nightly", {"spec": right})
    found.run(HOUR)
    assert PROBLEM not in found.find(VOLCANO_CRON_JOB, "nightly")["metadata"]["annotations"]
    assert found.names(VOLCANO_JOB) == [at(60)]


def test_a_template_that_is_refused_is_tried_again_until_it_is_right() -> None:
    found = stage(cron_job(jobTemplate={"spec": {"tasks": []}}))
    found.run(11 * MINUTE)
    assert (found.names(VOLCANO_JOB), status(found)) == ([], {})
    assert "spec.tasks in body should have at least 1 items" in found.problems[0]
    found.store.patch(VOLCANO_CRON_JOB, "default", "nightly", {"spec": {"jobTemplate": {"spec": {"tasks": [TASK]}}}})
    found.run(12 * MINUTE)
    assert (found.names(VOLCANO_JOB), found.unsettled()) == ([at(10)], [])


def test_a_name_must_leave_room_for_those_of_jobs() -> None:
    document = cron_job()
    document["metadata"]["name"] = "n" * 53
    found = stage(document)
    assert "write at most 52 characters" in found.find(VOLCANO_CRON_JOB, "n" * 53)["metadata"]["annotations"][PROBLEM]


# --- moments -------------------------------------------------------------------------------------------------------------


def stamp(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> float:
    return datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()


BERLIN = ZoneInfo("Europe/Berlin")


def test_an_hour_that_clocks_skip_has_no_moments() -> None:
    cron, before = Cron("30 2 * * *"), stamp(2026, 3, 28, 12)
    assert cron.next(before, BERLIN) == stamp(2026, 3, 30, 0, 30)
    assert cron.last(stamp(2026, 3, 29, 12), BERLIN) == stamp(2026, 3, 28, 1, 30)


def test_an_hour_that_clocks_show_twice_has_them_twice() -> None:
    cron = Cron("30 2 * * *")
    assert cron.next(stamp(2026, 10, 24, 12), BERLIN) == stamp(2026, 10, 25, 0, 30)
    assert cron.next(stamp(2026, 10, 25, 0, 30), BERLIN) == stamp(2026, 10, 25, 1, 30)
    assert cron.last(stamp(2026, 10, 25, 1), BERLIN) == stamp(2026, 10, 25, 0, 30)


def test_the_next_moment_is_after_now_and_may_never_come() -> None:
    assert Cron("0 * * * *").next(START) == START + HOUR
    assert Cron("0 0 29 2 *").next(START) == stamp(2028, 2, 29)
    assert Cron("0 0 31 2 *").next(START) is None


@pytest.mark.parametrize(
    ("word", "moment"), [("@hourly", START + HOUR), ("@daily", START + 24 * HOUR), ("@weekly", START + 72 * HOUR)]
)
def test_words_stand_for_schedules(word: str, moment: float) -> None:
    assert Cron(word).next(START) == moment
