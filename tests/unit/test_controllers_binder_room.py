"""Somebody else takes the room of a node while what a gang needs there is prepared."""

from phalanx.model.kinds import Document
from tests.support import kai_objects as kai
from tests.support.binder_cluster import BindStage
from tests.support.volume_objects import storage_class, volume_claim, with_volume

HERE, THERE = "node-0", "node-1"


def waiting(*, least: int, gpus: int = 2) -> BindStage:
    """Return a gang of two that waits for a volume claim; each of its pods takes some of the four GPUs of its node."""
    stage = BindStage()
    stage.make(storage_class("late"))
    group, first, second = kai.gang("train", tasks=2, min_member=least, gpus=gpus)
    stage.ask([group, with_volume(first, "data"), second], on=[HERE, THERE])
    stage.run(10)
    assert stage.places() == {}
    return stage


def go_on(stage: BindStage) -> None:
    """Let the claim be made at last."""
    stage.make(volume_claim("data", "late"))
    stage.run(30)


def come(stage: BindStage, *pods: Document, on: str) -> None:
    """Let pods of others be bound."""
    for pod in pods:
        stage.make(pod)
        stage.store.bind("default", pod["metadata"]["name"], on)


def test_a_gang_whose_node_was_taken_meanwhile_is_not_bound_at_all() -> None:
    stage = waiting(least=2)
    come(stage, kai.pod("other", "", gpus=3), on=THERE)
    go_on(stage)
    assert stage.places() == {"other": THERE}
    assert stage.phases() == {"train-0": "Failed", "train-1": "Failed"}
    assert stage.reasons()["train-1"] == "node node-1 would hold 5 of 4 nvidia.com/gpu"
    assert stage.reasons()["train-0"] == "rolled back: pod train-1: node node-1 would hold 5 of 4 nvidia.com/gpu"


def test_a_gang_that_can_do_without_the_pod_starts_without_it() -> None:
    stage = waiting(least=1)
    come(stage, kai.pod("other", "", gpus=3), on=THERE)
    go_on(stage)
    assert stage.places() == {"other": THERE, "train-0": HERE}
    assert stage.phases() == {"train-0": "Succeeded", "train-1": "Failed"}


def test_whoever_comes_to_a_node_and_leaves_enough_room_is_no_matter() -> None:
    stage = waiting(least=2)
    come(stage, kai.pod("other", "", gpus=2), on=THERE)
    go_on(stage)
    assert stage.places() == {"other": THERE, "train-0": HERE, "train-1": THERE}


def test_pods_that_ask_for_nothing_that_is_short_are_bound() -> None:
    stage = waiting(least=2, gpus=0)
    come(stage, kai.pod("other", "", gpus=5), on=THERE)
    go_on(stage)
    assert stage.places() == {"other": THERE, "train-0": HERE, "train-1": THERE}


def test_requests_that_were_made_just_now_are_met_as_a_session_would() -> None:
    stage = BindStage()
    stage.ask(kai.gang("train", tasks=2, gpus=2), on=[HERE, THERE])
    come(stage, kai.pod("other", "", gpus=3), on=THERE)
    stage.run(1)
    assert stage.places() == {"other": THERE, "train-0": HERE, "train-1": THERE}
