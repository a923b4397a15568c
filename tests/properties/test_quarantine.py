"""What broken objects are told depends on what there is, not on what there was: it is what a fresh reading of everything says."""

import re
from contextlib import suppress
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from phalanx.controllers.quarantine import QuarantineController
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.group_references import COSCHEDULING_GROUP, GROUP, KUEUE_GROUP
from phalanx.dialects.kueue import TOTAL_COUNT
from phalanx.errors import Missing, SnapshotError
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, kind_of
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import coscheduling_gangs as sigs
from tests.support.controller_store import Stage


def some_group(random: Random) -> Document:
    """Return one of a few groups, now and then a broken one."""
    minimum, name = random.choice([1, 2, -1]), random.choice(["one", "two"])
    if random.random() < 0.4:
        return build.pod_group(name, min_member=minimum)
    return sigs.pod_group(random.choice([sigs.COSCHEDULING, sigs.KOORDINATOR]), name, {"minMember": minimum})


def some_pod(random: Random) -> Document:
    """Return one of a few pods, with the marks of one dialect or of several, and now and then with nonsense on it."""
    name, gang = f"pod-{random.randrange(4)}", random.choice(["one", "two"])
    if random.random() < 0.3:
        pod = sigs.describing_pod(name, gang, min_available=random.choice(["1", "none"]))
    else:
        pod = build.pod(name, cpu=random.choice(["1", "1", "1", "plenty"]))
    if random.random() < 0.5:
        pod["metadata"]["annotations"][GROUP] = gang
    if random.random() < 0.5:
        pod["metadata"]["labels"][COSCHEDULING_GROUP] = random.choice(["one", "two"])
    if random.random() < 0.3:
        pod["metadata"]["labels"][KUEUE_GROUP] = gang
        pod["metadata"]["annotations"][TOTAL_COUNT] = random.choice(["2", "3", "many"])
    return pod


def said(stage: Stage) -> dict[str, str]:
    """Return what every object says of itself."""
    found = {}
    for document in stage.store.everything():
        meta, status = document["metadata"], document.get("status") or {}
        texts = [meta.get("annotations", {}).get("phalanx.dev/problem", "")] if document["kind"] == "PodGroup" else []
        told = ("Refused", "Invalid"), ("PodScheduled", "Misconfigured")
        texts += [item["message"] for item in status.get("conditions") or () if (item["type"], item.get("reason")) in told]
        if any(texts):
            found[f"{document['apiVersion']} {meta['name']}"] = next(filter(None, texts))
    return found


def truth(stage: Stage) -> dict[str, str]:
    """Return what is wrong with every object beside all others."""
    cluster, found = ObjectCluster(), {}
    documents = [item for kind in (*GROUP_BY_DIALECT.values(), POD) for item in stage.store.items(kind)]
    for document in documents:
        with suppress(SnapshotError):
            cluster.put(document)
    for document in documents:
        try:
            cluster.put(document)
        except SnapshotError as problem:
            found[f"{document['apiVersion']} {document['metadata']['name']}"] = str(problem)
    return found


def is_of_missing_group(stage: Stage, text: str) -> bool:
    """Tell whether a pod is told, truly, that its group does not exist."""
    found = re.search(r"PodGroup default/(\w+) of (\S+) does not exist; create it, or name another one$", text)
    kinds = [kind for kind in GROUP_BY_DIALECT.values() if found is not None and kind.group == found[2]]
    return found is not None and all(stage.store.find(kind, "default", found[1]) is None for kind in kinds)


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**40))
@example(101)  # a group that comes after its pods were told that it does not exist
def test_objects_say_what_a_fresh_reading_of_everything_says(seed: int) -> None:
    random, stage = Random(seed), Stage(QuarantineController())
    for moment in range(random.randint(1, 12)):
        document = random.choice([some_group, some_pod, some_pod])(random)
        meta = document["metadata"]
        with suppress(Missing):
            stage.store.delete(kind_of(document), meta["namespace"], meta["name"], grace=0)
        if random.random() < 0.8:
            stage.make({**document, "metadata": {**meta, "uid": f"{meta['name']}-{moment}"}})
        stage.run(10 * moment + random.choice([1, 9]))
    stage.run(1000)
    told, wrong = said(stage), truth(stage)
    assert {key: text for key, text in told.items() if key in wrong} == wrong
    assert all(is_of_missing_group(stage, text) for key, text in told.items() if key not in wrong)
    fresh = Stage(QuarantineController())
    for item in (item for kind in (*GROUP_BY_DIALECT.values(), POD) for item in stage.store.items(kind)):
        fresh.make({**item, "status": {}})
    fresh.run(1000)
    assert said(fresh) == told
    assert stage.unsettled() == []
    assert stage.problems == []
