"""How long gangs run: from annotations, finished gangs, deadlines and assumptions, in this order."""

from statistics import median
from typing import Any

import pytest

from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import ConfigError
from phalanx.model.task import GangKey
from phalanx.sim.gang_history import FinishedGang, History, pattern_of, read_history, write_history
from phalanx.sim.known_durations import Basis, Durations, KnownDuration
from phalanx.sim.running_work import DURATION
from phalanx.sim.settings import FOREVER, Span
from phalanx.testing import build

Document = dict[str, Any]
NOW = 1_767_600_000.0  # 2026-01-05T08:00:00Z


def durations(*parts: Any, history: tuple[FinishedGang, ...] = (), assumed: Span | None = None) -> Durations:
    documents = [item for part in parts for item in ([part] if isinstance(part, dict) else part)]
    cluster = ObjectCluster()
    for document in documents:
        cluster.put(document)
    return Durations(documents, cluster.snapshot(NOW), history, assumed)


def gang(name: str, *, on: str = "", started: str = "", **more: Any) -> list[Document]:
    """Return a gang of one pod with this image and these annotations; it runs if it has a node."""
    pod = build.pod(f"{name}-0", group=name, on=on, gpus=1)
    group = build.pod_group(name)
    pod["spec"]["containers"][0]["image"] = more.pop("image", f"{name}:1")
    group["metadata"]["annotations"] = more.pop("annotations", {})
    if started:
        pod["status"]["startTime"] = started
    pod["spec"].update(more)
    return [group, pod]


def finished(name: str, started: str, ended: str, **more: Any) -> list[Document]:
    group, pod = gang(name, on="node-0", started=started, **more)
    ending = {"terminated": {"exitCode": 0, "startedAt": started, "finishedAt": ended}}
    pod["status"] |= {"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": ending}]}
    return [group, pod]


def owned(document: Document, kind: str, name: str, **more: Any) -> tuple[Document, Document]:
    """Return an object with a new owner, and the owner."""
    owner = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **more}
    document["metadata"]["ownerReferences"] = [
        {"apiVersion": "example.com/v1", "kind": kind, "name": name, "uid": name, "controller": True}
    ]
    return document, owner


def of(found: Durations, name: str) -> KnownDuration:
    return found.of(GangKey(f"default/{name}"))


# --- what counts ---------------------------------------------------------------------------------------------------------


def test_the_annotation_counts_before_everything_else() -> None:
    history = (FinishedGang("default/a", 50.0),)
    found = of(durations(gang("a", annotations={DURATION: "2h"}, activeDeadlineSeconds=9000), history=history), "a")
    assert (found.basis, found.median, found.deadline) == (Basis.ANNOTATION, 7200.0, 9000.0)


def test_an_annotation_may_be_a_range() -> None:
    found = of(durations(gang("a", annotations={DURATION: "1h..3h"})), "a")
    drawn = [found.at(part / 100) for part in range(101)]
    assert 3600 <= min(drawn) < 4000
    assert 10_400 < max(drawn) <= 10_800


def test_pods_with_different_annotations_end_by_their_own() -> None:
    group, first = gang("a")
    second = build.pod("a-1", group="a", gpus=1)
    first["metadata"]["annotations"][DURATION], second["metadata"]["annotations"][DURATION] = "1h", "2h"
    found = of(durations(group, first, second), "a")
    assert (found.basis, found.median) == (Basis.PODS, 7200.0)


def test_finished_gangs_of_the_same_name_are_known_from_the_cluster() -> None:
    parts = [finished(f"bert-{number}", "2026-01-05T01:00:00Z", f"2026-01-05T0{number + 1}:00:00Z") for number in (1, 2, 3)]
    found = of(durations(*parts, gang("bert-9-x2f9k")), "bert-9-x2f9k")
    assert (found.basis, found.median) == (Basis.HISTORY, 7200.0)
    assert found.source == "3 finished gangs of the name default/bert-*"


def test_gangs_that_failed_say_nothing() -> None:
    group, pod = finished("bert-1", "2026-01-05T01:00:00Z", "2026-01-05T01:00:10Z")
    pod["status"]["phase"] = "Failed"
    assert of(durations(group, pod, gang("bert-2")), "bert-2").basis is Basis.UNKNOWN


def test_a_completed_job_counts_when_its_pods_are_gone() -> None:
    status = {"startTime": "2026-01-05T01:00:00Z", "completionTime": "2026-01-05T01:30:00Z", "succeeded": 1}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "bert-28", "namespace": "default"}, "status": status}
    assert of(durations(job, gang("bert-29")), "bert-29").median == 1800.0


