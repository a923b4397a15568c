"""`phalanx pending`: who waits in which order, by which rule, and what is shown of it."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import kai_objects as kai

NOW = "2026-01-01T12:00:00Z"
CLASSES = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("urgent", 100), ("usual", 10))
]


def run(*objects: Any, more: tuple[str, ...] = ()) -> Result:
    documents = [document for part in objects for document in ([part] if isinstance(part, dict) else part)]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    return CliRunner().invoke(main, ["pending", "-f", "-", "--now", NOW, *more], input=given, prog_name="phalanx")


def gang(name: str, minute: int, *, urgency: str = "usual", tasks: int = 1, **more: Any) -> list[Document]:
    group, *pods = build.gang(name, tasks=tasks, gpus=1, **more)
    group["metadata"]["creationTimestamp"] = f"2026-01-01T11:{minute:02}:00Z"
    group["spec"]["priorityClassName"] = urgency
    for pod in pods:
        pod["spec"]["priorityClassName"] = urgency
    return [group, *pods]


LINE = [*gang("late", 30), *gang("urgent", 40, urgency="urgent"), *gang("early", 10)]
CROWD: list[Document] = [build.node("n", gpus=1), build.queue("default"), *CLASSES, *LINE]


def gangs(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)["gangs"]
    return found


@pytest.mark.parametrize("profile", ["phalanx", "volcano", "coscheduling"])
def test_gangs_stand_in_the_order_of_the_session_with_the_rule_of_its_plugins(profile: str) -> None:
    found = gangs(run(CROWD, more=("--profile", profile, "-o", "json")))
    assert [(item["position"], item["gang"], item["status"]) for item in found] == [
        (1, "default/urgent", "Starts"), (2, "default/early", "Waits"), (3, "default/late", "Waits"),
    ]  # fmt: skip
    assert [item["behind"] for item in found] == ["", "default/urgent", "default/early"]
    plugin = "coscheduling" if profile == "coscheduling" else "priority"
    assert found[1]["rule"] == f"priority 10 < 100 ({plugin})"
    assert "earlier (2026-01-01T11:10:00Z < 2026-01-01T11:30:00Z)" in found[2]["rule"]


@pytest.mark.parametrize("profile", ["phalanx", "volcano"])
def test_the_positions_are_the_order_in_which_the_session_tries_gangs(profile: str) -> None:
    many = [*LINE, *gang("big", 5, tasks=2), *gang("second", 10, urgency="urgent")]
    objects = [build.node("n", gpus=1), build.queue("default"), *CLASSES, *many]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    options = ["schedule", "-f", "-", "--now", NOW, "--profile", profile, "-v", "3", "-o", "json"]
    trace = json.loads(CliRunner().invoke(main, options, input=given).stdout)["trace"]
    tried = [step["gang"] for step in trace if step["event"] == "gang"]
    found = gangs(run(objects, more=("--profile", profile, "-o", "json")))
    assert len(tried) == 5
    assert [item["gang"] for item in found] == list(dict.fromkeys(tried))


def test_the_profile_kai_has_a_line_as_well() -> None:
    queues = [kai.queue("top", parent=""), kai.queue("q", parent="top", quota=4)]
    jobs = [*kai.gang("b", tasks=2, queue="q", gpus=1), *kai.gang("a", tasks=2, queue="q", gpus=1)]
    for group, second in ((jobs[0], 59), (jobs[3], 30)):
        group["metadata"]["creationTimestamp"] = f"2026-01-01T11:00:{second}Z"
    found = gangs(run(build.node("n", gpus=1), queues, kai.priority_class("train"), jobs, more=("--profile", "kai", "-o", "json")))
    assert [(item["queue"], item["position"], item["gang"]) for item in found] == [("q", 1, "default/a"), ("q", 2, "default/b")]


def test_who_is_not_admitted_stands_behind_all_who_are() -> None:
    group = build.pod_group("unadmitted", minResources={"nvidia.com/gpu": 100}, priorityClassName="urgent")
    group["metadata"]["creationTimestamp"] = "2026-01-01T10:00:00Z"
    found = gangs(run(CROWD, group, more=("--profile", "volcano", "-o", "json")))
    assert [item["gang"] for item in found][-2:] == ["default/late", "default/unadmitted"]
    assert (found[-1]["position"], found[-1]["rule"]) == (4, "it is admitted, and this gang is not yet (enqueue)")


def test_a_gang_that_no_action_takes_has_no_position() -> None:
    result = run(CROWD, build.pod_group("short", min_member=2), build.pod("short-0", group="short", gpus=1))
    assert result.exit_code == 0
    assert [line.split()[:4] for line in result.stdout.splitlines()] == [
        ["QUEUE", "POSITION", "GANG", "STATUS"],
        ["default", "1", "default/urgent", "Starts"],
        ["default", "2", "default/early", "Waits"],
        ["default", "3", "default/late", "Waits"],
        ["default", "-", "default/short", "Waits"],
    ]
    assert [line.split()[4] for line in result.stdout.splitlines()] == ["AGE", "20m", "50m", "30m", "<unknown>"]


def test_only_the_queue_and_the_namespace_that_were_asked_for_are_shown_with_their_positions() -> None:
    other = gang("other", 1, queue="other")
    elsewhere = gang("away", 0)
    for document in elsewhere:
        document["metadata"]["namespace"] = "away"
    objects = [*CROWD, build.queue("other"), *other, *elsewhere]
    one = gangs(run(objects, more=("-q", "other", "-o", "json")))
    assert [(item["position"], item["gang"]) for item in one] == [(1, "default/other")]
    here = gangs(run(objects, more=("-n", "default", "-q", "default", "-o", "json")))
    assert [(item["position"], item["gang"]) for item in here] == [(1, "default/urgent"), (3, "default/early"), (4, "default/late")]


@pytest.mark.parametrize("more", [("-A",), ("-n", "nowhere", "--all-namespaces")])
def test_all_namespaces_may_be_asked_for_as_everywhere_else(more: tuple[str, ...]) -> None:
    assert len(gangs(run(CROWD, more=(*more, "-o", "json")))) == 3


def test_wide_says_why() -> None:
    lines = run(CROWD, more=("-o", "wide")).stdout.splitlines()
    assert lines[0].endswith("WHY")
    assert "0 of 1 tasks fit" in lines[-1]


def test_an_unknown_queue_is_told() -> None:
    result = run(CROWD, more=("-q", "defa"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("error: there is no queue 'defa'; did you mean 'default'?\n")


def test_nobody_waits() -> None:
    result = run(build.node("n", gpus=1), build.queue("default"))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no gang waits\n")
