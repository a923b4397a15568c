"""Groups of one name in two namespaces have nothing to do with each other. A failure names the seed of its cluster."""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.group_references import GROUP, KAI_GROUP
from phalanx.explain.answer import answer
from phalanx.session.cycle import run_cycle
from phalanx.session.policy import Policy
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import crowded_clusters as crowds
from tests.support import kai_objects as kai
from tests.support import random_clusters as chance
from tests.support import random_kai_clusters as kai_chance

SEEDS = st.integers(0, 2**40)
NAMESPACES = ("blue", "red")


def crowd(random: Random) -> tuple[list[Document], Policy]:
    return crowds.crowd(random, crowds.Style(queues=2, waiting=3, shapes=2)), policy_of_profile("phalanx")


def mixture(random: Random) -> tuple[list[Document], Policy]:
    return chance.objects(random), policy_of_profile("phalanx")


def kai_cluster(random: Random) -> tuple[list[Document], Policy]:
    return kai_chance.objects(random), kai.policy(**kai_chance.config(random))


def kai_crowd(random: Random) -> tuple[list[Document], Policy]:
    """Return full nodes: jobs of a queue that has too much and of little importance, and others that may take from them."""
    places = [f"node-{number}" for number in range(random.randint(2, 4)) for _ in range(2)]
    found = [build.node(name, cpu=64, gpus=2) for name in sorted(set(places))]
    found += [kai.queue("a", parent="", quota=random.choice((0, 2))), kai.queue("b", parent="", quota=len(places))]
    found += [*map(kai.priority_class, kai.CLASSES)]
    for number in range(8):
        tasks = random.randint(1, 2)
        on, places = places[:tasks], places[tasks:]
        found += kai.gang(f"run-{number}", tasks=len(on), min_member=random.randint(1, tasks), on=on, gpus=1) if on else []
    for number in range(random.randint(1, 3)):
        rank: dict[str, Any] = {"queue": random.choice("ab"), "priorityClassName": "build-preemptible"}
        found += kai.gang(f"wait-{number}", tasks=random.randint(1, 3), gpus=1, **rank)
    return found, kai.policy()


CLUSTERS = pytest.mark.parametrize("draw", [crowd, mixture, kai_cluster, kai_crowd])


def in_two_namespaces(objects: list[Document], *, same_names: bool) -> list[Document]:
    """Put every other group into another namespace, where it has the name of its neighbour or one of its own."""
    names = [item["metadata"]["name"] for item in objects if item["kind"] == "PodGroup"]
    groups = {(item["kind"], item["metadata"]["name"]): group_of(item) for item in objects if item["kind"] == "Pod"}
    groups |= {("BindRequest", name): group for (_, name), group in groups.items()} | {("PodGroup", name): name for name in names}
    found = []
    for item in deepcopy(objects):
        old = groups.get((item["kind"], item["metadata"]["name"]))
        found.append(_moved(item, names.index(old), same_names) if old in names else item)
    return found


def group_of(item: Document) -> str:
    annotations = item["metadata"].get("annotations") or {}
    return str(annotations.get(GROUP) or annotations.get(KAI_GROUP) or "") if item["kind"] == "Pod" else ""


def _moved(item: Document, number: int, same_names: bool) -> Document:
    meta, space = item["metadata"], NAMESPACES[number % 2]
    name = f"job-{number // 2}" if same_names else f"job-{number // 2}-{space}"
    meta["namespace"] = space
    if item["kind"] == "PodGroup":
        meta["name"], meta["uid"] = name, f"group-{number}"
        return item
    if item["kind"] == "Pod":
        meta["annotations"] = {key: name if key in (GROUP, KAI_GROUP) else text for key, text in meta["annotations"].items()}
        meta["uid"] = f"{space}-{meta['name']}"
    meta["name"] = f"pod-{number // 2}-{meta['name'].rpartition('-')[2]}"
    if item["kind"] == "BindRequest":
        item["spec"]["podName"] = meta["name"]
    return item


def answer_to(objects: list[Document], policy: Policy) -> dict[str, Any]:
    cluster = ObjectCluster()
    for item in objects:
        assert cluster.put(item)
    snapshot = cluster.snapshot(kai_chance.NOW)
    return answer(snapshot, run_cycle(snapshot, policy, catalogue_of(policy.catalogue)))


def renamed(answer: dict[str, Any]) -> Any:
    """Give groups with names of their own the names that they share otherwise."""
    text = msgspec.json.encode(answer).decode()
    for space in NAMESPACES:
        for number in range(len(answer["groups"])):
            text = text.replace(f"job-{number}-{space}", f"job-{number}")
    return msgspec.json.decode(text)


@CLUSTERS
@settings(deadline=None, max_examples=80)
@given(SEEDS)
def test_a_shared_name_changes_no_decision_and_no_word(draw: Callable[[Random], tuple[list[Document], Policy]], seed: int) -> None:
    objects, policy = draw(Random(seed))
    shared = answer_to(in_two_namespaces(objects, same_names=True), policy)
    apart = answer_to(in_two_namespaces(objects, same_names=False), policy)
    assert msgspec.json.decode(msgspec.json.encode(shared)) == renamed(apart)


@CLUSTERS
@settings(deadline=None, max_examples=80)
@given(SEEDS)
def test_no_group_has_members_of_another_namespace(draw: Callable[[Random], tuple[list[Document], Policy]], seed: int) -> None:
    objects, policy = draw(Random(seed))
    placed = in_two_namespaces(objects, same_names=True)
    expected = {f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in placed if group_of(item)}
    tasks = {key: task["group"] for key, task in answer_to(placed, policy)["tasks"].items()}
    assert all(group.partition("/")[0] == key.partition("/")[0] for key, group in tasks.items())
    assert expected == set(tasks)
