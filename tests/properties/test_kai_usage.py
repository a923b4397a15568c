"""Laws of usage over time and of jobs that are alike, in the profile kai."""

from copy import deepcopy
from random import Random

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import KAI_CATALOGUE
from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.answer import answer
from phalanx.kai.amounts import Figures
from phalanx.kai.shares import QueueShare, add_pending, build_tree, divide_fairly
from phalanx.kai.usage_window import UsageWindow, integral, usage_by_queue
from phalanx.model.queue_usage import QueueHistory, Series
from phalanx.session.cycle import run_cycle
from phalanx.testing.build import Document
from tests.support import kai_objects as kai
from tests.support import random_kai_clusters as kai_chance

SEEDS = st.integers(0, 2**40)
NOW = kai_chance.NOW
CLOSE = 1e-6
ONE_UNIT = 1.0
"""What is over is handed out in whole units; which queue gets the last one depends on fractions."""


def queues_of(random: Random) -> list[QueueShare]:
    found = []
    for number in range(random.randint(2, 5)):
        quota, weight, wants = random.choice((0.0, 1.0, 2.0)), random.choice((0.0, 1.0, 3.0)), float(random.randint(0, 12))
        share = QueueShare(
            f"q{number}", created=float(number), priority=random.choice((100, 100, 200)), deserved=(0.0, 0.0, quota),
            weight=(1.0, 1.0, weight), usage=(0.0, 0.0, random.choice((0.0, 0.1, 0.5, 1.0))),
        )  # fmt: skip
        add_pending(share, (0.0, 0.0, wants))
        found.append(share)
    return found


def divided(queues: list[QueueShare], k_value: float, usage: dict[str, Figures] | None = None) -> dict[str, float]:
    own = deepcopy(queues)
    for queue in own:
        queue.usage = (usage or {}).get(queue.name, queue.usage)
    tree = build_tree(own)
    divide_fairly(tree.roots, (0.0, 0.0, 12.0), k_value=k_value)
    return {name: queue.fair_share[2] for name, queue in tree.by_name.items()}


@settings(deadline=None, max_examples=500)
@given(SEEDS)
def test_more_usage_never_gives_a_larger_share(seed: int) -> None:
    random = Random(seed)
    queues, k_value = queues_of(random), random.choice((0.5, 1.0, 4.0))
    chosen = random.choice(queues)
    more = {chosen.name: (0.0, 0.0, chosen.usage[2] + random.random())}
    before, after = divided(queues, k_value), divided(queues, k_value, more)
    assert after[chosen.name] <= before[chosen.name] + ONE_UNIT + CLOSE
    assert after[chosen.name] >= min(chosen.deserved[2], chosen.request[2])


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_without_usage_its_weight_does_not_matter(seed: int) -> None:
    random = Random(seed)
    queues = queues_of(random)
    nothing: dict[str, Figures] = {queue.name: (0.0, 0.0, 0.0) for queue in queues}
    assert divided(queues, random.uniform(0.0, 8.0), nothing) == divided(queues, 0.0, nothing)


def series_of(random: Random) -> Series:
    moments = sorted(NOW - random.uniform(0.0, 20_000.0) for _ in range(random.randint(1, 8)))
    return tuple((moment, float(random.randint(0, 8))) for moment in moments)


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_a_queue_that_never_had_more_than_the_cluster_used_no_more_than_all_of_it(seed: int) -> None:
    random = Random(seed)
    window = UsageWindow(size_seconds=random.uniform(60, 10_000), half_life_seconds=random.choice((0.0, 600.0)), stale_seconds=1e6)
    used = series_of(random)
    history = QueueHistory({"a": {"gpu": (used,)}}, {"gpu": (tuple((moment, 8.0) for moment, _ in used),)})
    usage = usage_by_queue(history, window, NOW, {})["a"]["gpu"]
    assert -CLOSE <= usage <= 1 + CLOSE


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_usage_is_the_sum_of_its_parts(seed: int) -> None:
    random = Random(seed)
    window = UsageWindow(size_seconds=1e6, half_life_seconds=random.choice((0.0, 600.0)), stale_seconds=1e6)
    whole = series_of(random)
    cut = NOW - random.uniform(0.0, 20_000.0)
    before = [sample for sample in whole if sample[0] < cut]
    after = [sample for sample in whole if sample[0] >= cut]
    held = before[-1][1] if before else 0.0
    parts = ((*before, (cut, 0.0)), ((cut, held), *after))
    assert abs(sum(integral(part, window, NOW) for part in parts) - integral(whole, window, NOW)) < 1e-3


# --- jobs that are alike -------------------------------------------------------------------------------------------------


def with_twins(random: Random, objects: list[Document]) -> list[Document]:
    """Add copies of whole jobs, so that many are alike; nodes have refused some of the copies."""
    found, nodes = list(objects), [document["metadata"]["name"] for document in objects if document["kind"] == "Node"]
    for group in [document for document in objects if document["kind"] == "PodGroup"]:
        name = group["metadata"]["name"]
        pods = [document for document in objects if group_of(document) == name]
        if all("nodeName" not in pod["spec"] for pod in pods):
            for number in range(random.randint(0, 3)):
                twins = [twin(document, name, number) for document in (group, *pods)]
                if random.random() < 0.2:
                    kai_chance.refuse(random, twins[-1], nodes)
                found += twins
    return found


def group_of(document: Document) -> str:
    return str(document["metadata"]["annotations"].get(kai.GROUP, "")) if document["kind"] == "Pod" else ""


def twin(document: Document, group: str, number: int) -> Document:
    copy = deepcopy(document)
    meta = copy["metadata"]
    meta["name"] = meta["uid"] = f"{meta['name']}-twin{number}"
    if copy["kind"] == "Pod":
        meta["annotations"][kai.GROUP] = f"{group}-twin{number}"
    return copy


@settings(deadline=None, max_examples=300)
@given(SEEDS)
@example(308)  # one of two twins avoids a node
@example(1813)  # one of two twins stands behind the other in a simulation
def test_sparing_jobs_that_are_alike_changes_nothing(seed: int) -> None:
    random = Random(seed)
    objects, config = with_twins(random, kai_chance.objects(random)), kai_chance.config(random)
    cluster = ObjectCluster()
    for item in objects:
        cluster.put(item)
    snapshot = cluster.snapshot(NOW)
    answers = []
    for is_on in (True, False):
        policy = kai.policy(**{**config, "options": {**config["options"], "schedulingSignatures": is_on}})
        answers.append(msgspec.json.encode(answer(snapshot, run_cycle(snapshot, policy, KAI_CATALOGUE))))
    assert answers[0] == answers[1]
