"""Whatever comes in, a line is answered with a decision or a sentence, and the next line is answered as if nothing was."""

import string
from copy import deepcopy
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phalanx.cli.schedule_batch import answer_line
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import random_clusters as chance

SEEDS = st.integers(0, 2**40)
GOOD = msgspec.json.encode(
    {
        "id": "good", "config": {"actions": "enqueue, allocate", "tiers": [{"plugins": [{"name": "gang"}]}]},
        "objects": [build.node("node"), *build.gang("train", tasks=2, cpu=1)],
    }
)  # fmt: skip
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 7, 2**31, 2**63, 2**64, 10**30, -(10**30), 0.5, -0.0, 1e308, "", " ", "1", "-1", "x", "²", "٣",
    "1e9", "9" * 30, "9" * 5000, "1Ei", "-5Gi", "1..2", "a/b", "/", "root", "default", "0001-01-01", "2026-01-01T00:00:00Z", "nan",
    "inf", "(", "*", [], [None], [1], [[]], ["x"], {}, {"": None}, {"x": 1}, {"name": "x"}, [{}], [{"name": 1}], "\x00", "ä" * 300,
]  # fmt: skip
json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(string.printable, max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_letters, max_size=8), inner, max_size=3),
    max_leaves=12,
)


def holds(line: bytes) -> None:
    """Check the answer to one line, and that the next one is not harmed by it."""
    answer = answer_line(line)
    assert msgspec.json.encode(answer)
    error = answer["error"]
    assert error is None or (isinstance(error, str) and error.strip() and not error.startswith("internal error")), error
    after = answer_line(GOOD)
    assert after["error"] is None
    assert sorted(after["binds"]) == ["default/train-0", "default/train-1"]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to every value inside a document."""
    found = [path] if path else []
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += places(inner, (*path, key))
    return found


def change(random: Random, document: Any) -> None:
    """Replace, remove or double a random part."""
    *path, last = random.choice(places(document))
    parent = document
    for key in path:
        parent = parent[key]
    match random.randint(0, 3):
        case 0:
            del parent[last]
        case 1 if isinstance(parent, list):
            parent.append(deepcopy(parent[last]))
        case _:
            parent[last] = deepcopy(random.choice(ODD))


@settings(deadline=None, max_examples=400)
@given(SEEDS)
def test_a_damaged_request_gets_a_sentence(seed: int) -> None:
    random = Random(seed)
    request = {"id": seed, "now": "2026-01-01T00:00:00Z", "config": chance.config(random), "objects": chance.objects(random)}
    request = deepcopy(request)
    for _ in range(random.randint(1, 6)):
        change(random, request)
    holds(msgspec.json.encode(request))


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_a_damaged_line_gets_a_sentence(seed: int) -> None:
    random = Random(seed)
    line = bytearray(GOOD)
    for _ in range(random.randint(1, 4)):
        line[random.randrange(len(line))] = random.randrange(256)
    holds(bytes(line[: random.randint(0, len(line))]))


@settings(deadline=None, max_examples=200)
@given(json, json)
def test_any_config_and_objects_get_a_sentence(config: Any, objects: Any) -> None:
    holds(msgspec.json.encode({"id": 1, "config": config, "objects": objects}))


KINDS = [
    ("v1", "Pod"), ("v1", "Node"), ("v1", "Namespace"), ("v1", "Service"), ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"), ("scheduling.k8s.io/v1", "PriorityClass"), (build.VOLCANO, "PodGroup"),
    (build.VOLCANO, "Queue"), ("topology.volcano.sh/v1alpha1", "HyperNode"), ("shard.volcano.sh/v1alpha1", "NodeShard"),
    ("storage.k8s.io/v1", "StorageClass"), ("storage.k8s.io/v1", "CSINode"), ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "CSIStorageCapacity"), ("resource.k8s.io/v1", "ResourceClaim"), ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1", "ResourceSlice"),
]  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(KINDS), json, json, json)
@example(("v1", "Pod"), None, None, None)
def test_any_object_of_a_known_kind_gets_a_sentence(kind: tuple[str, str], meta: Any, spec: Any, status: Any) -> None:
    document = {"apiVersion": kind[0], "kind": kind[1], "metadata": meta, "spec": spec, "status": status}
    holds(msgspec.json.encode({"id": 1, "config": {}, "objects": [document]}))


def hierarchy(queue: str, path: str, weights: str) -> Document:
    document = build.queue(queue)
    document["metadata"]["annotations"] = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return document


def gang_in(queue: str) -> list[Document]:
    return build.gang(f"gang-in-{queue}", tasks=1, cpu=1, queue=queue)


DRF = {"name": "drf", "enableHierarchy": True}
TREE = {"name": "capacity", "enableHierarchy": True}


@pytest.mark.parametrize(
    ("plugin", "objects"),
    [
        pytest.param(DRF, [hierarchy("a", "root/x/a", "1/2"), hierarchy("b", "root/x/b", "1/2")], id="fewer weights than parts"),
        pytest.param(DRF, [hierarchy("a", "root/a", "1/²"), hierarchy("b", "", "")], id="weights that are no numbers"),
        pytest.param(TREE, [build.queue("a", parent="b"), build.queue("b", parent="a")], id="queues above each other"),
        pytest.param(TREE, [build.queue("a", parent="a"), build.queue("b")], id="a queue above itself"),
        pytest.param(TREE, [build.queue("a", parent="none"), build.queue("b")], id="a parent that does not exist"),
        pytest.param(
            {"name": "binpack", "arguments": {"binpack.weight": 10**30}}, [build.queue("a"), build.queue("b")], id="weight"
        ),
    ],
)
def test_odd_queues_and_settings_get_an_answer(plugin: Document, objects: list[Document]) -> None:
    tiers = [{"plugins": [{"name": "gang"}, {"name": "predicates"}, plugin]}]
    objects = [build.node("node"), *objects, *gang_in("a"), *gang_in("b"), build.pod("free", group="gang-in-a")]
    holds(msgspec.json.encode({"id": 1, "config": {"actions": build.ACTIONS, "tiers": tiers}, "objects": objects}))