def test_the_owner_says_more_than_the_name_and_the_name_more_than_the_image() -> None:
    history = History([
        *(FinishedGang(f"ml/x-{number}", 10.0, owner="CronJob ml/nightly") for number in range(3)),
        *(FinishedGang(f"ml/bert-{number}", 20.0) for number in range(3)),
        *(FinishedGang(f"ml/y-{number}", 30.0, image="torch:1") for number in range(3)),
    ])  # fmt: skip
    assert history.like("ml/bert-7", "CronJob ml/nightly", "torch:1") == ("CronJob ml/nightly", [10.0] * 3)
    assert history.like("ml/bert-7", "CronJob ml/weekly", "torch:1") == ("the name ml/bert-*", [20.0] * 3)
    assert history.like("ml/gpt-7", "", "torch:1") == ("the image torch:1", [30.0] * 3)
    assert history.like("ml/gpt-7", "", "torch:2")[1] == []


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Job", {"activeDeadlineSeconds": 600}),
        ("PyTorchJob", {"runPolicy": {"activeDeadlineSeconds": 600}}),
        ("RayJob", {"activeDeadlineSeconds": 600}),
        ("JobSet", {"replicatedJobs": [{"name": "a", "template": {"spec": {"activeDeadlineSeconds": 600}}}]}),
    ],
)
def test_a_deadline_of_an_owner_is_only_the_latest_end(kind: str, spec: Document) -> None:
    group, pod = gang("a")
    pod, owner = owned(pod, kind, "a", spec=spec)
    found = of(durations(group, pod, owner), "a")
    drawn = [found.at(part / 100) for part in range(101)]
    assert found.basis is Basis.DEADLINE
    assert (min(drawn) < 30, 270 < median(drawn) < 330, 570 < max(drawn) <= 600) == (True, True, True)


def test_a_deadline_bounds_what_finished_gangs_took() -> None:
    history = tuple(FinishedGang(f"default/a-{number}", 1000.0) for number in range(5))
    found = of(durations(gang("a-7", activeDeadlineSeconds=900), history=history), "a-7")
    drawn = [found.at(part / 100) for part in range(101)]
    assert max(drawn) == found.median == 900.0


def test_an_assumption_is_made_only_where_nothing_is_known() -> None:
    found = durations(gang("a"), gang("b", annotations={DURATION: "1m"}), assumed=Span(3600.0, 3600.0))
    assert (of(found, "a").basis, of(found, "a").median) == (Basis.ASSUMED, 3600.0)
    assert of(found, "b").median == 60.0


def test_nothing_known_is_for_ever() -> None:
    found = of(durations(gang("a")), "a")
    assert (found.basis, found.at(0.5)) == (Basis.UNKNOWN, FOREVER)


# --- gangs that run already ----------------------------------------------------------------------------------------------


def test_a_gang_has_run_since_its_minimum_ran() -> None:
    group, first = gang("a", on="node-0", started="2026-01-05T06:00:00Z")
    late = build.pod("a-1", group="a", on="node-0", gpus=1)
    late["status"]["startTime"] = "2026-01-05T07:30:00Z"
    assert durations(build.node("node-0", gpus=8), group, first, late).done(GangKey("default/a")) == 7200.0


def test_what_is_left_is_drawn_from_durations_that_are_still_possible() -> None:
    found = KnownDuration(Basis.HISTORY, (0.0, 100.0, 200.0, 300.0, 400.0))
    drawn = [found.at(part / 100, done=250.0) for part in range(101)]
    assert min(drawn) >= 250.0
    assert 315.0 < median(drawn) < 335.0


def test_a_gang_that_is_overdue_ends_before_it_has_run_twice_as_long() -> None:
    drawn = [KnownDuration(Basis.ANNOTATION, (60.0, 60.0)).at(part / 100, done=100.0) for part in range(101)]
    assert 100.0 <= min(drawn) < 110.0
    assert 190.0 < max(drawn) <= 200.0


def test_a_gang_that_reaches_its_deadline_ends_now() -> None:
    assert KnownDuration(Basis.DEADLINE, (0.0, 60.0), 60.0).at(0.5, done=60.0) == 60.0


# --- names and files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("ml/bert", "ml/bert"),
        ("ml/bert-7", "ml/bert-*"),
        ("ml/bert-x2f9k", "ml/bert-*"),
        ("ml/nightly-28123456", "ml/nightly-*"),
        ("ml/nightly-28123456-mvkd2", "ml/nightly-*"),
        ("ml/train-3f2504e0-4f89-41d3-9a0c-0305e82c3301", "ml/train-*"),
        ("ml/pg-train-3f2504e0-4f89-41d3-9a0c-0305e82c3301", "ml/pg-train-*"),
        ("ml/exp12-large", "ml/exp-large-*"),
        ("ml/train-large", "ml/train-large"),
    ],
)
def test_digits_and_random_endings_of_names_do_not_count(name: str, pattern: str) -> None:
    assert pattern_of(name) == pattern


def test_a_history_file_is_read_as_it_was_written_each_gang_once() -> None:
    gangs = [FinishedGang("ml/a", 60.0, "Job ml/a", "torch:1", "2026-01-05T01:00:00Z"), FinishedGang("ml/b", 5.5)]
    text = write_history([*gangs, gangs[0]])
    assert text.splitlines()[0] == b'{"gang":"ml/b","seconds":5.5}'
    assert sorted(read_history(text, "h"), key=lambda gang: gang.gang) == gangs


@pytest.mark.parametrize("line", ["{", '{"gang": "a"}', '{"gang": "a", "seconds": "long"}', "[]"])
def test_a_wrong_line_of_a_history_is_named_with_what_to_write(line: str) -> None:
    with pytest.raises(ConfigError, match=r'h\.jsonl, line 2: .*; write one object per line, such as \{"gang"'):
        read_history(f'{{"gang": "a", "seconds": 1}}\n{line}\n'.encode(), "h.jsonl")
