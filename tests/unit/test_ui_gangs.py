"""All gangs as columns, and one gang with its pods, its life and its places."""

from phalanx.model.task import LONGEST_NAME
from phalanx.testing import build
from phalanx.ui.scope import EVERYTHING, Scope
from phalanx.ui.views import Json
from phalanx.ui.views.gang import gang
from phalanx.ui.views.gangs import gangs
from tests.support import ui_clusters
from tests.support.ui_clusters import NOW, RACK, ZONE
from tests.support.ui_pages import seen

RESEARCH = Scope(frozenset({"research"}), frozenset({"research"}), sees_nodes=False, sees_queues=False)


def rows(found: Json) -> dict[str, Json]:
    columns, texts = found["columns"], found["texts"]
    shared = ("queue", "status", "code", "why", "reserved")
    plain = [{name: texts[values[place]] if name in shared else values[place] for name, values in columns.items()}
             for place in range(len(columns["gang"]))]  # fmt: skip
    return {row["gang"]: row for row in plain}


def test_a_row_says_how_a_gang_stands() -> None:
    found = rows(gangs(seen(ui_clusters.lively()), EVERYTHING))
    mixtral = found["research/mixtral"]
    assert (mixtral["status"], mixtral["minimum"], mixtral["placed"], mixtral["pods"], mixtral["asked"]) == (
        "Waits",
        24,
        0,
        24,
        192,
    )
    assert mixtral["why"].startswith("13 of 24 tasks fit")
    assert (found["research/bert"]["status"], found["research/bert"]["held"]) == ("Runs", 64)


def test_texts_that_gangs_share_are_sent_once() -> None:
    found = gangs(seen(ui_clusters.lively()), EVERYTHING)
    assert len(found["texts"]) == len(set(found["texts"]))


def test_a_reader_of_one_namespace_gets_its_gangs_alone() -> None:
    found = rows(gangs(seen(ui_clusters.lively()), RESEARCH))
    assert {key.partition("/")[0] for key in found} == {"research"}
    assert gang(seen(ui_clusters.lively()), RESEARCH, "batch/llama") is None


def test_a_gang_that_pods_name_and_nobody_describes_is_shown() -> None:
    pods = [
        build.pod(f"lost-{number}", group="lost", spec={"containers": [{"name": "main"}], "schedulerName": "ours"})
        for number in range(2)
    ]
    found = rows(gangs(seen(pods, schedulers=frozenset({"ours"})), EVERYTHING))
    assert found["default/lost"]["status"] == "Waits"
    assert "lost" in found["default/lost"]["why"]


def test_the_life_of_a_gang_is_told_in_moments() -> None:
    found = gang(seen(ui_clusters.lively()), EVERYTHING, "research/bert")
    assert found is not None
    kinds = [(moment["kind"], NOW - moment["time"]) for moment in found["moments"]]
    assert kinds == [("created", 7320), ("pods", 7315), ("condition", 7200), ("bound", 7200), ("running", 7195)]
    assert found["moments"][3]["text"] == "8 pods bound"


def test_pods_that_come_over_a_long_time_are_told_together() -> None:
    group, *pods = build.gang("slow", tasks=500, gpus=1)
    for number, pod in enumerate(pods):
        pod["metadata"]["creationTimestamp"] = ui_clusters.at(5000 - 10 * number)
    found = gang(seen(group, pods), EVERYTHING, "default/slow")
    assert found is not None
    moments = [moment for moment in found["moments"] if moment["kind"] == "pods"]
    assert len(moments) <= 13
    assert sum(int(moment["text"].split()[0]) for moment in moments) == 500


def test_evicted_pods_are_part_of_the_life() -> None:
    group, *pods = build.gang("train", tasks=2, gpus=1)
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    pods[0]["metadata"]["deletionTimestamp"] = ui_clusters.at(30)
    pods[0]["spec"]["nodeName"] = "node-00000"
    pods[0]["status"] = {"phase": "Running", "conditions": [disrupted]}
    found = gang(seen(ui_clusters.nodes(1, racks=1, zones=1), group, pods), EVERYTHING, "default/train")
    assert found is not None
    assert ("evicted", "1 pod evicted") in [(moment["kind"], moment["text"]) for moment in found["moments"]]


def test_the_places_of_a_gang_are_told_level_by_level() -> None:
    found = gang(seen(ui_clusters.lively()), EVERYTHING, "batch/tokenize")
    assert found is not None
    levels = {level["level"]: level["domains"] for level in found["places"]}
    assert levels[ZONE] == [{"name": "zone-1", "pods": 6}]
    assert levels[RACK] == [{"name": "rack-003", "pods": 6}]
    assert len(levels["node"]) == 6


def test_who_may_not_list_nodes_sees_the_nodes_of_pods_and_nothing_of_their_labels() -> None:
    found = gang(seen(ui_clusters.lively()), RESEARCH, "research/bert")
    assert found is not None
    assert [level["level"] for level in found["places"]] == ["node"]


def test_a_gang_without_a_node_has_no_place() -> None:
    found = gang(seen(ui_clusters.lively()), EVERYTHING, "research/mixtral")
    assert found is not None
    assert found["places"] == []


def test_five_thousand_members_are_columns() -> None:
    found = gang(seen(build.gang("vast", tasks=5000, gpus=1)), EVERYTHING, "default/vast")
    assert found is not None
    assert len(found["members"]["columns"]["pod"]) == 5000
    assert len(found["members"]["texts"]) < 10


def test_the_longest_name_is_kept_whole() -> None:
    name = "g" * LONGEST_NAME
    found = gang(seen(build.gang(name, tasks=1)), EVERYTHING, f"default/{name}")
    assert found is not None
    assert found["name"] == name


def test_a_gang_that_is_not_there_is_none() -> None:
    assert gang(seen(), EVERYTHING, "default/nobody") is None
