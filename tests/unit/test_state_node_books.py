"""What tasks hold on each node is right however nodes and tasks come, change and go."""

from random import Random

import numpy as np
import pytest

from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import object_key
from phalanx.testing import build
from phalanx.testing.build import Document


def fresh(documents: dict[tuple[str, str], Document]) -> ObjectCluster:
    cluster = ObjectCluster()
    for document in documents.values():
        cluster.put(document)
    return cluster


def changed(chance: Random) -> Document:
    number = chance.randrange(5)
    if chance.random() < 0.4:
        cpu = chance.randint(1, 9)
        return build.node(f"n{number}", cpu=cpu, gpus=2) if chance.random() < 0.2 else build.node(f"n{number}", cpu=cpu)
    pod = build.pod(f"p{chance.randrange(8)}", on=f"n{number}", cpu=chance.randint(1, 3))
    if chance.random() < 0.3:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


@pytest.mark.parametrize("seed", range(20))
def test_books_are_those_of_a_cluster_that_is_read_anew(seed: int) -> None:
    chance, cluster, documents = Random(seed), ObjectCluster(), dict[tuple[str, str], Document]()
    for _ in range(60):
        document = changed(chance)
        key = (document["kind"], object_key(document))
        if key in documents and chance.random() < 0.3:
            cluster.remove(documents.pop(key))
        else:
            cluster.put(document)
            documents[key] = document
        if chance.random() < 0.5:
            kept, anew = cluster.snapshot(0.0), fresh(documents).snapshot(0.0)
            assert kept.nodes.names == anew.nodes.names
            for name in anew.space.names:
                mine, its = kept.space.row_by_name[name], anew.space.row_by_name[name]
                assert np.array_equal(kept.used[mine], anew.used[its])
                assert np.array_equal(kept.releasing[mine], anew.releasing[its])
            assert np.array_equal(kept.scored, anew.scored)
            assert np.array_equal(kept.pods, anew.pods)
