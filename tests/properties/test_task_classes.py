"""Tasks of one class are placed as if each were a class of its own, whatever selectors read, in any order of events."""

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE
from phalanx.config.volcano import read_policy
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.task_classes import TaskClasses
from phalanx.explain.answer import answer
from phalanx.model.selectors import Labels
from phalanx.model.shape import Shape
from phalanx.session.cycle import run_cycle
from phalanx.testing.build import Document
from tests.support import random_clusters as chance
from tests.support.real_pods import INDEX, as_made_by_controllers

SEEDS = st.integers(0, 2**40)


class OneClassPerPod(TaskClasses):
    """Every pod is a class of its own, with all its labels."""

    def of_text(self, text: bytes, read: Any) -> Shape:
        shape: Shape = read()
        return shape

    def again(self, shape: Shape, labels: Labels) -> Shape:
        return shape


def decisions_on(objects: list[Document], config: Document) -> dict[str, Any]:
    """Return what is decided, without messages: which of several like tasks a sentence names may differ."""
    cluster = ObjectCluster()
    for item in objects:
        assert cluster.put(item)
    policy = read_policy(config, actions=list(CATALOGUE.actions), plugins=list(CATALOGUE.plugins))
    snapshot = cluster.snapshot(0.0)
    found = answer(snapshot, run_cycle(snapshot, policy, CATALOGUE))
    tasks = {key: {**task, "message": ""} for key, task in found["tasks"].items()}
    return {**found, "tasks": tasks, "groups": {key: group["phase"] for key, group in found["groups"].items()}}


def with_readers_of_labels(random: Random, objects: list[Document]) -> list[Document]:
    """Let some pods and a Service read labels that differ from pod to pod."""
    pods = [item for item in objects if item["kind"] == "Pod"]
    for pod in random.sample(pods, len(pods) // 4):
        reads = {"key": INDEX, "operator": random.choice(("In", "NotIn")), "values": _some(random)}
        where = random.choice(("zone", "kubernetes.io/hostname"))
        term = {"topologyKey": where, "labelSelector": {"matchExpressions": [reads]}}
        kind = random.choice(("podAffinity", "podAntiAffinity"))
        weighted = [{"weight": random.randint(1, 100), "podAffinityTerm": term}]
        rule = random.choice(("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"))
        pod["spec"]["affinity"] = {kind: {rule: [term] if rule.startswith("required") else weighted}}
    if random.random() < 0.3:
        selector = {INDEX: random.choice(_some(random))}
        meta = {"name": "web", "namespace": "default"}
        objects.append({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": selector}})
    return objects


def _some(random: Random) -> list[str]:
    return [str(random.randint(0, 30)) for _ in range(random.randint(1, 4))]


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SEEDS)
def test_the_answer_is_that_of_one_class_per_pod(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = Random(seed)
    objects, config = as_made_by_controllers(chance.objects(random)), chance.config(random)
    if random.random() < 0.5:
        objects = with_readers_of_labels(random, objects)
    found = decisions_on(objects, config)
    with monkeypatch.context() as patch:
        patch.setattr("phalanx.dialects.pods.TaskClasses", OneClassPerPod)
        assert decisions_on(objects, config) == found


@settings(deadline=None, max_examples=60)
@given(SEEDS)
def test_what_controllers_add_to_pods_changes_no_decision(seed: int) -> None:
    random = Random(seed)
    objects, config = chance.objects(random), chance.config(random)
    assert decisions_on(as_made_by_controllers(objects), config) == decisions_on(objects, config)


@settings(deadline=None, max_examples=60)
@given(SEEDS)
def test_the_order_of_events_does_not_matter(seed: int) -> None:
    random = Random(seed)
    objects, config = with_readers_of_labels(random, as_made_by_controllers(chance.objects(random))), chance.config(random)
    shuffled = random.sample(objects, len(objects))
    assert decisions_on(shuffled, config) == decisions_on(objects, config)
